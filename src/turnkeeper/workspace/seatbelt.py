"""Seatbelt: the profile by which ``sandbox-exec`` confines a command on macOS. Written without a Mac to try it on."""

import json
from collections.abc import Iterable, Sequence
from typing import Final

from turnkeeper.core.sandbox import Confinement

PROGRAM: Final = "/usr/bin/sandbox-exec"
_ALWAYS: Final = (
    "(version 1)",
    "(allow default)",
    "(deny file-write*)",
    '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/ptmx")'
    ' (regex #"^/dev/ttys[0-9]+$") (regex #"^/dev/fd/"))',
)


def confined_arguments(arguments: Sequence[str], confined: Confinement) -> list[str]:
    """A command line that runs another one confined."""
    return [PROGRAM, "-p", profile(confined), *arguments]


def profile(confined: Confinement) -> str:
    """The rules of a confinement; of two that match, the later one decides."""
    lines = [*_ALWAYS, *_rule("allow", "file-write*", confined.write)]
    lines += _rule("deny", "file-write*", confined.protected)
    if confined.read is not None:
        lines += [
            "(deny file-read-data)",
            '(allow file-read-data (literal "/"))',
            *_rule("allow", "file-read-data", (*confined.read, "/System", "/Library", "/private/var/db", "/dev")),
        ]
    lines += _rule("deny", "file-read*", confined.hidden)
    if not confined.network:
        lines += ["(deny network*)", "(allow network* (remote unix-socket))"]
    return "\n".join(lines)


def _rule(verb: str, operation: str, paths: Iterable[str]) -> list[str]:
    places = " ".join(f"(subpath {json.dumps(path, ensure_ascii=False)})" for path in paths)
    return [f"({verb} {operation} {places})"] if places else []
