"""Reverts over HTTP: both generations set history and files aside, bring them back and remove them."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import jsonschema_rs
import pytest
from served import Served, served
from shapes import DOCUMENT

from turnkeeper.model import event as e
from turnkeeper.model.status import BUSY
from turnkeeper.testing.reverting import record_turn
from turnkeeper.workspace.owner import this_process

SESSION = "ses_one"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Served]:
    home = tmp_path / "home"
    home.mkdir()
    async with served(tmp_path / "place", environ={"HOME": str(home)}) as one:
        await one.stage.session(id=SESSION)
        (tmp_path / "place/kept").write_text("before\n")
        yield one


def change(place: Path) -> None:
    (place / "kept").write_text("after\n")


async def test_an_undo_and_a_redo_say_what_becomes_of_each_file_and_may_only_plan_it(
    server: Served, tmp_path: Path
) -> None:
    user, _ = await record_turn(server.stage, SESSION, change)
    kept = tmp_path / "place/kept"
    planned = await server.post(f"/session/{SESSION}/undo", {"dryRun": True})
    assert [(one["file"], one["kind"]) for one in planned["files"]] == [("kept", "restore")]
    assert planned["isPlan"]
    assert kept.read_text() == "after\n"
    done = await server.post(f"/session/{SESSION}/undo", {})
    assert (done["session"]["revert"]["messageID"], kept.read_text()) == (user, "before\n")
    assert (await server.post(f"/session/{SESSION}/undo", {}, 400))["data"]["message"].startswith("there is nothing")
    planned = await server.post(f"/session/{SESSION}/redo", {"dryRun": True})
    assert (planned["isPlan"], kept.read_text()) == (True, "before\n")
    await server.post(f"/session/{SESSION}/redo", {})
    assert kept.read_text() == "after\n"


async def test_the_first_generation_reverts_and_brings_back(server: Served, tmp_path: Path) -> None:
    user, turn = await record_turn(server.stage, SESSION, change)
    done = await server.post(f"/session/{SESSION}/revert", {"messageID": turn})
    assert (tmp_path / "place/kept").read_text() == "before\n"
    assert set(done["revert"]) == {"messageID", "snapshot", "diff"}
    assert done["revert"]["messageID"] == user
    assert done["revert"]["diff"].startswith("diff --git a/kept b/kept\nindex ")
    assert done["revert"]["diff"].endswith("\n@@ -1 +1 @@\n-after\n+before")
    assert done["summary"] == {"additions": 1, "deletions": 1, "files": 1}
    [diff] = await server.get(f"/session/{SESSION}/diff")
    assert (diff["file"], diff["status"]) == ("kept", "modified")
    again = await server.post(f"/session/{SESSION}/unrevert")
    assert "revert" not in again
    assert (tmp_path / "place/kept").read_text() == "after\n"
    assert "revert" not in await server.post(f"/session/{SESSION}/unrevert")


async def test_an_unknown_message_changes_nothing_in_the_first_generation(server: Served) -> None:
    before = await server.get(f"/session/{SESSION}")
    assert await server.post(f"/session/{SESSION}/revert", {"messageID": "msg_nope"}) == before
    refused = await server.post("/session/ses_nope/revert", {"messageID": "msg_nope"}, 404)
    assert refused["name"] == "NotFoundError"
    assert (await server.post("/session/ses_nope/unrevert", status=404))["name"] == "NotFoundError"
    wrong = await server.post(f"/session/{SESSION}/revert", {}, 400)
    assert (wrong["name"], wrong["data"]["kind"]) == ("BadRequest", "Payload")


async def test_a_running_session_is_busy(server: Served) -> None:
    user, _ = await record_turn(server.stage, SESSION, change)
    owner = this_process().but(runtime="another")
    await server.stage.tk.store.journal.append(SESSION, e.StatusChanged(status=BUSY, owner=owner))
    for path, body in (("revert", {"messageID": user}), ("unrevert", None)):
        refused = await server.post(f"/session/{SESSION}/{path}", body, 409)
        assert (refused["_tag"], refused["sessionID"]) == ("SessionBusyError", SESSION)


async def test_the_second_generation_stages_clears_and_commits(server: Served, tmp_path: Path) -> None:
    user, _ = await record_turn(server.stage, SESSION, change)
    path = f"/api/session/{SESSION}/revert"
    staged = (await server.post(f"{path}/stage", {"messageID": user}))["data"]
    assert (tmp_path / "place/kept").read_text() == "before\n"
    assert set(staged) == {"messageID", "snapshot", "diff", "files"}
    [file] = staged["files"]
    assert (file["path"], file["status"], file["additions"], file["deletions"]) == ("kept", "modified", 1, 1)
    assert (await server.get(f"/api/session/{SESSION}"))["data"]["revert"] == staged
    await server.post(f"{path}/clear", status=204)
    assert (tmp_path / "place/kept").read_text() == "after\n"
    await server.post(f"{path}/stage", {"messageID": user, "files": False})
    assert (tmp_path / "place/kept").read_text() == "after\n"
    await server.post(f"{path}/stage", {"messageID": user})
    await server.post(f"{path}/commit", status=204)
    assert [one["info"]["id"] for one in await server.get(f"/session/{SESSION}/message")] == [user]
    assert (tmp_path / "place/kept").read_text() == "before\n"
    events = await server.get(f"/api/session/{SESSION}/history?limit=100")
    kinds = [one["type"] for one in events["data"] if "revert" in one["type"]]
    staged_, cleared, committed = (f"session.next.revert.{kind}" for kind in ("staged", "cleared", "committed"))
    assert kinds == [staged_, cleared, staged_, staged_, committed]
    assert events["data"][-1]["data"].get("messageID") == user


async def test_the_second_generation_refuses_in_its_words(server: Served) -> None:
    path = f"/api/session/{SESSION}/revert"
    refused = await server.post(f"{path}/stage", {"messageID": "msg_nope"}, 404)
    assert refused == {
        "_tag": "MessageNotFoundError",
        "sessionID": SESSION,
        "messageID": "msg_nope",
        "message": "Message not found: msg_nope",
    }
    for what in ("stage", "clear", "commit"):
        body = {"messageID": "msg_nope"} if what == "stage" else None
        refused = await server.post(f"/api/session/ses_nope/revert/{what}", body, 404)
        assert (refused["_tag"], refused["sessionID"]) == ("SessionNotFoundError", "ses_nope")
    await server.post(f"{path}/clear", status=204)
    await server.post(f"{path}/commit", status=204)


async def test_the_state_of_a_revert_has_the_official_shape(server: Served) -> None:
    user, _ = await record_turn(server.stage, SESSION, change)
    staged = await server.post(f"/api/session/{SESSION}/revert/stage", {"messageID": user})
    shape = {"$ref": "#/$defs/RevertState", "$defs": DOCUMENT["$defs"]}
    faults = [error.message for error in jsonschema_rs.validator_for(shape).iter_errors(staged["data"])]
    assert faults == [], json.dumps(staged)
