"""A server whose files are all in use when it begins to load its modules; they are freed when it says that it waits."""

import logging
import os
import resource
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from turnkeeper.app import open_store
from turnkeeper.server import routes, serving
from turnkeeper.server.app import App
from turnkeeper.server.service import ServerOptions, Service

if TYPE_CHECKING:
    from turnkeeper.run.runtime import Settings

FILES = 64


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Freeing(logging.Handler):
    """Closes the files as soon as a warning is logged, which it prints."""

    def __init__(self, held: list[int]) -> None:
        super().__init__(logging.WARNING)
        self._held = held

    def emit(self, record: logging.LogRecord) -> None:
        while self._held:
            os.close(self._held.pop())
        say(record.getMessage())


def take_all() -> list[int]:
    """Open files until no more can be opened."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))
    held: list[int] = []
    while True:
        try:
            held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:  # There is no other reason why this file could not be opened.
            return held


async def main(data: str) -> None:
    environ, store = {**os.environ, "TURNKEEPER_DATA": data}, f"sqlite:{data}/turnkeeper.db"
    options = ServerOptions(environ=environ, runs=False)

    def settings() -> "Settings":
        from turnkeeper.run.runtime import Settings

        return Settings(environ=environ, runs=False)

    async with open_store(store, directory=Path.cwd(), settings=settings, environ=environ) as turnkeeper:
        service = Service(turnkeeper, Path.cwd(), options)
        bound = serving.listen("127.0.0.1", 0)
        app = App(service, routes.load)
        logging.getLogger().addHandler(Freeing(take_all()))
        await serving.settle_in(app, service, bound)
        say("settled" if all(name in sys.modules for name in serving.LOADED) else "not loaded")
        bound.close()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
