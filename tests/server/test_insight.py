"""What the web page reads beside the messages: timeline, cost, tree, search, blame and asks."""

from pathlib import Path

from served import served

from turnkeeper.providers.scripted import Scripted


async def test_a_timeline_names_turns_epochs_and_marks_by_their_seq(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.").forever()) as server:
        session = await server.session()
        await server.ask(session, "one")
        await server.ask(session, "two")
        found = await server.get(f"/tk/session/{session}/timeline")
        assert len(found["turns"]) == 2
        assert all(turn["seq"] < turn["end"] <= found["seq"] for turn in found["turns"])
        assert [epoch["reason"] for epoch in found["epochs"]] == ["start"]
        assert [mark["kind"] for mark in found["marks"]] == ["prompt", "prompt"]
        last = found["marks"][-1]["messageID"]
        await server.post(f"/session/{session}/undo", {"messageID": last})
        await server.post(f"/session/{session}/redo", {})
        again = await server.get(f"/tk/session/{session}/timeline")
        assert [mark["kind"] for mark in again["marks"]] == ["prompt", "prompt", "undo", "redo"]


async def test_spending_is_the_sum_of_the_ledger(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.").forever()) as server:
        session = await server.session(title="Tide tables")
        await server.ask(session, "one")
        await server.ask(session, "two")
        found = await server.get(f"/tk/session/{session}/ledger")
        rows = found["rows"]
        assert found["total"]["rows"] == len(rows) >= 2
        assert found["total"]["tokens"]["input"] == sum(row["tokens"]["input"] for row in rows)
        for sums in (found["models"], found["purposes"]):
            assert sum(one["rows"] for one in sums) == len(rows)
            assert sum(one["tokens"]["output"] for one in sums) == found["total"]["tokens"]["output"]


async def test_a_tree_has_children_forks_and_the_origin(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.").forever()) as server:
        session = await server.session(title="root")
        await server.ask(session, "one")
        child = await server.session(title="child", parentID=session)
        fork = (await server.post(f"/session/{session}/fork", {}))["id"]

        async def relations(name: str) -> dict[str, str]:
            found = await server.get(f"/tk/session/{name}/tree")
            return {one["id"]: one["relation"] for one in found["relatives"]}

        assert await relations(session) == {session: "self", child: "child", fork: "fork"}
        assert await relations(child) == {session: "parent", child: "self"}
        assert await relations(fork) == {fork: "self", session: "origin"}
        await server.get("/tk/session/ses_unknown/tree", 404)


async def test_sessions_are_listed_with_descendants_forks_status_and_cost(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("Yes.").usage(input=100, output=10).forever()) as server:
        root = await server.session(title="root")
        await server.ask(root, "one")
        child = await server.session(title="child", parentID=root)
        below = await server.session(title="below", parentID=child)
        await server.ask(below, "two")
        fork = (await server.post(f"/session/{root}/fork", {}))["id"]
        found = await server.get("/tk/sessions")
        rows = {one["id"]: one for one in found["items"]}
        assert set(rows) == {root, child, below, fork}
        assert (rows[child]["parentID"], rows[below]["parentID"]) == (root, child)
        assert rows[fork]["originID"] == root
        assert "parentID" not in rows[fork]
        assert "originID" not in rows[root]
        assert [one["status"]["type"] for one in found["items"]] == ["idle"] * 4
        for one in (root, child):
            below_it = [row for row in rows.values() if row.get("parentID") == one]
            total = rows[one]["cost"] + sum(row["totalCost"] for row in below_it)
            assert rows[one]["totalCost"] == total
        first = await server.get("/tk/sessions", params={"limit": 1})
        second = await server.get("/tk/sessions", params={"limit": 1, "cursor": first["older"]})
        assert [one["id"] for one in (*first["items"], *second["items"])] == [fork, root, child, below]
        assert "older" not in second
        await server.get("/tk/sessions", 400, params={"cursor": "nonsense"})


async def test_the_list_of_sessions_says_which_one_failed_and_why(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().fails(401, message="key refused").forever()) as server:
        session = await server.session(title="failed")
        await server.ask(session, "one")
        [row] = (await server.get("/tk/sessions"))["items"]
        assert row["failure"] == "key refused"


async def test_search_finds_what_was_said_with_the_words_around_it(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("The pier is old.").forever()) as server:
        session, other = await server.session(title="Harbour"), await server.session(title="Pier")
        await server.ask(session, "look")
        found = await server.get("/tk/search", params={"words": "pier"})
        assert {(one["sessionID"], one["role"], one["snippet"]) for one in found} == {
            (session, "assistant", "The pier is old."),
            (other, "title", "Pier"),
        }
        [hit] = await server.get("/tk/search", params={"words": "old", "session": session})
        rows = (await server.get(f"/tk/session/{session}/outline"))["rows"]
        assert hit["seq"] in [row["seq"] for row in rows]
        await server.get("/tk/search", 400, params={"words": "..."})


async def test_blame_reads_files_of_the_project_only(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "tides.txt").write_text("high\nlow\n", "utf-8")
    (tmp_path / "secret.txt").write_text("hidden\n", "utf-8")
    (project / "circle").symlink_to("circle")
    async with served(project, Scripted().says("Yes.").forever()) as server:
        session = await server.session()
        found = await server.get(f"/tk/session/{session}/blame", params={"file": "tides.txt"})
        assert [line["text"] for line in found["lines"]] == ["high", "low"]
        for name in ("../secret.txt", str(tmp_path / "secret.txt"), "a\0b", "circle", "x" * 300):
            await server.get(f"/tk/session/{session}/blame", 400, params={"file": name})
        await server.get(f"/tk/session/{session}/blame", 404, params={"file": "nothing.txt"})


async def test_nothing_waits_in_a_store_without_asks(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await server.get("/tk/asks") == {"permissions": [], "questions": []}
