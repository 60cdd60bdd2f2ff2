"""The wire: every value is written with the names clients know, and read back as it was."""

from typing import Any, get_args

import msgspec
import pytest

from turnkeeper.core.entry import KINDS
from turnkeeper.model import failure as f
from turnkeeper.model import parts as p
from turnkeeper.model.message import (
    AssistantMessage,
    AssistantTime,
    JsonSchemaFormat,
    Message,
    MessageSummary,
    MessageTime,
    ModelChoice,
    TextFormat,
    TurnPath,
    UserMessage,
)
from turnkeeper.model.parts.base import Mention, Span
from turnkeeper.model.parts.file import FileSource, Position, Range, ResourceSource, SymbolSource
from turnkeeper.model.parts.marks import RetryTime
from turnkeeper.model.parts.tool import (
    RunningTime,
    SettledTime,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolProvider,
    ToolRunning,
    ToolState,
)
from turnkeeper.model.permission import Rule
from turnkeeper.model.session import (
    CacheTokens,
    FileDiff,
    Origin,
    Revert,
    Session,
    SessionModel,
    SessionTime,
    Share,
    Summary,
    Tokens,
)
from turnkeeper.model.status import BUSY, IDLE, Retrying, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value, encode, wire_name
from turnkeeper.testing.builders import a_system, every_event

