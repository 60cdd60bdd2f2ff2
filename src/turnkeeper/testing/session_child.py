"""A process that writes to a store and prints acknowledged writes, for tests that kill it.

``python -m turnkeeper.testing.session_child ROLE URL DIRECTORY [ARGUMENT]``
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel

from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.notification import Notification
from turnkeeper.sessions import edit, fork, history, remove
from turnkeeper.sessions.create import create, remember_project
from turnkeeper.store.crash import crash_point
from turnkeeper.store.engines import open_engine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.sqlite_layout import open_sqlite
from turnkeeper.store.store import Store
from turnkeeper.testing.builders import a_turn
from turnkeeper.workspace.project import ProjectPlace, identify

Step = Callable[[], Awaitable[object]]

MAIN, CHILD = "ses_main", "ses_child"
LONG = "long " * BLOB_CHARS_MIN
HUGE = "huge " * (2 << 20)
"""Large enough that SQLite starts its background work during the script."""
MANY = range(10, 40)
"""Enough turns for a log that an engine stores in its format for long logs."""
BACKGROUND = {"sqlite.before-checkpoint", "sqlite.after-checkpoint", "sqlite.begin-tidying", "sqlite.before-tidied"}
"""The crash points of SQLite's background work."""
BACKGROUND_TIMEOUT_S = 60


async def open_quiet(url: str, mint: Mint, crash: Callable[[str], None] = crash_point) -> Store:
    """A store without subscribers, in which SQLite's background work may start between any two writes."""
    scheme, _, place = url.partition(":")
    engine = (
        await open_sqlite(Path(place), tidy_share=1.0, crash=crash) if scheme == "sqlite" else await open_engine(url)
    )
    return Store(engine, Journal(engine, mint, _ignore), Queries(engine), mint)


def script(store: Store, place: ProjectPlace) -> list[Step]:
    """Steps of one transaction each. With a fixed mint, every run has an equal store after each step."""
    forks: list[str] = []

    async def make_fork() -> None:
        forks.append((await fork.fork(store, MAIN)).id)

    journal = store.journal
    return [
        lambda: remember_project(store, place),
        lambda: create(store, place, id=MAIN, title="Main"),
        lambda: journal.append(MAIN, *a_turn(MAIN, 1)),
        lambda: edit.rename(store, MAIN, "Renamed"),
        lambda: create(store, place, id=CHILD, parent_id=MAIN),
        lambda: journal.append(MAIN, *a_turn(MAIN, 2, answer=LONG)),
        lambda: journal.append(CHILD, *a_turn(CHILD, 1, answer=LONG)),
        lambda: journal.append(MAIN, *(one for number in MANY for one in a_turn(MAIN, number))),
        make_fork,
        lambda: edit.archive(store, MAIN),
        lambda: history.remove_message(store, MAIN, "msg_u1_main"),
        lambda: remove.remove(store, CHILD, _ignore),
        lambda: edit.restore(store, MAIN),
        lambda: journal.append(MAIN, *a_turn(MAIN, 3)[:8]),
        lambda: remove.remove(store, forks[0], _ignore),
        lambda: edit.update(store, MAIN, lambda session: session.but(metadata={"long": LONG})),
        lambda: journal.append(MAIN, e.MetadataSet(metadata={"huge": HUGE})),
        lambda: edit.touch(store, MAIN),
        lambda: remove.remove(store, MAIN, _ignore),
    ]


async def play(url: str, directory: str, _: str) -> None:
    """Run the script, and print the number of each step after its acknowledgement.

    SQLite's background work runs in a thread, which on a busy machine may not have begun after the last step. The
    process waits for it, so that every run passes each of its crash points.
    """
    passed: set[str] = set()

    def note(point: str) -> None:
        crash_point(point)
        passed.add(point)

    store = await open_quiet(url, Mint.fixed(step_ms=1), note)
    for number, step in enumerate(script(store, await identify(Path(directory))), start=1):
        await step()
        _acknowledge(str(number))
    if url.startswith("sqlite:"):
        with anyio.fail_after(BACKGROUND_TIMEOUT_S):
            while not passed.issuperset(BACKGROUND):  # The thread sets no event.
                await anyio.lowlevel.checkpoint()
    await store.engine.aclose()


async def pour(url: str, directory: str, name: str) -> None:
    """Write to new sessions and to a shared one without end, and print each write after its acknowledgement."""
    store = await open_quiet(url, Mint())
    place = await identify(Path(directory))
    await create(store, place, id="ses_shared")
    number = 0
    while True:
        number += 1
        await store.journal.append("ses_shared", e.InstructionDiscovered(path=f"{name}/{number}"))
        _acknowledge(f"shared {number}")
        own = f"ses_{name}{number}"
        await create(store, place, id=own)
        await store.journal.append(own, *a_turn(own, 1, answer=LONG if number % 5 == 0 else "Done"))
        _acknowledge(f"made {own}")
        if number % 3 == 0:
            await remove.remove(store, own, _ignore)
            _acknowledge(f"removed {own}")


async def share(url: str, directory: str, argument: str) -> None:
    """Append COUNT events to a session that other processes write too; ``argument`` is ``NAME:COUNT``."""
    name, _, count = argument.partition(":")
    store = await open_quiet(url, Mint())
    await create(store, await identify(Path(directory)), id="ses_shared")
    for number in range(int(count)):
        await store.journal.append("ses_shared", e.InstructionDiscovered(path=f"{name}/{number}"))
        await edit.update(store, "ses_shared", lambda session: session.but(metadata=_counted(session.metadata)))
        _acknowledge(f"shared {number}")
    await store.engine.aclose()


def _counted(metadata: object) -> dict[str, object]:
    count = metadata.get("count", 0) if isinstance(metadata, dict) else 0
    return {"count": count + 1}


def _ignore(_: Notification) -> None:
    """Ignore a notification."""


def _acknowledge(word: str) -> None:
    # One write call, because a kill may come between two.
    os.write(sys.stdout.fileno(), f"{word}\n".encode())


async def main(role: str, url: str, directory: str, argument: str = "") -> None:
    """Run the role."""
    await {"play": play, "pour": pour, "share": share}[role](url, directory, argument)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
