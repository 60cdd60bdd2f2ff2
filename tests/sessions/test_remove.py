"""Remove a session: nothing of it is left, and nothing else is touched."""

import subprocess
import sys

import anyio
import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.refusal import Busy, NotFound
from turnkeeper.model.status import BUSY
from turnkeeper.sessions.remove import remove
from turnkeeper.store.engine import Key
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.testing.builders import a_session, a_text, a_turn, a_user, every_event
from turnkeeper.workspace.owner import this_process

SHARED, OWN = "shared " * BLOB_CHARS_MIN, "own " * BLOB_CHARS_MIN


async def whole(tk: Turnkeeper) -> tuple[dict[Key, bytes], list[str]]:
    return dict(await tk.store.engine.scan(())), await tk.store.engine.logs()


async def a_neighbour(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session("ses_neighbour"), *a_turn("ses_neighbour", 1, answer=SHARED))


async def a_life(tk: Turnkeeper, session_id: str, **session: object) -> None:
    """A session in which everything has happened, with blobs of its own and shared ones, and a waiting prompt."""
    prompt = a_user(session_id, f"msg_waiting_{session_id}")
    words = (a_text(prompt, f"prt_waiting_{session_id}", OWN),)
    await tk.store.journal.create(
        a_session(session_id, **session),
        *every_event(session_id)[1:],
        *a_turn(session_id, 1, answer=SHARED),
        e.SessionTitled(title="Forked (fork #4)"),
        e.PromptAdmitted(message=prompt, parts=words, delivery="queue"),
        *a_turn(session_id, 2)[:8],
    )


async def test_a_removed_session_leaves_the_store_as_if_it_had_never_been(tk: Turnkeeper) -> None:
    await a_neighbour(tk)
    before = await whole(tk)
    await a_life(tk, "ses_gone")
    assert len((await whole(tk))[0]) > len(before[0]) + 30
    await tk.remove("ses_gone")
    assert await whole(tk) == before
    assert await tk.search("renamed looking") == []
    assert (await tk.doctor()).ok


async def test_descendants_go_with_their_session_children_first(tk: Turnkeeper) -> None:
    await a_neighbour(tk)
    before = await whole(tk)
    await a_life(tk, "ses_root")
    await tk.store.journal.create(a_session("ses_child", parent_id="ses_root"), *a_turn("ses_child", 1))
    await tk.store.journal.create(a_session("ses_grand", parent_id="ses_child"), *a_turn("ses_grand", 1))
    assert [session.id for session in await tk.remove("ses_root")] == ["ses_grand", "ses_child", "ses_root"]
    assert await whole(tk) == before


async def test_removing_a_child_leaves_its_parent(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session("ses_root"))
    before = await whole(tk)
    await tk.store.journal.create(a_session("ses_child", parent_id="ses_root"))
    await tk.remove("ses_child")
    assert await whole(tk) == before


async def test_a_blob_goes_with_its_last_user(tk: Turnkeeper) -> None:
    for name in ("ses_one", "ses_two"):
        await tk.store.journal.create(a_session(name), *a_turn(name, 1, answer=SHARED))
    await tk.remove("ses_one")
    assert len(await tk.store.engine.scan(("blob",))) == 1
    await tk.remove("ses_two")
    assert await tk.store.engine.scan(("blob",)) == []


async def test_a_removed_session_is_gone_for_everyone(tk: Turnkeeper) -> None:
    session = await tk.create()
    await tk.remove(session.id)
    for verb in (tk.get, tk.touch, tk.archive, tk.messages, tk.remove, tk.fork):
        with pytest.raises(NotFound):
            await verb(session.id)
    assert (await tk.list(archived=True, roots=False)).items == ()


async def test_the_id_of_a_removed_session_can_be_used_again(tk: Turnkeeper) -> None:
    await tk.create(id="ses_mine", title="First")
    await tk.rename("ses_mine", "Renamed")
    await tk.remove("ses_mine")
    await tk.create(id="ses_mine", title="Second")
    await tk.touch("ses_mine")
    assert (await tk.get("ses_mine")).title == "Second"
    assert (await tk.doctor()).problems == ()


async def test_removing_while_others_write_leaves_nothing_of_what_they_wrote(tk: Turnkeeper) -> None:
    before = await whole(tk)
    await tk.store.journal.create(a_session("ses_gone"))

    async def write(number: int) -> None:
        try:
            for turn in range(5):
                await tk.store.journal.append("ses_gone", *a_turn("ses_gone", number * 10 + turn), e.SessionTouched())
                await anyio.sleep(0)
        except NotFound:
            pass

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(write, number)
        await anyio.sleep(0)
        group.start_soon(tk.remove, "ses_gone")
    assert await whole(tk) == before
    assert (await tk.doctor()).problems == ()


async def test_a_write_just_before_the_removal_is_removed_too() -> None:
    class Busy(MemoryEngine):
        """A store in which another process writes just before a log's length is read."""

        async def length(self, log: str) -> int:
            """See Engine.length."""
            if await super().length(log) == 1:
                await other.append(log, e.SessionMoved(project_id="elsewhere", directory="/elsewhere"))
            return await super().length(log)

    engine, mint = Busy(), Mint.fixed(step_ms=1)
    other = Journal(engine, mint, lambda notification: None)
    await other.create(a_session("ses_gone"))
    store = Store(engine, Journal(engine, mint, lambda notification: None), Queries(engine), mint)
    await remove(store, "ses_gone", lambda notification: None)
    assert await engine.scan(()) == []


async def test_a_session_that_is_not_there_cannot_be_removed(tk: Turnkeeper) -> None:
    with pytest.raises(NotFound, match="ses_none"):
        await tk.remove("ses_none")


async def test_a_session_that_another_living_process_runs_is_not_removed(tk: Turnkeeper) -> None:
    session = await tk.create()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        owner = this_process().but(pid=other.pid, started="")
        await tk.store.journal.append(session.id, e.StatusChanged(status=BUSY, owner=owner))
        with pytest.raises(Busy, match="stop it first"):
            await tk.remove(session.id)
        other.kill()
    assert [one.id for one in await tk.remove(session.id)] == [session.id]
