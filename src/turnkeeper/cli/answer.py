"""Answers: a value as JSON for programs, or as text for people."""

import sys
from collections.abc import Callable, Sequence

from turnkeeper.cli.failures import OK, REFUSED
from turnkeeper.cli.options import Options
from turnkeeper.cli.screen import Screen, show

DAMAGED_SHOWN = 10
"""How many damaged documents are named."""


def answer(options: Options, value: object, text: Callable[[Screen], str]) -> None:
    """Print a value in its wire form if JSON was asked for, else what ``text`` makes of it for people."""
    if options.json:
        print_json(value)
    elif said := text(Screen.of(sys.stdout)):
        show(said)


def print_json(value: object) -> None:
    """A value in its wire form: on one line for programs, indented for people."""
    from turnkeeper.model.value import encode

    body = encode(value)
    if sys.stdout.isatty():
        import msgspec

        body = msgspec.json.format(body, indent=2)
    write(body + b"\n")


def write(body: bytes) -> None:
    """Bytes to standard output as they are: JSON is UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()


def note_damaged(names: Sequence[str]) -> int:
    """Name what a command could not read, and give the exit code that follows from it."""
    for name in names[:DAMAGED_SHOWN]:
        note(f"Damaged: {name}")
    if (more := len(names) - DAMAGED_SHOWN) > 0:
        note(f"... and {more:,} more")
    if names:
        note("`turnkeeper doctor` shows how far the damage goes; `--fix` writes documents again from the log.")
    return REFUSED if names else OK


def note(text: str) -> None:
    """Something for the person at the terminal that is not part of the answer: on standard error."""
    show(Screen.of(sys.stderr).paint(text, "dim"), to=sys.stderr)
