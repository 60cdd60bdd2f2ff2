"""Messages of the second generation, each derived from a stored message."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, assert_never

from turnkeeper.core.entry import Recorded
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, PatchPart, ReasoningPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning
from turnkeeper.model.session import SessionModel
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.event import switch_id
from turnkeeper.server.v2.shape import AgentAttachment, FileAttachment, TokenUsage, UnknownError


class Created(Value):
    """The times at which a message was created and completed."""

    created: int
    completed: int | None = None


class UserSaid(Value, tag_field="type", tag="user"):
    """A prompt of the user."""

    id: str
    time: Created
    text: str
    files: tuple[FileAttachment, ...] | None = None
    agents: tuple[AgentAttachment, ...] | None = None


class SyntheticSaid(Value, tag_field="type", tag="synthetic"):
    """A user message that the runtime wrote."""

    id: str
    time: Created
    session_id: str
    text: str


class SystemSaid(Value, tag_field="type", tag="system"):
    """A change of the System Context."""

    id: str
    time: Created
    text: str


class ShellRan(Value, tag_field="type", tag="shell"):
    """A shell command of the user."""

    id: str
    time: Created
    call_id: str
    command: str
    output: str


class CompactionSaid(Value, tag_field="type", tag="compaction"):
    """A summary of the history before it."""

    id: str
    time: Created
    reason: Literal["auto", "manual"]
    summary: str
    recent: str


class AgentSwitched(Value, tag_field="type", tag="agent-switched"):
    """A switch of the agent."""

    id: str
    time: Created
    agent: str


class ModelSwitched(Value, tag_field="type", tag="model-switched"):
    """A switch of the model."""

    id: str
    time: Created
    model: SessionModel


class Snapshot(Value):
    """The state of the files before and after a turn."""

    start: str | None = None
    end: str | None = None
    files: tuple[str, ...] | None = None


class AssistantSaid(Value, tag_field="type", tag="assistant"):
    """A turn of a model."""

    id: str
    time: Created
    agent: str
    model: SessionModel
    content: tuple[JsonObject, ...]
    snapshot: Snapshot | None = None
    finish: str | None = None
    cost: int | float | None = None
    tokens: TokenUsage | None = None
    error: UnknownError | None = None


ShownMessage: TypeAlias = (
    UserSaid | SyntheticSaid | SystemSaid | ShellRan | CompactionSaid | AgentSwitched | ModelSwitched | AssistantSaid
)


def said_by(message: MessageWithParts, asked: MessageWithParts | None = None) -> ShownMessage | None:
    """A message as the second generation shows it; None if it is shown as part of another message.

    ``asked`` is the compaction request that a summary answers.
    """
    info, parts = message.info, message.parts
    match info:
        case UserMessage():
            return _user(info, parts)
        case SystemMessage():
            time = Created(created=info.time.created)
            return SystemSaid(id=info.id, time=time, text=shape.text_of(info)) if info.updates else None
        case AssistantMessage():
            return _assistant(info, parts, asked)
        case _:
            assert_never(info)


def switch(recorded: Recorded) -> AgentSwitched | ModelSwitched | None:
    """A switch of agent or model, which only the log holds, as a message; None for any other entry."""
    seq, time, event = recorded
    when = Created(created=time)
    match event:
        case e.AgentSelected(agent=str() as agent):
            return AgentSwitched(id=switch_id(time, seq), time=when, agent=agent)
        case e.ModelSelected(model=SessionModel() as model):
            return ModelSwitched(id=switch_id(time, seq), time=when, model=model)
        case _:
            return None


def _user(info: UserMessage, parts: Sequence[Part]) -> ShownMessage | None:
    if shape.compaction_of(parts) is not None or shape.is_introduction(parts):
        return None
    time = Created(created=info.time.created)
    if shape.is_synthetic(parts):
        text = "\n".join(getattr(part, "text", "") for part in parts)
        return SyntheticSaid(id=info.id, time=time, session_id=info.session_id, text=text)
    prompt = shape.prompt_of(parts)
    return UserSaid(id=info.id, time=time, text=prompt.text, files=prompt.files, agents=prompt.agents)


def _assistant(info: AssistantMessage, parts: Sequence[Part], asked: MessageWithParts | None) -> ShownMessage | None:
    time = Created(created=info.time.created, completed=info.time.completed)
    if info.summary:
        if info.error is not None or info.time.completed is None:
            return None
        mark = shape.compaction_of(asked.parts) if asked is not None else None
        reason: Literal["auto", "manual"] = "auto" if mark is None or mark.auto else "manual"
        when = Created(created=info.time.created)
        return CompactionSaid(id=info.id, time=when, reason=reason, summary=shape.said(parts), recent="")
    if shape.is_shell(parts):
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        command = str(call.state.input.get("command", ""))
        output = shape.shell_output(call.state)
        return ShellRan(id=info.id, time=time, call_id=call.call_id, command=command, output=output)
    is_done = info.time.completed is not None
    return AssistantSaid(
        id=info.id,
        time=time,
        agent=info.agent,
        model=shape.model_of(info),
        content=tuple(one for part in parts if (one := _content(part, info.time.created)) is not None),
        snapshot=_snapshot(parts),
        finish=info.finish or ("error" if info.error is not None else None),
        cost=info.cost if is_done else None,
        tokens=shape.usage(info.tokens) if is_done else None,
        error=shape.error_of(info.error) if info.error is not None else None,
    )


def _snapshot(parts: Sequence[Part]) -> Snapshot | None:
    start = next((part.snapshot for part in parts if isinstance(part, StepStartPart)), None)
    end = next((part.snapshot for part in parts if isinstance(part, StepFinishPart)), None)
    files = tuple(file for part in parts if isinstance(part, PatchPart) for file in part.files)
    return Snapshot(start=start, end=end, files=files or None) if start or end or files else None


def _content(part: Part, began: int) -> JsonObject | None:
    match part:
        case TextPart():
            return {"type": "text", "id": part.id, "text": part.text}
        case ReasoningPart(time=time):
            metadata = shape.provider_metadata(part.metadata)
            when = Created(created=time.start, completed=time.end)
            more = {"providerMetadata": metadata} if metadata else {}
            return {"type": "reasoning", "id": part.id, "text": part.text, "time": when, **more}
        case ToolPart():
            return _tool(part, began)
        case _:
            return None


def _tool(part: ToolPart, began: int) -> JsonObject:
    state = part.state
    time: dict[str, int] = {"created": began}
    body: dict[str, object] = {"status": "pending", "input": ""}
    match state:
        case ToolPending(raw=raw):
            body["input"] = raw
        case ToolRunning():
            time = {"created": state.time.start, "ran": state.time.start}
            body = {"status": "running", "input": state.input, "structured": state.metadata or {}, "content": []}
        case ToolCompleted():
            content, structured = shape.content_of(state), shape.structured_of(state)
            body = {"status": "completed", "input": state.input, "content": content, "structured": structured}
            if state.output_paths is not None:
                body["outputPaths"] = state.output_paths
        case ToolError():
            error = UnknownError(message=state.error)
            body = {"status": "error", "input": state.input, "content": [], "error": error}
            body["structured"] = state.metadata or {}
        case _:
            assert_never(state)
    if isinstance(state, ToolCompleted | ToolError):
        time = {"created": state.time.start, "ran": state.time.start, "completed": state.time.end}
        if state.time.compacted is not None:
            time["pruned"] = state.time.compacted
    more = {"provider": {"executed": part.provider.executed}} if part.provider is not None else {}
    return {"type": "tool", "id": part.call_id, "name": part.tool, "state": body, "time": time, **more}
