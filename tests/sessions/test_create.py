"""Create a session: what it has from the start, and what is refused."""

import subprocess
from pathlib import Path

import anyio
import pytest

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import NESTING_MAX
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.model.session import ZERO_TOKENS, Session, SessionModel, SessionTime
from turnkeeper.store import keys
from turnkeeper.testing.builders import a_session


async def test_a_new_session_has_every_field_that_is_known(place: Path) -> None:
    async with turnkeeper.open("memory:", directory=place, mint=Mint.fixed()) as tk:
        session = await tk.create()
        assert session == Session(
            id=session.id,
            slug=session.slug,
            project_id="global",
            directory=str(place),
            path=str(place).removeprefix("/"),
            title="New session - 2026-11-15T18:32:05.690Z",
            version=turnkeeper.__version__,
            cost=0,
            tokens=ZERO_TOKENS,
            time=SessionTime(created=FIXED_START_MS, updated=FIXED_START_MS),
        )
        assert await tk.get(session.id) == session


async def test_what_the_caller_says_is_kept(tk: Turnkeeper) -> None:
    rules = (Rule(permission="bash", pattern="*", action="deny"),)
    model = SessionModel(id="large", provider_id="acme")
    parent = await tk.create()
    session = await tk.create(
        id="ses_mine",
        parent_id=parent.id,
        title=" My\n title ",
        permission=rules,
        agent="plan",
        model=model,
        metadata={"a": [1, None]},
    )
    assert (session.id, session.parent_id, session.title) == ("ses_mine", parent.id, "My title")
    assert (session.permission, session.agent, session.model) == (rules, "plan", model)
    assert session.metadata == {"a": [1, None]}
    assert await tk.get("ses_mine") == session


async def test_a_child_without_a_title_is_called_one(tk: Turnkeeper) -> None:
    parent = await tk.create()
    child = await tk.create(parent_id=parent.id)
    assert child.title.startswith("Child session - ")


async def test_an_id_that_exists_gives_the_stored_session_unchanged(tk: Turnkeeper) -> None:
    first = await tk.create(id="ses_mine", title="First")
    assert await tk.create(id="ses_mine", title="Second", agent="other") == first
    assert len(await tk.store.engine.read("ses_mine")) == 1


async def test_creations_with_one_id_at_the_same_time_give_one_session(tk: Turnkeeper) -> None:
    made: list[Session] = []

    async def create(title: str) -> None:
        made.append(await tk.create(id="ses_mine", title=title))

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(create, f"Title {number}")
    assert made == [await tk.get("ses_mine")] * 10
    assert await tk.store.engine.length("ses_mine") == 1


async def test_a_session_that_exists_is_not_created_over(tk: Turnkeeper) -> None:
    session = await tk.create()
    with pytest.raises(Conflict, match="exists already"):
        await tk.store.journal.create(session)
    assert (await tk.doctor()).ok


async def test_a_session_removed_elsewhere_can_be_created_again(tk: Turnkeeper) -> None:
    session = await tk.create(id="ses_mine")
    own = [keys.session(session.project_id, session.id), *((kind, session.id) for kind in keys.OWN)]
    await tk.store.engine.remove({"ses_mine": 1}, [*own, *keys.places(session)])
    await tk.create(id="ses_mine", title="Again")
    await tk.rename("ses_mine", "And on")
    assert (await tk.doctor()).problems == ()


@pytest.mark.parametrize("bad", ["", "mine", "msg_mine", "ses_", "ses_a/b", "ses_" + "x" * 61])
async def test_an_id_that_cannot_name_a_session_is_refused(tk: Turnkeeper, bad: str) -> None:
    with pytest.raises(Invalid, match="is not a session id"):
        await tk.create(id=bad)


async def test_a_blank_title_is_refused(tk: Turnkeeper) -> None:
    with pytest.raises(Invalid, match="a title may not be empty"):
        await tk.create(title=" \n")


async def test_a_parent_that_is_not_there_is_refused(tk: Turnkeeper) -> None:
    with pytest.raises(NotFound, match="there is no session 'ses_none'"):
        await tk.create(parent_id="ses_none")
    assert (await tk.list(archived=True, roots=False)).items == ()


async def test_sessions_nest_so_deep_and_no_deeper(tk: Turnkeeper) -> None:
    parent: str | None = None
    for _ in range(NESTING_MAX):
        parent = (await tk.create(parent_id=parent)).id
    with pytest.raises(Invalid, match=f"nest at most {NESTING_MAX} deep"):
        await tk.create(parent_id=parent)


async def test_a_session_that_is_not_there_is_refused(tk: Turnkeeper) -> None:
    with pytest.raises(NotFound, match="there is no session 'ses_none'"):
        await tk.get("ses_none")


async def test_the_project_of_a_session_is_written_down_once(tk: Turnkeeper, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    repository.mkdir()
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "init", "-q", repository], check=True)
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "root"], cwd=repository, check=True)
    session = await tk.create(directory=repository)
    [before] = await tk.store.engine.get([keys.project(session.project_id)])
    await tk.create(directory=repository)
    [after] = await tk.store.engine.get([keys.project(session.project_id)])
    assert session.project_id != "global"
    assert before is not None
    assert before == after


async def test_looking_for_sessions_that_are_not_there_keeps_nothing(tk: Turnkeeper) -> None:
    for number in range(2000):
        with pytest.raises(NotFound):
            await tk.store.journal.view(f"ses_none{number}")
    await tk.store.journal.create(a_session("ses_one"))
    assert len(tk.store.journal.cache) < 1000
