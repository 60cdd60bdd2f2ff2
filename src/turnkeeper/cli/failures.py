"""What went wrong, as words for people, an object for programs and an exit code for scripts."""

import json
import sys
from typing import Final, NamedTuple

OK: Final = 0
REFUSED: Final = 1
"""Refused, not found, damaged, or the world said no."""
USAGE: Final = 2
"""The command line makes no sense."""
INTERRUPTED: Final = 130


class UsageError(Exception):
    """The words of a command contradict each other, or one of them has no meaning there."""


class Problem(NamedTuple):
    """Something foreseeable that went wrong."""

    name: str
    message: str
    code: int


def problem(error: BaseException) -> Problem | None:
    """The problem behind an exception; None for a bug, which deserves its traceback."""
    from cyclopts import CycloptsError

    if isinstance(error, BaseExceptionGroup):
        # Several tasks may find the same thing wrong, such as a server that has gone; one bug among them is a bug.
        found = [problem(one) for one in error.exceptions]
        return found[0] if None not in found else None
    if isinstance(error, KeyboardInterrupt):
        return Problem("Interrupted", "interrupted; what was acknowledged is kept", INTERRUPTED)
    if isinstance(error, CycloptsError):
        error.verbose = False
        said = " ".join(str(error).split())
        return Problem("Usage", f"{said} Try --help.", USAGE)
    return _refused(error)


def _refused(error: BaseException) -> Problem | None:
    # Imported here, for they are loaded by then unless the words themselves made no sense.
    from turnkeeper.cli.reach import NotServed
    from turnkeeper.core.entry import Damaged
    from turnkeeper.model.refusal import Refusal
    from turnkeeper.store.damaged import DamagedDocument
    from turnkeeper.store.engine import EngineError

    name = type(error).__name__
    match error:
        case Damaged():
            return Problem(name, f"{error}; run `turnkeeper doctor` to see how far the damage goes", REFUSED)
        case NotServed() | UsageError():
            return Problem("Usage", str(error), USAGE)
        case Refusal() | EngineError() | DamagedDocument():
            return Problem(name, str(error), REFUSED)
        case OSError(strerror=str(reason), filename=str() | bytes() as place):
            return Problem("System", f"{_text(place)}: {reason}; check the path and its permissions", REFUSED)
        case OSError():
            return Problem("System", str(error), REFUSED)
        case _:
            return None


def tell(found: Problem, *, as_json: bool) -> None:
    """Say it on standard error: a sentence, or one line of JSON."""
    if as_json:
        print(json.dumps({"error": {"name": found.name, "message": found.message}}), file=sys.stderr)
    else:
        print(f"turnkeeper: {found.message}", file=sys.stderr)


def _text(place: str | bytes) -> str:
    return place if isinstance(place, str) else place.decode("utf-8", "replace")
