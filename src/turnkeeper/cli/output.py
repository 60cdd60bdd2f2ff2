"""The output of commands: the answer as JSON or as text on standard output, and notes on standard error."""

import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from turnkeeper.cli.failures import OK, REFUSED, UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.screen import Screen, show, wrapped
from turnkeeper.model.refusal import Forbidden

DAMAGED_SHOWN = 10
"""How many damaged documents are listed."""


def answer(options: Options, value: object, text: Callable[[Screen], str], *, empty: str = "") -> None:
    """Print a value as JSON if the user asked for it, else the result of ``text``, or a note if that is empty."""
    if options.json:
        _print_json(value)
    elif shown := text(Screen.of(sys.stdout)):
        show(shown)
    elif empty:
        note(empty)


def answer_items(
    options: Options, items: Sequence[object], text: Callable[[Screen], str], *, empty: str = "", **beside: object
) -> None:
    """Print a list. Its JSON is an object with the list as ``items`` and what else is said; None is left out."""
    said = {name: value for name, value in beside.items() if value is not None}
    answer(options, {"items": items, **said}, text, empty=empty)


def _print_json(value: object) -> None:
    """Print a value in its wire format: indented on a terminal, otherwise on one line."""
    from turnkeeper.model.value import encode

    body = encode(value)
    assert body.startswith(b"{"), "an answer is an object: a list cannot get another field later"
    if sys.stdout.isatty():
        import msgspec

        body = msgspec.json.format(body, indent=2)
    write(body + b"\n")


def write(body: bytes) -> None:
    """Write bytes to standard output, independent of the encoding of the terminal."""
    sys.stdout.flush()
    left = memoryview(body)
    while left:  # With PYTHONUNBUFFERED, a file that has no room for all of it takes a part without an error.
        left = left[sys.stdout.buffer.write(left) :]
    sys.stdout.buffer.flush()


def note_damaged(names: Sequence[str]) -> int:
    """List the documents that could not be read; the exit code that follows."""
    for name in names[:DAMAGED_SHOWN]:
        note(f"Damaged: {name}")
    if (more := len(names) - DAMAGED_SHOWN) > 0:
        note(f"... and {more:,} more")
    if names:
        note("`turnkeeper doctor` shows how far the damage goes; `--fix` writes documents again from the log.")
    return REFUSED if names else OK


def remark(options: Options, *texts: str) -> None:
    """Print remarks on standard error, unless the answer is JSON: then they are in it, or are left out."""
    if not options.json:
        for text in texts:
            note(text)


def note(text: str) -> None:
    """Print a remark on standard error."""
    show(Screen.of(sys.stderr).paint(text, "dim"), to=sys.stderr)


def confirm(question: str, *, no_terminal: str, refused: str) -> None:
    """Ask on the terminal. Raises Forbidden, with these words, without a terminal or without a yes."""
    if not sys.stdin.isatty():
        raise Forbidden(no_terminal)
    if not says_yes(question):
        raise Forbidden(refused)


Confirms: TypeAlias = Callable[[Sequence[str], str], Awaitable[bool]]
"""Shows lines and asks a question about them; whether the user agrees."""


async def asked(lines: Sequence[str], question: str, *, no_terminal: str = "") -> bool:
    """Show lines and ask about them on the terminal. Raises UsageError, with these words, without one."""
    for line in lines:
        show(line, to=sys.stderr)
    if no_terminal and not sys.stdin.isatty():
        raise UsageError(no_terminal)
    return says_yes(question)


def says_yes(question: str) -> bool:
    """Ask on the terminal. Whatever is no yes is a no, also the end of the input."""
    return is_yes(typed_line(f"{question} [y/N] "))


def is_yes(typed: str) -> bool:
    """Whether a typed line agrees."""
    return typed.strip().casefold() in ("y", "yes")


def agrees(question: str) -> bool:
    """Ask on the terminal, until the answer is yes or no. Enter alone is a yes; the end of the input is a no."""
    typed = typed_line(f"{wrapped(question)} [Y/n] ")
    while (said := typed.strip().casefold()) not in ("", "y", "yes", "n", "no"):
        typed = typed_line("y or n? ")  # It may be a prompt that was typed too early, which decides nothing.
    return bool(typed) and said in ("", "y", "yes")


def typed_line(question: str) -> str:
    """Ask on the terminal, and read a line; nothing at the end of the input."""
    with interruptible():
        # On standard error: standard output is for the answer.
        print(question, end="", file=sys.stderr, flush=True)
        return sys.stdin.readline()


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt what is read in the block, and SIGTERM end the program.

    The event loop, which handles both otherwise, does not run meanwhile.
    """
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    end = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, end)
