"""Entry point: reads the words, runs the command, and turns what came of it into an exit code."""

import gc
import os
import sys
from collections.abc import Awaitable, Sequence
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Final

from turnkeeper.cli import failures

if TYPE_CHECKING:
    from cyclopts import App

HELP: Final = frozenset({"--help", "-h"})
VERSION: Final = frozenset({"--version", "-V"})
FLAGS: Final = frozenset({"--json"})
VALUED: Final = frozenset({"--store", "--data", "--server"})
OBJECTS_PER_COLLECTION: Final = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. The exit codes: 0 done, 1 refused or damaged, 2 usage, 130 interrupted."""
    if arguments is None:
        return _process(_ordered(sys.argv[1:]))
    return _answered(_ordered(arguments))


def _process(words: list[str]) -> int:
    """Run one command in a process of its own, which ends with it."""
    # Loading makes tens of thousands of objects that all stay: looking through them for garbage every 700th time,
    # and once more at the end, would take a tenth of what a short command costs.
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    _open_closed_streams()
    code = _answered(words)
    gc.freeze()
    return code


def _answered(words: list[str]) -> int:
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:  # Whoever read the output has seen enough.
        code = failures.OK
    except BaseException as error:
        found = failures.problem(error)
        if found is None:
            raise
        failures.tell(found, as_json="--json" in _options(words))
        code = found.code
    _let_go_of_output()
    return code


def _let_go_of_output() -> None:
    """Write what is left; what cannot be written is dropped, or Python would complain of it again when it ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """Give the process streams if its parent closed them: Python has None in their place."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def _run(words: list[str]) -> int:
    options = _options(words)
    if VERSION.intersection(options):
        return _version(as_json="--json" in options)
    from turnkeeper.cli import commands

    if (command := commands.quick(words)) is None:
        app = commands.build()
        asks_for_help = bool(HELP.intersection(options))
        chain, apps, rest = app.parse_commands([word for word in words if word not in HELP] if asks_for_help else words)
        if asks_for_help or (apps[-1].default_command is None and not rest):
            from turnkeeper.cli import help

            print(help.page(apps, chain, help.columns()), end="")
            return failures.OK
        function, bound, _ = app.parse_args(words, print_error=False, exit_on_error=False)
        command = partial(function, *bound.args, **bound.kwargs)
    return _done(command())


def _done(result: object) -> int:
    """Wait for what a command gave, if it is to be waited for; the exit code."""
    if isawaitable(result):
        import asyncio

        async def wait(awaited: Awaitable[object] = result) -> object:
            return await awaited

        # Not anyio.run: it would load all of anyio's backend, a tenth of what `session list` costs.
        result = asyncio.run(wait())
    return result if isinstance(result, int) else failures.OK


def _version(*, as_json: bool) -> int:
    import json

    from turnkeeper import __version__

    print(json.dumps({"version": __version__}) if as_json else f"turnkeeper {__version__}")
    return failures.OK


def _options(words: Sequence[str]) -> list[str]:
    """The words that may be options: those before ``--``."""
    return list(words[: words.index("--")] if "--" in words else words)


def _ordered(words: Sequence[str]) -> list[str]:
    """The words with options that stand before the command moved to where the command reads them."""
    front, rest = [], list(words)
    while rest and rest[0].partition("=")[0] in FLAGS | VALUED:
        width = 2 if rest[0] in VALUED else 1
        front += rest[:width]
        rest = rest[width:]
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *front, *rest[end:]]


def __getattr__(name: str) -> "App":
    """``app``, built when it is asked for: a key pressed while it is loaded is answered like any other."""
    if name != "app":
        raise AttributeError(name)
    from turnkeeper.cli.commands import build

    return build()


if __name__ == "__main__":
    sys.exit(main())
