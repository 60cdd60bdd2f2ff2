"""Answers: a value as JSON for programs, or as text for people."""

import sys
from collections.abc import Callable

from turnkeeper.cli.options import Options
from turnkeeper.cli.screen import Screen, show


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


def note(text: str) -> None:
    """Something for the person at the terminal that is not part of the answer: on standard error."""
    show(Screen.of(sys.stderr).paint(text, "dim"), to=sys.stderr)
