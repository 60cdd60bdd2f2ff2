"""The transcript of a history: messages with their texts, reasoning, tool calls and results."""

import textwrap
from collections.abc import Iterator, Sequence

from turnkeeper.cli.part_lines import arguments, source_lines, took
from turnkeeper.cli.screen import Screen, harmless, one_line
from turnkeeper.core.lowering import partial_output
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage, Message, SystemMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import (
    AgentPart,
    CompactionPart,
    FilePart,
    ForeignPart,
    Part,
    PatchPart,
    ReasoningPart,
    RetryPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning

WIDTH_MAX = 100
"""Longer lines of prose are hard to read."""
OUTPUT_LINES = 4
INDENT = "  "


def transcript(screen: Screen, messages: Sequence[MessageWithParts]) -> str:
    """Messages, separated by empty lines."""
    return "\n\n".join("\n".join(_message(screen, one)) for one in messages)


def _message(screen: Screen, message: MessageWithParts) -> Iterator[str]:
    info = message.info
    yield _head(screen, info)
    for update in info.updates if isinstance(info, SystemMessage) else ():
        yield f"{INDENT}{screen.paint(harmless(update.key), 'dim')}"
        yield from _prose(screen, update.text, "dim")
    for part in message.parts:
        yield from _part(screen, part)
    if isinstance(info, AssistantMessage) and info.error is not None:
        yield f"{INDENT}{screen.paint(f'✗ {one_line(_failure(info.error))}', 'red')}"


def _head(screen: Screen, message: Message) -> str:
    match message:
        case UserMessage(agent=agent):
            who, about = screen.paint("user", "bold", "green"), agent
        case AssistantMessage():
            who, about = screen.paint("assistant", "bold", "blue"), f"{message.agent} · {message.model_id}"
        case SystemMessage():
            who, about = screen.paint("context", "bold", "yellow"), ""
    rest = "  ".join(text for text in (one_line(about), message.id, screen.date(message.time.created)) if text)
    return f"{who}  {screen.paint(rest, 'dim')}"


def _part(screen: Screen, part: Part) -> Iterator[str]:
    """The lines of a part. Parts that are only for the runtime, such as snapshots, have none."""
    match part:
        case TextPart(text=text):
            yield from _prose(screen, text, *(["dim"] if part.synthetic or part.ignored else []))
            yield from (f"{INDENT}{screen.paint(line, 'dim')}" for line in source_lines(part))
        case ReasoningPart(text=text):
            # The bar marks reasoning without colours.
            yield from (f"{INDENT}{screen.paint('┊', 'dim')} {line.strip()}" for line in _prose(screen, text, "dim"))
        case ToolPart():
            yield from _tool(screen, part)
        case FilePart():
            url = "attached data" if part.url.startswith("data:") else part.url
            yield _mark(screen, "◆", f"{part.filename or url} ({part.mime})")
        case PatchPart(files=files) if files:
            yield _mark(screen, "±", ", ".join(screen.path(file) for file in files))
        case SubtaskPart(agent=agent, description=description):
            yield _mark(screen, "→", f"{agent}: {description}")
        case AgentPart(name=name):
            yield _mark(screen, "@", name)
        case RetryPart(attempt=attempt, error=error):
            yield _mark(screen, "↻", f"attempt {attempt} failed: {error.data.message}")
        case CompactionPart():
            yield _mark(screen, "⋯", "older history was replaced by a summary")
        case ForeignPart(body=body):
            yield _mark(screen, "?", f"a part of the unknown type {body.get('type')!r}")
        case _:
            return


def _tool(screen: Screen, part: ToolPart) -> Iterator[str]:
    state = part.state
    match state:
        case ToolCompleted():
            icon, style, end = "✓", "green", took(state.time.start, state.time.end)
        case ToolError():
            icon, style, end = "✗", "red", took(state.time.start, state.time.end)
        case ToolRunning():
            icon, style, end = "●", "yellow", "running"
        case ToolPending():
            icon, style, end = "○", "dim", "pending"
    title = state.title if isinstance(state, ToolCompleted | ToolRunning) else None
    mark = f"{screen.paint(icon, style)} {screen.paint(harmless(part.tool), 'cyan')}"
    yield _line(screen, mark, title or arguments(state.input), end)
    if isinstance(state, ToolCompleted):
        yield from _output(screen, state.output)
    elif isinstance(state, ToolError):
        yield from _output(screen, partial_output(state.metadata))
        yield from _output(screen, state.error, "red")


def _line(screen: Screen, mark: str, title: str, end: str) -> str:
    room = (screen.width or WIDTH_MAX) - 40
    texts = (f"{INDENT}{mark}", screen.fit(one_line(title), max(room, 20)), screen.paint(end, "dim"))
    return "  ".join(text for text in texts if text)


def _output(screen: Screen, text: str, *styles: str) -> Iterator[str]:
    """The first lines of the output of a tool."""
    lines = harmless(text.strip()).splitlines()
    room = min(screen.width or WIDTH_MAX, WIDTH_MAX) - 6
    for line in lines[:OUTPUT_LINES]:
        yield f"{INDENT}{INDENT}{screen.paint(f'│ {screen.fit(line, room)}', *(styles or ('dim',)))}"
    if (more := len(lines) - OUTPUT_LINES) > 0:
        yield f"{INDENT}{INDENT}{screen.paint(f'│ … {more} more', 'dim')}"


def _prose(screen: Screen, text: str, *styles: str) -> Iterator[str]:
    width = min(screen.width, WIDTH_MAX) - len(INDENT) if screen.width is not None else None
    for line in harmless(text.strip("\n")).splitlines():
        space = line[: len(line) - len(line.lstrip())]
        pieces = [line]
        if width is not None and len(line) > width:
            # Long words such as paths are not broken, so that they can be copied.
            pieces = textwrap.wrap(line, width, subsequent_indent=space, break_long_words=False, break_on_hyphens=False)
        for piece in pieces or [""]:
            yield f"{INDENT}{screen.paint(piece, *styles)}" if piece.strip() else ""


def _mark(screen: Screen, mark: str, text: str) -> str:
    return f"{INDENT}{screen.paint(f'{mark} {one_line(text)}', 'dim')}"


def _failure(failure: Failure) -> str:
    name = type(failure).__struct_config__.tag
    return f"{name}: {getattr(failure.data, 'message', '')}".rstrip(": ")
