"""Sessions over HTTP: create, list, read, change, remove."""

from pathlib import Path
from typing import Any

from served import served
from shapes import faults

from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import allow_all
from turnkeeper.testing.harness import a_tool
from turnkeeper.tools.tool import ToolContext


async def test_a_session_is_created_read_renamed_and_removed(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        made = await server.post("/session", {"title": "First", "agent": "build"})
        path = f"/session/{made['id']}"
        assert await server.get(path) == made
        renamed = await server.call("PATCH", path, json={"title": "Second"})
        assert renamed == {**made, "title": "Second", "time": renamed["time"]}
        assert await server.call("DELETE", path) is True
        gone = await server.get(path, 404)
        assert gone["name"] == "NotFoundError"


async def test_a_session_has_the_keys_that_clients_know_and_no_others(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        made = await server.post("/session", {"model": {"providerID": "acme", "id": "large"}})
        expected = {
            "id",
            "slug",
            "projectID",
            "directory",
            "path",
            "cost",
            "tokens",
            "title",
            "model",
            "version",
            "time",
        }
        assert set(made) == expected
        forked = await server.post(f"/session/{made['id']}/fork")
        assert set(forked) <= expected


async def test_metadata_cannot_say_another_label_than_that_of_the_session(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for own, others in (("gpu", ["eu", 7, None, ""]), (None, ["eu", 7, ""])):
            made = await server.post("/session", {"metadata": {"label": own}})
            path = f"/session/{made['id']}"
            for label in others:
                refused = await server.call("PATCH", path, 400, json={"metadata": {"label": label}})
                assert "`turnkeeper session move" in refused["data"]["message"]
            same = await server.call("PATCH", path, json={"metadata": {"label": own, "more": 1}})
            assert same["metadata"] == {"label": own, "more": 1}
            assert (await server.call("PATCH", path, json={"metadata": {"more": 2}}))["metadata"] == {"more": 2}
            assert (await server.stage.tk.get(made["id"])).label == own


async def test_a_new_session_has_one_label(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        made = await server.post("/session", {"label": "gpu"})
        assert (await server.stage.tk.get(made["id"])).label == "gpu"
        refused = await server.post("/session", {"label": "gpu", "metadata": {"label": "eu"}}, 400)
        assert "contradict each other; give one of them" in refused["data"]["message"]


async def test_create_and_fork_take_an_empty_body(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        made = await server.post("/session")
        assert (await server.post(f"/session/{made['id']}/fork"))["title"].endswith("(fork #1)")


async def test_the_list_is_narrowed_by_directory_roots_search_start_and_limit(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        first = await server.session(title="Apples")
        server.stage.mint.advance(1)
        child = await server.session(title="Pears", parentID=first)
        server.stage.mint.advance(1)
        (tmp_path / "below").mkdir()
        elsewhere = await server.post("/session", {"title": "Plums"}, params={"directory": str(tmp_path / "below")})

        async def listed(**words: object) -> list[str]:
            return [one["id"] for one in await server.get("/session", params=words)]

        assert await listed() == [elsewhere["id"], child, first]
        assert await listed(directory=str(tmp_path)) == [child, first]
        assert await listed(directory=str(tmp_path), scope="project") == [elsewhere["id"], child, first]
        assert await listed(path=elsewhere["path"]) == [elsewhere["id"]]
        assert await listed(roots="true") == [elsewhere["id"], first]
        assert await listed(search="APPLES") == [first]
        assert await listed(start=elsewhere["time"]["updated"] + 1) == []
        assert await listed(limit=1) == [elsewhere["id"]]
        assert await listed(path=elsewhere["path"], limit=1) == [elsewhere["id"]]
        for order in ("asc", "desc"):
            query = {"project": elsewhere["projectID"], "subpath": elsewhere["path"], "order": order}
            assert [one["id"] for one in (await server.get("/api/session", params=query))["data"]] == [elsewhere["id"]]


async def test_a_directory_is_named_by_the_query_else_by_the_header_else_it_is_the_servers(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        (tmp_path / "a b").mkdir()
        (tmp_path / "c").mkdir()
        header = {"x-opencode-directory": str(tmp_path / "a b").replace(" ", "%20")}
        named = await server.post("/session", {}, headers=header, params={"directory": str(tmp_path / "c")})
        headed = await server.post("/session", {}, headers=header)
        plain = await server.post("/session", {})
        assert [one["directory"] for one in (named, headed, plain)] == [
            str(tmp_path / "c"),
            str(tmp_path / "a b"),
            str(tmp_path),
        ]


async def test_archiving_hides_a_session_and_null_brings_it_back(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        path = f"/session/{session}"
        archived = await server.call("PATCH", path, json={"time": {"archived": 1_700_000_000_000}})
        assert archived["time"]["archived"] == 1_700_000_000_000
        assert await server.get("/session") == []
        restored = await server.call("PATCH", path, json={"time": {"archived": None}})
        assert "archived" not in restored["time"]
        assert [one["id"] for one in await server.get("/session")] == [session]


async def test_rules_are_added_behind_those_that_are_there(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        rules = [{"permission": "bash", "pattern": name, "action": "deny"} for name in ("a", "b")]
        session = await server.session(permission=rules[:1])
        changed = await server.call("PATCH", f"/session/{session}", json={"permission": rules[1:]})
        assert changed["permission"] == rules


async def test_diffs_of_a_session_and_of_a_prompt_have_their_official_shape(tmp_path: Path) -> None:
    async def scribble(text: str, context: ToolContext) -> str:
        (context.directory / "made.txt").write_text(text)
        return "written"

    provider = Scripted().calls("scribble", text="one\n").then().says("Done.")
    given: dict[str, Any] = {"tools": [a_tool("scribble", scribble)], "snapshots": True, "ask": allow_all}
    environ = {"HOME": str(tmp_path / "home"), "TURNKEEPER_DATA": str(tmp_path / "data")}
    async with served(tmp_path / "project", provider, environ=environ, **given) as server:
        session = await server.session()
        await server.ask(session, "go")
        await server.stage.tk.wait_upkeep(session)
        [diff] = await server.get(f"/session/{session}/diff")
        assert faults("SnapshotFileDiff", diff) == []
        assert (diff["file"], diff["status"], diff["additions"], diff["deletions"]) == ("made.txt", "added", 1, 0)
        prompt, *_ = await server.get(f"/session/{session}/message")
        assert await server.get(f"/session/{session}/diff?messageID={prompt['info']['id']}") == [diff]


async def test_a_session_is_forked_as_it_was_after_an_event(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session(title="Before")
        await server.call("PATCH", f"/session/{session}", json={"title": "After"})
        forked = await server.post(f"/session/{session}/fork", {"at": 1})
        assert forked["title"] == "Before (fork #1)"
        assert faults("Session", forked) == []
        for wrong, status in (({"at": 0}, 400), ({"at": 99}, 400), ({"at": "1"}, 400), ({"worktree": "a\0b"}, 400)):
            await server.post(f"/session/{session}/fork", wrong, status)
        await server.post(f"/session/{session}/fork", {"worktree": str(tmp_path / "new")}, 404)


async def test_children_todos_and_diffs_of_a_session(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        parent = await server.session()
        child = await server.session(parentID=parent)
        assert [one["id"] for one in await server.get(f"/session/{parent}/children")] == [child]
        assert await server.get(f"/session/{parent}/todo") == []
        assert await server.get(f"/session/{parent}/diff") == []
        assert await server.get("/session/ses_nope/diff") == []
        await server.get("/session/ses_nope/todo", 404)


async def test_status_tells_only_of_sessions_that_do_something(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, Scripted().waits(gate).says("done")) as server:
        session = await server.session()
        await server.session()
        assert await server.get("/session/status") == {}
        await server.post(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "go"}]}, 204)
        await gate.wait_reached()
        assert await server.get("/session/status") == {session: {"type": "busy"}}
        gate.open()
        await server.stage.tk.wait(session)
        assert await server.get("/session/status") == {}
