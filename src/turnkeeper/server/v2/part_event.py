"""Events of the second generation for a part: the steps from its previous state to its new state."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from turnkeeper.model.parts import Part, ReasoningPart, RetryPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning
from turnkeeper.model.value import encode
from turnkeeper.server.v2 import shape

NamedEvent: TypeAlias = tuple[str, dict[str, object]]


def part_events(message_id: str, before: Mapping[str, Part], part: Part) -> Iterator[NamedEvent]:
    """The events of one part of the answer ``message_id``; ``before`` holds the previous state of all its parts."""
    known = before.get(part.id)
    whose: dict[str, object] = {"assistantMessageID": message_id}
    match part:
        case TextPart():
            yield from _block("text", {**whose, "textID": part.id}, known, part)
        case ReasoningPart():
            yield from _block("reasoning", {**whose, "reasoningID": part.id}, known, part)
        case ToolPart():
            was = known if isinstance(known, ToolPart) else None
            if shape.is_shell(before.values(), part):
                yield from _shell(message_id, was, part)
            else:
                yield from _call({**whose, "callID": part.call_id}, was, part)
        case RetryPart(attempt=attempt, error=error):
            yield "retried", {"attempt": attempt, "error": error.data}
        case _:
            return


def _block(
    kind: str, whose: dict[str, object], known: Part | None, part: TextPart | ReasoningPart
) -> Iterator[NamedEvent]:
    more: dict[str, object] = {}
    if isinstance(part, ReasoningPart) and (metadata := shape.provider_metadata(part.metadata)):
        more["providerMetadata"] = metadata
    if known is None:
        yield f"{kind}.started", {**whose, **more}
    was_open = known is None or not _is_closed(known)
    if was_open and _is_closed(part):
        yield f"{kind}.ended", {**whose, "text": part.text, **more}


def _is_closed(part: Part) -> bool:
    time = getattr(part, "time", None)
    return time is None or time.end is not None


def _shell(message_id: str, known: ToolPart | None, part: ToolPart) -> Iterator[NamedEvent]:
    if known is None:
        command = str(part.state.input.get("command", ""))
        yield "shell.started", {"messageID": message_id, "callID": part.call_id, "command": command}
    if isinstance(part.state, ToolCompleted | ToolError) and not _is_settled(known):
        yield "shell.ended", {"callID": part.call_id, "output": shape.shell_output(part.state)}


def _call(whose: dict[str, object], known: ToolPart | None, part: ToolPart) -> Iterator[NamedEvent]:
    state = part.state
    if known is None:
        yield "tool.input.started", {**whose, "name": part.tool}
    was_written = known is not None and not isinstance(known.state, ToolPending)
    if not was_written and isinstance(state, ToolRunning | ToolCompleted):
        raw = state.raw if state.raw is not None else encode(state.input).decode()
        yield "tool.input.ended", {**whose, "text": raw}
        yield "tool.called", {**whose, "tool": part.tool, "input": state.input, "provider": _provider(part)}
    if was_written and isinstance(state, ToolRunning):
        yield "tool.progress", {**whose, "structured": state.metadata or {}, "content": _progress(state)}
    if _is_settled(known):
        return
    if isinstance(state, ToolCompleted):
        body = {**whose, "structured": shape.structured_of(state), "content": shape.content_of(state)}
        if state.output_paths is not None:
            body["outputPaths"] = state.output_paths
        yield "tool.success", {**body, "provider": _provider(part, is_result=True)}
    if isinstance(state, ToolError):
        error = shape.UnknownError(message=state.error)
        yield "tool.failed", {**whose, "error": error, "provider": _provider(part, is_result=True)}


def _is_settled(known: ToolPart | None) -> bool:
    return known is not None and isinstance(known.state, ToolCompleted | ToolError)


def _progress(state: ToolRunning) -> list[object]:
    printed = (state.metadata or {}).get("output")
    return [{"type": "text", "text": printed}] if isinstance(printed, str) and printed else []


def _provider(part: ToolPart, *, is_result: bool = False) -> dict[str, object]:
    provider = part.provider
    if provider is None:
        return {"executed": False}
    metadata = shape.provider_metadata(provider.result_metadata if is_result else provider.metadata)
    return {"executed": provider.executed, **({"metadata": metadata} if metadata else {})}
