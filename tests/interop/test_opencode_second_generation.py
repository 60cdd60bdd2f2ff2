"""Messages of opencode's second generation become messages and parts like all others, and lose nothing."""

from pathlib import Path
from typing import Any

from opencode_files import SECOND, change, database, dump, exported, second_message

from turnkeeper.app import Turnkeeper
from turnkeeper.model.message import SystemMessage

START = 1794770891600


async def added(tk: Turnkeeper, path: Path, *names: str) -> list[Any]:
    """Import, and the export of what these rows became."""
    report = await tk.import_opencode(path)
    assert (report.skipped, report.unreadable) == ((), ())
    export = await exported(tk, SECOND)
    messages: list[Any] = export["messages"]
    for one in export.get("turnkeeper", {}).get("system", []):
        messages.insert(one["index"], one)
    assert [message["info"]["id"] for message in messages[3:]][: len(names)] == list(names)
    return messages[3:]


def bare(part: dict[str, Any]) -> dict[str, Any]:
    """A part without its place."""
    return {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}


async def test_a_prompt_keeps_its_files_and_agents(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    file = {"uri": "file:///home/user/a%20b.py", "mime": "text/plain", "name": "a b.py", "description": "d"}
    source = {"start": 1, "end": 4, "text": "@ab"}
    agent = {"name": "plan", "source": {"start": 5, "end": 9, "text": "@plan"}}
    name = second_message(
        path, 20, "user", text="hi", files=[{**file, "source": source}], agents=[agent], metadata={"k": 1}
    )
    [message] = await added(tk, path, name)
    assert message["info"]["role"] == "user"
    assert message["info"]["model"] == {"providerID": "fake", "modelID": "fake-1"}
    assert message["info"]["v2"] == {"type": "user", "metadata": {"k": 1}}
    mention = {"value": "@ab", "start": 1, "end": 4}
    assert list(map(bare, message["parts"])) == [
        {"type": "text", "text": "hi"},
        {
            "type": "file",
            "mime": "text/plain",
            "filename": "a b.py",
            "url": "file:///home/user/a%20b.py",
            "source": {"type": "file", "path": "/home/user/a b.py", "text": mention},
            "description": "d",
        },
        {"type": "agent", "name": "plan", "source": {"value": "@plan", "start": 5, "end": 9}},
    ]


async def test_a_turn_keeps_its_content_in_order(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    time = {"created": START, "ran": START + 1, "completed": START + 2, "pruned": START + 9}
    image = {"type": "file", "uri": "data:image/png;base64,AA==", "mime": "image/png", "name": "a.png"}
    said = {"type": "text", "text": "out"}
    done = {"status": "completed", "input": {"a": 1}, "structured": {"b": 2}, "content": [said, image], "result": 3}
    provider = {"executed": True, "metadata": {"m": 1}, "resultMetadata": {"r": 2}}
    content = [
        {"type": "reasoning", "id": "r0", "text": "hm", "providerMetadata": {"sig": "x"}, "time": {"created": START}},
        {"type": "text", "id": "t0", "text": "well"},
        {"type": "tool", "id": "call_1", "name": "read", "provider": provider, "state": done, "time": time},
        {"type": "tool", "id": "call_2", "name": "read", "state": {"status": "pending", "input": '{"a":'}, "time": {}},
        {
            "type": "tool",
            "id": "call_3",
            "name": "bash",
            "state": {"status": "running", "input": {"c": 1}, "structured": {"p": 1}, "content": []},
            "time": {"created": START, "ran": START + 5},
        },
        {
            "type": "tool",
            "id": "call_4",
            "name": "bash",
            "state": {"status": "error", "input": {}, "structured": {}, "content": [], "error": {"message": "no"}},
            "time": {"created": START, "completed": START + 7},
        },
        {"type": "hologram", "id": "h0"},
    ]
    name = second_message(
        path,
        21,
        "assistant",
        time={"created": START, "completed": START + 9},
        agent="plan",
        model={"id": "m", "providerID": "p", "variant": "high"},
        content=content,
        snapshot={"start": "aaa", "end": "bbb", "files": ["src/a.py"]},
        finish="error",
        cost=0.5,
        tokens={"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
        error={"type": "unknown", "message": "broke"},
    )
    [message] = await added(tk, path, name)
    info, parts = message["info"], list(map(bare, message["parts"]))
    assert (info["agent"], info["mode"], info["modelID"], info["variant"]) == ("plan", "plan", "m", "high")
    assert info["error"] == {"name": "UnknownError", "data": {"message": "broke"}}
    assert info["v2"]["error"] == {"type": "unknown", "message": "broke"}
    assert [part["type"] for part in parts] == [
        *("step-start", "reasoning", "text", "tool", "tool", "tool", "tool", "unknown", "step-finish", "patch")
    ]
    assert parts[1]["metadata"] == {"sig": "x"}
    assert parts[1]["time"] == {"start": START}
    completed = parts[3]
    assert completed["provider"] == provider
    assert completed["state"]["output"] == "out"
    assert completed["state"]["time"] == {"start": START + 1, "end": START + 2, "compacted": START + 9}
    assert completed["state"]["attachments"][0]["url"] == "data:image/png;base64,AA=="
    assert (completed["state"]["content"], completed["state"]["structured"]) == ([said, image], {"b": 2})
    assert completed["state"]["result"] == 3
    assert completed["v2"] == {"time": time}
    assert parts[4]["state"] == {"status": "pending", "input": {}, "raw": '{"a":'}
    assert parts[5]["state"]["metadata"] == {"p": 1}
    assert parts[6]["state"]["error"] == "no"
    assert parts[6]["state"]["v2"] == {"error": {"message": "no"}}
    assert parts[7]["v2"] == {"type": "hologram", "id": "h0"}
    assert parts[8]["snapshot"] == "bbb"
    assert parts[9]["files"] == ["/home/user/weather/src/a.py"]
    # The row of a session does not count these, and neither do we.
    assert (await tk.get(SECOND)).cost == 0


async def test_what_only_the_model_saw_is_a_system_message(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    names = [
        second_message(path, 20, "system", text="the date changed"),
        second_message(path, 21, "agent-switched", agent="plan"),
        second_message(path, 22, "model-switched", model={"id": "m2", "providerID": "p2"}),
        second_message(path, 23, "synthetic", text="go on"),
    ]
    messages = await added(tk, path, *names)
    assert [message["info"]["role"] for message in messages] == ["system", "system", "system", "user"]
    assert messages[0]["info"]["updates"] == [{"key": "opencode", "text": "the date changed"}]
    assert messages[1]["info"]["v2"] == {"type": "agent-switched", "agent": "plan"}
    assert messages[2]["info"]["v2"] == {"type": "model-switched", "model": {"id": "m2", "providerID": "p2"}}
    # What was switched holds for what comes after.
    assert messages[3]["info"]["agent"] == "plan"
    assert messages[3]["info"]["model"] == {"providerID": "p2", "modelID": "m2"}
    assert bare(messages[3]["parts"][0]) == {"type": "text", "text": "go on", "synthetic": True}
    stored = (await tk.message(SECOND, names[0])).info
    assert isinstance(stored, SystemMessage)


async def test_a_shell_command_is_a_call_of_bash(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    time = {"created": START, "completed": START + 3}
    done = second_message(path, 20, "shell", callID="c1", command="ls", output="a\n", time=time)
    running = second_message(path, 21, "shell", callID="c2", command="top", output="")
    first, second = await added(tk, path, done, running)
    assert first["info"]["role"] == "assistant"
    assert first["parts"][0]["state"] == {
        "status": "completed",
        "input": {"command": "ls"},
        "output": "a\n",
        "title": "",
        "metadata": {"output": "a\n"},
        "time": {"start": START, "end": START + 3},
    }
    assert second["parts"][0]["state"]["status"] == "running"


async def test_a_compaction_is_a_prompt_and_its_summary(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    name = second_message(path, 20, "compaction", reason="auto", summary="so far", recent="last words")
    asked, summary = await added(tk, path, name)
    assert list(map(bare, asked["parts"])) == [{"type": "compaction", "auto": True}]
    assert summary["info"]["parentID"] == name
    assert summary["info"]["summary"] is True
    assert [part["text"] for part in summary["parts"]] == ["so far", "last words"]


async def test_a_message_of_an_unknown_type_is_reported(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    name = second_message(path, 20, "telepathy", text="?")
    [found] = (await tk.import_opencode(path)).skipped
    assert (found.message_id, found.reason) == (name, "a message of the unknown type 'telepathy'")


async def test_both_generations_in_one_session_stand_in_the_order_of_their_times(
    tk: Turnkeeper, tmp_path: Path
) -> None:
    path = database(tmp_path)
    data = '{"role": "user", "time": {"created": 1794770890900}, "agent": "build"}'
    change(
        path,
        "INSERT INTO message (id, session_id, time_created, time_updated, data)"
        f" VALUES ('msg_between', '{SECOND}', 1794770890900, 1, '{data}')",
    )
    await tk.import_opencode(path)
    order = [message["info"]["id"] for message in (await exported(tk, SECOND))["messages"]]
    assert order.index("msg_between") == 1


async def test_what_such_a_turn_cost_is_on_the_message_as_in_the_source(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    await tk.import_opencode(path)
    usage = {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}
    name = second_message(path, 20, "assistant", agent="build", content=[], finish="stop", cost=0.5, tokens=usage)
    assert (await tk.import_opencode(path)).grown == 1
    export = await exported(tk, SECOND)
    assert (export["messages"][3]["info"]["id"], export["messages"][3]["info"]["cost"]) == (name, 0.5)
    # The row of the session does not count it, then or now.
    assert (export["info"]["cost"], export["info"]["tokens"]["input"]) == (0, 0)


async def test_importing_them_again_changes_nothing(tk: Turnkeeper, tmp_path: Path) -> None:
    path = database(tmp_path)
    second_message(path, 20, "compaction", reason="manual", summary="so far", recent="last words")
    second_message(path, 21, "shell", callID="c1", command="ls", output="a\n")
    second_message(path, 22, "system", text="news")
    await tk.import_opencode(path)
    before = await dump(tk)
    report = await tk.import_opencode(path)
    assert (report.grown, report.conflicts) == (0, ())
    assert await dump(tk) == before