TOKENS = Tokens(total=9, input=1, output=2, reasoning=3, cache=CacheTokens(read=4, write=5))
TOKENS_JSON = {"total": 9, "input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}}
DIFF = FileDiff(file="a", patch="p", additions=1, deletions=2, status="added")
DIFF_JSON = {"file": "a", "patch": "p", "additions": 1, "deletions": 2, "status": "added"}
API = f.ApiFailure(
    data=f.ApiData(
        message="m",
        status_code=529,
        is_retryable=True,
        response_headers={"a": "b"},
        response_body="b",
        metadata={"k": "v"},
    )
)
API_JSON = {
    "name": "APIError",
    "data": {
        "message": "m",
        "statusCode": 529,
        "isRetryable": True,
        "responseHeaders": {"a": "b"},
        "responseBody": "b",
        "metadata": {"k": "v"},
    },
}

SESSION = Session(
    id="ses_1",
    slug="calm-otter",
    project_id="prj",
    workspace_id="wrk_1",
    directory="/d",
    path="p",
    parent_id="ses_0",
    origin=Origin(session_id="ses_x", message_id="msg_x"),
    title="t",
    agent="build",
    model=SessionModel(id="large", provider_id="acme", variant="default"),
    version="1",
    metadata={"a": [1]},
    summary=Summary(additions=1, deletions=2, files=3, diffs=(DIFF,)),
    cost=0.5,
    tokens=TOKENS.but(total=None),
    share=Share(url="u"),
    permission=(Rule(permission="bash", pattern="*", action="ask"),),
    revert=Revert(message_id="msg_1", part_id="prt_1", snapshot="s", diff="d", files=({"path": "x"},)),
    time=SessionTime(created=1, updated=2, compacting=3, archived=4.5),
)
SESSION_JSON = {
    "id": "ses_1",
    "slug": "calm-otter",
    "projectID": "prj",
    "workspaceID": "wrk_1",
    "directory": "/d",
    "path": "p",
    "parentID": "ses_0",
    "origin": {"sessionID": "ses_x", "messageID": "msg_x"},
    "title": "t",
    "agent": "build",
    "model": {"id": "large", "providerID": "acme", "variant": "default"},
    "version": "1",
    "metadata": {"a": [1]},
    "summary": {"additions": 1, "deletions": 2, "files": 3, "diffs": [DIFF_JSON]},
    "cost": 0.5,
    "tokens": {"input": 1, "output": 2, "reasoning": 3, "cache": {"read": 4, "write": 5}},
    "share": {"url": "u"},
    "permission": [{"permission": "bash", "pattern": "*", "action": "ask"}],
    "revert": {"messageID": "msg_1", "partID": "prt_1", "snapshot": "s", "diff": "d", "files": [{"path": "x"}]},
    "time": {"created": 1, "updated": 2, "compacting": 3, "archived": 4.5},
}

USER = UserMessage(
    id="msg_1",
    session_id="ses_1",
    time=MessageTime(created=1),
    agent="build",
    model=ModelChoice(provider_id="acme", model_id="large", variant="high"),
    format=JsonSchemaFormat(schema={"type": "object"}, retry_count=3),
    summary=MessageSummary(title="t", body="b", diffs=(DIFF,)),
    system="s",
    tools={"bash": False},
)
USER_JSON = {
    "id": "msg_1",
    "sessionID": "ses_1",
    "role": "user",
    "time": {"created": 1},
    "agent": "build",
    "model": {"providerID": "acme", "modelID": "large", "variant": "high"},
    "format": {"type": "json_schema", "schema": {"type": "object"}, "retryCount": 3},
    "summary": {"title": "t", "body": "b", "diffs": [DIFF_JSON]},
    "system": "s",
    "tools": {"bash": False},
}

ASSISTANT = AssistantMessage(
    id="msg_2",
    session_id="ses_1",
    time=AssistantTime(created=1, completed=2),
    error=API,
    parent_id="msg_1",
    model_id="large",
    provider_id="acme",
    variant="high",
    mode="build",
    agent="build",
    path=TurnPath(cwd="/c", root="/r"),
    summary=True,
    cost=0.25,
    tokens=TOKENS,
    structured={"a": 1},
    finish="stop",
)
ASSISTANT_JSON = {
    "id": "msg_2",
    "sessionID": "ses_1",
    "role": "assistant",
    "time": {"created": 1, "completed": 2},
    "error": API_JSON,
    "parentID": "msg_1",
    "modelID": "large",
    "providerID": "acme",
    "variant": "high",
    "mode": "build",
    "agent": "build",
    "path": {"cwd": "/c", "root": "/r"},
    "summary": True,
    "cost": 0.25,
    "tokens": TOKENS_JSON,
    "structured": {"a": 1},
    "finish": "stop",
}

MENTION = Mention(value="@a", start=0, end=2)
MENTION_JSON = {"value": "@a", "start": 0, "end": 2}
ID: dict[str, Any] = {"id": "prt_1", "session_id": "ses_1", "message_id": "msg_1"}
ID_JSON = {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1"}
FILE = p.FilePart(**ID, mime="text/plain", filename="a", url="file:///a")
FILE_JSON = {**ID_JSON, "type": "file", "mime": "text/plain", "filename": "a", "url": "file:///a"}
SYMBOL = SymbolSource(
    path="/a",
    range=Range(start=Position(line=1, character=2), end=Position(line=3, character=4)),
    name="f",
    kind=12,
    text=MENTION,
)
SYMBOL_JSON = {
    "type": "symbol",
    "path": "/a",
    "range": {"start": {"line": 1, "character": 2}, "end": {"line": 3, "character": 4}},
    "name": "f",
    "kind": 12,
    "text": MENTION_JSON,
}
PROVIDER = ToolProvider(executed=True, metadata={"a": 1}, result_metadata={"b": 2})


def tool(state: ToolState) -> p.ToolPart:
    return p.ToolPart(**ID, call_id="call_1", tool="bash", state=state)


def tool_json(**state: object) -> dict[str, object]:
    return {**ID_JSON, "type": "tool", "callID": "call_1", "tool": "bash", "state": state}


SETTLED = SettledTime(start=1, end=2, compacted=3)
SETTLED_JSON = {"start": 1, "end": 2, "compacted": 3}

VALUES: list[tuple[object, Value, object]] = [
    (Session, SESSION, SESSION_JSON),
    (Message, USER, USER_JSON),
    (Message, USER.but(format=TextFormat()), {**USER_JSON, "format": {"type": "text"}}),
    (Message, ASSISTANT, ASSISTANT_JSON),
    (
        Message,
        a_system("ses_1", "msg_3", "news"),
        {
            "id": "msg_3",
            "sessionID": "ses_1",
            "role": "system",
            "time": {"created": 1794767525690},
            "updates": [{"key": "component/0", "text": "news"}],
        },
    ),
    (
        p.Part,
        p.TextPart(**ID, text="t", synthetic=True, ignored=False, time=Span(start=1, end=2), metadata={"a": 1}),
        {
            **ID_JSON,
            "type": "text",
            "text": "t",
            "synthetic": True,
            "ignored": False,
            "time": {"start": 1, "end": 2},
            "metadata": {"a": 1},
        },
    ),
    (
        p.Part,
        p.ReasoningPart(**ID, text="t", metadata={"signature": "x"}, time=Span(start=1)),
        {**ID_JSON, "type": "reasoning", "text": "t", "metadata": {"signature": "x"}, "time": {"start": 1}},
    ),
    (p.Part, FILE, FILE_JSON),
    (
        p.Part,
        FILE.but(source=FileSource(path="/a", text=MENTION)),
        {**FILE_JSON, "source": {"type": "file", "path": "/a", "text": MENTION_JSON}},
    ),
    (p.Part, FILE.but(source=SYMBOL), {**FILE_JSON, "source": SYMBOL_JSON}),
    (
        p.Part,
        FILE.but(source=ResourceSource(client_name="c", uri="u", text=MENTION)),
        {**FILE_JSON, "source": {"type": "resource", "clientName": "c", "uri": "u", "text": MENTION_JSON}},
    ),
    (p.Part, tool(ToolPending(input={}, raw="{")), tool_json(status="pending", input={}, raw="{")),
    (
        p.Part,
        tool(ToolRunning(input={"a": 1}, title="t", metadata={"m": 1}, time=RunningTime(start=1))),
        tool_json(status="running", input={"a": 1}, title="t", metadata={"m": 1}, time={"start": 1}),
    ),
    (
        p.Part,
        tool(
            ToolCompleted(
                input={},
                raw="{}",
                output="o",
                title="t",
                metadata={},
                time=SETTLED,
                attachments=(FILE,),
                structured=[1],
                content=({"type": "text"},),
                output_paths=("/o",),
            )
        ),
        tool_json(
            status="completed",
            input={},
            raw="{}",
            output="o",
            title="t",
            metadata={},
            time=SETTLED_JSON,
            attachments=[FILE_JSON],
            structured=[1],
            content=[{"type": "text"}],
            outputPaths=["/o"],
        ),
    ),
    (
        p.Part,
        tool(ToolError(input={}, error="e", metadata={"interrupted": True}, time=SETTLED)),
        tool_json(status="error", input={}, error="e", metadata={"interrupted": True}, time=SETTLED_JSON),
    ),
    (
        p.Part,
        tool(ToolPending(input={}, raw="")).but(metadata={"providerExecuted": True}, provider=PROVIDER),
        {
            **tool_json(status="pending", input={}, raw=""),
            "metadata": {"providerExecuted": True},
            "provider": {"executed": True, "metadata": {"a": 1}, "resultMetadata": {"b": 2}},
        },
    ),
    (p.Part, p.StepStartPart(**ID, snapshot="s"), {**ID_JSON, "type": "step-start", "snapshot": "s"}),
    (
        p.Part,
        p.StepFinishPart(**ID, reason="stop", snapshot="s", cost=1, tokens=TOKENS),
        {**ID_JSON, "type": "step-finish", "reason": "stop", "snapshot": "s", "cost": 1, "tokens": TOKENS_JSON},
    ),
    (p.Part, p.SnapshotPart(**ID, snapshot="s"), {**ID_JSON, "type": "snapshot", "snapshot": "s"}),
    (p.Part, p.PatchPart(**ID, hash="h", files=("/a",)), {**ID_JSON, "type": "patch", "hash": "h", "files": ["/a"]}),
    (
        p.Part,
        p.AgentPart(**ID, name="a", source=MENTION),
        {**ID_JSON, "type": "agent", "name": "a", "source": MENTION_JSON},
    ),
    (
        p.Part,
        p.SubtaskPart(
            **ID, prompt="p", description="d", agent="a", model=ModelChoice(provider_id="x", model_id="y"), command="c"
        ),
        {
            **ID_JSON,
            "type": "subtask",
            "prompt": "p",
            "description": "d",
            "agent": "a",
            "model": {"providerID": "x", "modelID": "y"},
            "command": "c",
        },
    ),
    (
        p.Part,
        p.RetryPart(**ID, attempt=1, error=API, time=RetryTime(created=1)),
        {**ID_JSON, "type": "retry", "attempt": 1, "error": API_JSON, "time": {"created": 1}},
    ),
    (
        p.Part,
        p.CompactionPart(**ID, auto=True, overflow=False, tail_start_id="msg_0"),
        {**ID_JSON, "type": "compaction", "auto": True, "overflow": False, "tail_start_id": "msg_0"},
    ),
    (p.Part, p.ForeignPart(**ID, body={"type": "new"}), {**ID_JSON, "type": "foreign", "body": {"type": "new"}}),
    (
        f.Failure,
        f.AuthFailure(data=f.AuthData(provider_id="a", message="m")),
        {"name": "ProviderAuthError", "data": {"providerID": "a", "message": "m"}},
    ),
    (
        f.Failure,
        f.UnknownFailure(data=f.UnknownData(message="m", ref="r")),
        {"name": "UnknownError", "data": {"message": "m", "ref": "r"}},
    ),
    (f.Failure, f.OutputLengthFailure(data=f.NoData()), {"name": "MessageOutputLengthError", "data": {}}),
    (
        f.Failure,
        f.AbortedFailure(data=f.MessageData(message="m")),
        {"name": "MessageAbortedError", "data": {"message": "m"}},
    ),
    (
        f.Failure,
        f.StructuredOutputFailure(data=f.StructuredOutputData(message="m", retries=2)),
        {"name": "StructuredOutputError", "data": {"message": "m", "retries": 2}},
    ),
    (
        f.Failure,
        f.OverflowFailure(data=f.OverflowData(message="m", response_body="b")),
        {"name": "ContextOverflowError", "data": {"message": "m", "responseBody": "b"}},
    ),
    (
        f.Failure,
        f.ContentFilterFailure(data=f.MessageData(message="m")),
        {"name": "ContentFilterError", "data": {"message": "m"}},
    ),
    (f.Failure, API, API_JSON),
    (FileDiff, DIFF, DIFF_JSON),
    (
        FileDiff,
        FileDiff(before="a", after="b", additions=0, deletions=0),
        {"before": "a", "after": "b", "additions": 0, "deletions": 0},
    ),
    (
        Todo,
        Todo(content="c", status="pending", priority="low", id="1"),
        {"content": "c", "status": "pending", "priority": "low", "id": "1"},
    ),
    (Status, IDLE, {"type": "idle"}),
    (Status, BUSY, {"type": "busy"}),
    (
        Status,
        Retrying(attempt=2, message="m", action={"a": 1}, next=5),
        {"type": "retry", "attempt": 2, "message": "m", "action": {"a": 1}, "next": 5},
    ),
]


@pytest.mark.parametrize(
    ("kind", "value", "json"), VALUES, ids=[f"{n}-{type(v).__name__}" for n, (_, v, _) in enumerate(VALUES)]
)
def test_a_value_is_written_with_the_names_clients_know_and_read_back(kind: Any, value: Value, json: object) -> None:
    written = encode(value)
    assert msgspec.json.decode(written) == json
    assert msgspec.json.decode(written, type=kind) == value
    assert msgspec.json.decode(encode(json), type=kind) == value


def test_every_message_part_and_failure_is_in_the_table() -> None:
    shown = {type(value) for _, value, _ in VALUES}
    assert {*get_args(p.Part), *get_args(f.Failure), *get_args(Message), *get_args(Status)} <= shown


def test_what_is_not_known_is_left_out() -> None:
    bare = UserMessage(
        id="m", session_id="s", time=MessageTime(created=1), agent="a", model=USER.model.but(variant=None)
    )
    assert msgspec.json.decode(encode(bare)) == {
        "id": "m",
        "sessionID": "s",
        "role": "user",
        "time": {"created": 1},
        "agent": "a",
        "model": {"providerID": "acme", "modelID": "large"},
    }


def test_a_place_in_the_log_and_unknown_fields_stay_beside_the_rest() -> None:
    kept = USER.but(seq=7, extra={"set": {"new": 1}})
    assert msgspec.json.decode(encode(kept)) == {**USER_JSON, "seq": 7, "$extra": {"set": {"new": 1}}}
    assert msgspec.json.decode(encode(kept), type=Message) == kept


@pytest.mark.parametrize("event", every_event(), ids=lambda event: type(event).__name__)
def test_an_event_read_back_is_the_same_event(event: Value) -> None:
    assert msgspec.json.decode(encode(event), type=type(event)) == event


def test_every_kind_of_event_was_read_back() -> None:
    assert {type(event) for event in every_event()} == set(KINDS.values())


@pytest.mark.parametrize(
    ("name", "spelt"),
    [("id", "id"), ("session_id", "sessionID"), ("retry_count", "retryCount"), ("is_retryable", "isRetryable")],
)
def test_names_are_spelt_as_the_wire_has_them(name: str, spelt: str) -> None:
    assert wire_name(name) == spelt


def test_a_value_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        SESSION.title = "other"  # type: ignore[misc] # Frozen: it must be refused.
    assert SESSION.but(title="other").title == "other"
    assert SESSION.title == "t"
