"""Failures: a sentence or a JSON object on standard error, and an exit code."""

import errno
import json
import os
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from turnkeeper.text.number import number_in

if TYPE_CHECKING:
    from cyclopts import CycloptsError

OK: Final = 0
REFUSED: Final = 1
"""Refused, not found, damaged, or an error of the system."""
USAGE: Final = 2
"""The command line is wrong."""
INTERRUPTED: Final = 130

WORD_MAX: Final = 300
WORD_SHOWN: Final = 40


class UsageError(Exception):
    """An argument is wrong, or arguments contradict each other."""


class CliFailure(NamedTuple):
    """An expected failure."""

    name: str
    message: str
    code: int


def problem(error: BaseException) -> CliFailure | None:
    """The expected failure behind an exception; None for a bug, which is shown with its traceback."""
    from cyclopts import CycloptsError

    if isinstance(error, BaseExceptionGroup):
        # Several tasks may fail for one reason, such as a server that is gone; a bug in one of them is a bug.
        found = [problem(one) for one in error.exceptions]
        return found[0] if None not in found else None
    if isinstance(error, KeyboardInterrupt):
        return CliFailure("Interrupted", "interrupted; what was acknowledged is kept", INTERRUPTED)
    if isinstance(error, CycloptsError):
        said = _usage_words(error)
        return CliFailure("Usage", f"{said if said.endswith(('?', '.')) else f'{said}.'} Try --help.", USAGE)
    return _refused(error)


def _usage_words(error: "CycloptsError") -> str:
    """What is wrong with the arguments. A text that would fill the screen is cut, and types have no Python names."""
    from cyclopts import CoercionError

    error.verbose = False
    said = " ".join(_short(word) for word in str(error).split())
    if isinstance(error, CoercionError) and error.msg is None and error.token and error.target_type in (int, float):
        given = error.token.value
        wanted = "a whole number" if error.target_type is int else "a number"
        wrong = f"is not {wanted}" if number_in(given) is not None or not given.isdecimal() else "has too many digits"
        return f"Invalid value for {error.token.keyword}: '{_short(given)}' {wrong}"
    return said


def _short(word: str) -> str:
    """A word of an error message; a very long one is cut."""
    return word if len(word) <= WORD_MAX else f"{word[:WORD_SHOWN]}..."


def _refused(error: BaseException) -> CliFailure | None:
    # Imported here because a command has imported them already, unless its arguments are wrong.
    from turnkeeper.core.entry import Damaged
    from turnkeeper.model.refusal import Refusal
    from turnkeeper.store.damaged import DamagedDocument
    from turnkeeper.store.engine import EngineError

    name = type(error).__name__
    match error:
        case Damaged():
            return CliFailure(name, f"{error}; run `turnkeeper doctor` to see how far the damage goes", REFUSED)
        case UsageError():
            return CliFailure("Usage", str(error), USAGE)
        case Refusal() | EngineError() | DamagedDocument():
            return CliFailure(name, str(error), REFUSED)
        case OSError(errno=errno.EMFILE):
            from turnkeeper.cli.file_limit import advice

            return CliFailure("System", advice(), REFUSED)
        case OSError(errno=errno.EFBIG, filename=place):
            file = os.fsdecode(place) if isinstance(place, str | bytes) else "a file"
            return CliFailure("System", f"{file} may not become larger; raise `ulimit -f`, and try again", REFUSED)
        case OSError(strerror=str(reason), filename=str() | bytes() as place):
            return CliFailure("System", f"{os.fsdecode(place)}: {reason}; check the path and its permissions", REFUSED)
        case FileNotFoundError() if _is_lost():
            return CliFailure("System", "the working directory is no longer there; change to another one", REFUSED)
        case OSError():
            return CliFailure("System", str(error), REFUSED)
        case RuntimeError(args=("can't start new thread",)):
            how = "end some of this user's, or raise `ulimit -u` or the memory limit"
            return CliFailure("System", f"the system allows no further thread or process; {how}", REFUSED)
        case UnicodeEncodeError(object=str(text)):  # The name of a file is bytes; JSON and stores take text.
            return CliFailure("Invalid", f"{text!r:.300} is not UTF-8, so it cannot be used; rename it", REFUSED)
        case _:
            return None


def _is_lost() -> bool:
    """Whether the working directory was deleted."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def report(found: CliFailure, *, as_json: bool) -> None:
    """Print a failure on standard error: a sentence, or one line of JSON."""
    if as_json:
        print(json.dumps({"error": {"name": found.name, "message": found.message}}), file=sys.stderr)
    else:
        from turnkeeper.cli.screen import harmless, wrapped

        lines = f"turnkeeper: {harmless(found.message)}".split("\n")
        print("\n".join(map(wrapped, lines)), file=sys.stderr)
