"""Entry point: run one command and turn its result or its failure into an exit code."""

import gc
import os
import sys
from collections.abc import Awaitable, Sequence
from inspect import isawaitable
from typing import Final

from turnkeeper.cli import failures
from turnkeeper.core import flags

OBJECTS_PER_COLLECTION: Final = 50_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. The exit code is 0 for success, 1 for a failure, 2 for wrong usage, 130 for an interrupt."""
    if arguments is None:
        return _process(sys.argv[1:])
    return _exit_code(list(arguments), [])


def _process(words: list[str]) -> int:
    """Run the command of this process."""
    # Imports create tens of thousands of objects that all stay. The default garbage collection of them, every 700
    # objects and once more at exit, takes a tenth of the time of a short command.
    gc.set_threshold(OBJECTS_PER_COLLECTION)
    _open_closed_streams()
    if home := flags.TEST_HOME.value(os.environ):
        os.environ["HOME"] = home
    _check_timezone()
    left: list[str] = []
    code = _exit_code(words, left)
    if left:
        # A tool ignores that it was stopped. The store is closed, and Python would wait for the tool without end.
        sys.stderr.flush()
        os._exit(code)
    gc.freeze()
    return code


def _exit_code(words: list[str], left: list[str]) -> int:
    """The exit code of a command. ``left`` gets the names of tasks that go on after its end."""
    try:
        code = _run(words, left)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # The reader of the output has closed it, for which rich exits.
        code = failures.OK
    except BaseException as error:
        found = failures.problem(error)
        if found is None:
            raise
        failures.report(found, as_json="--json" in words[: words.index("--") if "--" in words else None])
        code = found.code
    _flush_output()
    return code


def _flush_output() -> None:
    """Flush the output. If that fails, drop the rest, because Python would report the failure again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_closed_streams() -> None:
    """Replace standard streams that the parent process closed, which Python sets to None."""
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), "r" if name == "stdin" else "w"))


def _check_timezone() -> None:
    """Warn about a TZ that does not exist: the system then uses UTC without a message."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if "/" in name and not os.path.exists(os.path.join("/usr/share/zoneinfo", name)):
        print(f"turnkeeper: TZ={name} is not a known timezone; times are in UTC", file=sys.stderr)


def _run(words: list[str], left: list[str]) -> int:
    from turnkeeper.cli.commands import app, call

    result = call(app.meta, words)
    if isawaitable(result):
        result = _waited(result, left)
    return result if isinstance(result, int) else failures.OK


def _waited(awaited: Awaitable[object], left: list[str]) -> object:
    # Not anyio.run: importing its backend would take a tenth of the time of `session list`.
    import asyncio

    async def wait() -> object:
        return await awaited

    runner = asyncio.Runner()
    try:
        return runner.run(wait())
    finally:
        if others := asyncio.all_tasks(runner.get_loop()):
            from turnkeeper.run.abandon import calls_among

            left += calls_among(others)
        if not left:
            runner.close()  # Cancels what is left, and waits for it.


if __name__ == "__main__":
    sys.exit(main())
