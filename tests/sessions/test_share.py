"""Links as facts of the log: two processes on one store, imports, edits, forks, and secrets split over a stream."""

import json
from pathlib import Path

import pytest
from opencode_files import imported

from turnkeeper.app import Turnkeeper, open_store
from turnkeeper.model.event import SessionShared, SessionUnshared
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Share
from turnkeeper.providers.scripted import Scripted
from turnkeeper.sessions.doctor import examine
from turnkeeper.testing.harness import stage

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.mark.parametrize("engine", ["sqlite", "files"])
async def test_two_processes_on_one_store_see_one_link(tmp_path: Path, engine: str) -> None:
    place = f"{engine}:{tmp_path / 'store'}"
    async with open_store(place, directory=tmp_path) as one, open_store(place, directory=tmp_path) as other:
        session = await one.create(title="Tides")
        first = await one.share(session.id)
        assert (await other.shared(session.id, first.secret))[0]["type"] == "session"
        second = await other.share(session.id)
        with pytest.raises(NotFound):
            await one.shared(session.id, first.secret)
        await one.unshare(session.id)
        with pytest.raises(NotFound):
            await other.shared(session.id, second.secret)
        kinds = [type(one.event) for one in await one.store.journal.read(session.id)]
        assert kinds[1:] == [SessionShared, SessionShared, SessionUnshared]


async def test_outside_of_a_repository_the_settings_above_a_directory_hold_as_for_its_sessions(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text('{"share": "disabled"}')
    directory = tmp_path / "below"
    directory.mkdir()
    async with open_store(f"sqlite:{tmp_path / 'store'}", directory=directory) as tk:
        assert (await tk.share_settings(directory)).mode == "disabled"


async def test_a_link_is_kept_with_its_store_and_its_documents_follow_from_its_log(tmp_path: Path) -> None:
    place = f"sqlite:{tmp_path / 'store'}"
    async with open_store(place, directory=tmp_path) as tk:
        session = await tk.create()
        link = await tk.share(session.id, expires_s=None)
    async with open_store(place, directory=tmp_path) as tk:
        assert (await tk.shared(session.id, link.secret))[0]["type"] == "session"
        assert (await examine(tk.store)).ok
        [[key, _]] = await tk.store.engine.scan(("hosted",))
        await tk.store.engine.put({key: None})
        assert [one.kind for one in (await examine(tk.store, fix=True)).problems] == ["missing document"]
        assert (await tk.shared(session.id, link.secret))[0]["type"] == "session"


async def test_neither_an_import_nor_an_edit_makes_a_link(tmp_path: Path) -> None:
    async with open_store("memory:", directory=tmp_path) as tk:
        info = {
            "id": "ses_import", "slug": "s", "projectID": "global", "directory": str(tmp_path), "title": "t",
            "version": "1", "time": {"created": 1, "updated": 1},
            "share": {"url": "https://example.org/s", "secretHash": "0" * 64, "hosted": {"id": "ses_import"}},
        }  # fmt: skip
        await imported(tk, tmp_path, {"info": info, "messages": []})
        assert (await tk.get("ses_import")).share is not None
        await tk.update("ses_import", lambda session: session.but(share=Share(url="https://example.org/other")))
        assert await tk.store.queries.hosted("ses_import") is None
        for secret in ("", "0" * 64):
            with pytest.raises(NotFound):
                await tk.shared("ses_import", secret)


async def test_a_fork_of_a_shared_session_is_not_shared(tmp_path: Path) -> None:
    async with open_store("memory:", directory=tmp_path) as tk:
        session = await tk.create()
        await tk.share(session.id)
        assert (await tk.fork(session.id)).share is None


async def split_answer(tk: Turnkeeper, session_id: str) -> str:
    link = await tk.share(session_id)
    return json.dumps(await tk.shared(session_id, link.secret))


@pytest.mark.parametrize("pieces", [3, 7, 40])
async def test_a_secret_that_came_in_many_deltas_is_masked(tmp_path: Path, pieces: int) -> None:
    """The model says the token in pieces; the log has them as one text."""
    text = f"It is {TOKEN} I think."
    async with stage("memory:", tmp_path, Scripted().says(text, pieces=pieces)) as opened:
        session = await opened.tk.create()
        await opened.tk.prompt(session.id, "what is it?")
        await opened.tk.wait(session.id)
        said = await split_answer(opened.tk, session.id)
        assert "It is [api-key 1] I think." in said
        assert TOKEN[4:12] not in said
