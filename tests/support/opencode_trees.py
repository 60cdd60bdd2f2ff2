"""opencode's JSON trees as they lay on disk, before the first migration and after it."""

import json
from pathlib import Path
from typing import Any

PROJECT = "5b0fc27fd1de8d7c1e6a8dd0ffb2bdd6f05dd1a0"
DIFF = {"file": "a.py", "before": "1\n", "after": "2\n", "additions": 1, "deletions": 1}
USAGE = {"input": 1, "output": 2, "reasoning": 0, "cache": {"read": 0, "write": 0}}


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=2))


def an_old_project(data: Path, worktree: str) -> None:
    """A tree from before 0.6, with a message of each of its three shapes."""
    session = data / "project/home-user-weather/storage/session"
    write(
        session / "info/ses_old.json",
        {"id": "ses_old", "title": "Old", "version": "0.1", "time": {"created": 1, "updated": 9}},
    )
    write(session / "share/ses_old.json", {"secret": "s", "url": "https://share.example/old"})
    path = {"cwd": worktree, "root": worktree}
    call = {"state": "result", "toolCallId": "call_1", "toolName": "bash", "args": {"command": "ls"}, "result": "a\nb"}
    assistant = {"modelID": "m", "providerID": "p", "path": path, "cost": 0.5, "tokens": USAGE, "system": ["be kind"]}
    described = {
        "id": "msg_2",
        "role": "assistant",
        "parts": [{"type": "text", "text": "well"}, {"type": "tool-invocation", "toolInvocation": call}],
        "metadata": {
            "sessionID": "ses_old",
            "time": {"created": 2, "completed": 3},
            "assistant": assistant,
            "tool": {"call_1": {"title": "List", "time": {"start": 2, "end": 3}, "exit": 0}},
        },
    }
    asked = {
        "id": "msg_1",
        "role": "user",
        "parts": [{"type": "text", "text": "hello"}, {"type": "source-url", "url": "https://x.example"}],
        "metadata": {"sessionID": "ses_old", "time": {"created": 1}},
    }
    embedded = {
        "id": "msg_3",
        "sessionID": "ses_old",
        "role": "assistant",
        "time": {"created": 4},
        "path": path,
        "cost": 0.25,
        "tokens": USAGE,
        "parts": [{"id": "call_9", "type": "tool", "tool": "bash", "state": {"status": "pending"}}],
    }
    separate = {
        "id": "msg_4",
        "sessionID": "ses_old",
        "role": "assistant",
        "time": {"created": 5},
        "mode": "plan",
        "path": path,
    }
    for message in (asked, described, embedded, separate):
        write(session / f"message/ses_old/{message['id']}.json", message)
    part = {"id": "prt_4", "sessionID": "ses_old", "messageID": "msg_4", "type": "text", "text": "done"}
    write(session / "part/ses_old/msg_4/prt_4.json", part)


def a_tree(data: Path, marker: str, **session: Any) -> None:
    """A tree since 0.6, as it was after so many migrations."""
    storage = data / "storage"
    storage.mkdir(parents=True, exist_ok=True)
    (storage / "migration").write_text(marker)
    write(
        storage / f"project/{PROJECT}.json", {"id": PROJECT, "vcs": "git", "worktree": "/home/user/weather", "time": {}}
    )
    info: dict[str, Any] = {
        "id": "ses_1",
        "projectID": PROJECT,
        "directory": "/home/user/weather",
        "title": "Tree",
        "version": "1.0",
    }
    info["time"] = {"created": 10, "updated": 20}
    write(storage / f"session/{PROJECT}/ses_1.json", {**info, **session})
    place = {"sessionID": "ses_1"}
    write(storage / "message/ses_1/msg_a.json", {"id": "msg_a", **place, "role": "user", "time": {"created": 11}})
    turn = {"role": "assistant", "providerID": "p", "modelID": "m", "mode": "build", "cost": 0.5, "tokens": USAGE}
    write(
        storage / "message/ses_1/msg_b.json", {"id": "msg_b", **place, **turn, "time": {"created": 12, "completed": 13}}
    )
    # Minted around the moment when the time in an id starts again: the later part has the smaller id.
    text = {"type": "text", "messageID": "msg_b", **place}
    write(storage / "part/msg_b/prt_fffffffff001AAAAAAAAAAAAAA.json", {**text, "text": "first"})
    write(storage / "part/msg_b/prt_000000002001AAAAAAAAAAAAAA.json", {**text, "text": "second"})
    write(
        storage / "todo/ses_1.json",
        [{"id": "1", "content": "c", "status": "pending", "priority": "low"}, {"no": "task"}],
    )
    write(storage / "session_share/ses_1.json", {"id": "x", "secret": "s", "url": "https://share.example/1"})
