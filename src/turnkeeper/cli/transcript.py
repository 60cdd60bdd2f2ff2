"""The transcript of a history: messages with their texts, reasoning, tool calls and results."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from turnkeeper.cli.part_lines import arguments, given_title, source_lines, took
from turnkeeper.cli.plain import ending_text
from turnkeeper.cli.request_lines import permission_wait, question_wait
from turnkeeper.cli.screen import Screen, harmless, one_line, plural
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
from turnkeeper.model.permission import AskedBy, PermissionRequest
from turnkeeper.model.question import QuestionRequest

WIDTH_MAX = 100
"""Longer lines of prose are hard to read."""
OUTPUT_LINES = 4
INDENT = "  "

Waiting: TypeAlias = Mapping[AskedBy, PermissionRequest | QuestionRequest]
"""The requests that wait for an answer, by the call that asks."""


class Undone(NamedTuple):
    """The beginning of a pending undo. ``is_inside``: inside or after the message, instead of with it."""

    message: Message
    is_inside: bool

    def has(self, message: Message) -> bool:
        """Whether a message is undone. A server does not tell the seq; then the ids tell the order."""
        if message.id == self.message.id:
            return not self.is_inside
        return (message.seq, message.id) > (self.message.seq, self.message.id)


def transcript(
    screen: Screen,
    messages: Sequence[MessageWithParts],
    waiting: Waiting = MappingProxyType({}),
    undone: Undone | None = None,
) -> str:
    """Messages, separated by empty lines. Those that are undone say so."""
    return "\n\n".join("\n".join(_message(screen, one, waiting, undone)) for one in messages)


def _message(screen: Screen, message: MessageWithParts, waiting: Waiting, undone: Undone | None) -> Iterator[str]:
    info = message.info
    mark = screen.paint("  undone", "yellow") if undone is not None and undone.has(info) else ""
    yield _head(screen, info) + mark
    for update in info.updates if isinstance(info, SystemMessage) else ():
        yield f"{INDENT}{screen.paint(harmless(update.key), 'dim')}"
        yield from _prose(screen, update.text, "dim")
    for part, count in _counted(message.parts):
        yield from _foreign(screen, part, count) if isinstance(part, ForeignPart) else _part(screen, part, waiting)
    if isinstance(info, AssistantMessage) and (problem := _problem(info)):
        yield f"{INDENT}{screen.paint(f'✗ {problem}', 'red')}"


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


def _part(screen: Screen, part: Part, waiting: Waiting) -> Iterator[str]:
    """The lines of a part. Parts that are only for the runtime, such as snapshots, have none."""
    match part:
        case TextPart(text=text):
            yield from _prose(screen, text, *(["dim"] if part.synthetic or part.ignored else []))
            yield from (f"{INDENT}{screen.paint(line, 'dim')}" for line in source_lines(part))
        case ReasoningPart(text=text):
            # The bar marks reasoning without colours.
            yield from (f"{INDENT}{screen.paint('┊', 'dim')} {line.strip()}" for line in _prose(screen, text, "dim"))
        case ToolPart():
            request = waiting.get(AskedBy(message_id=part.message_id, call_id=part.call_id))
            yield from _tool(screen, part) if request is None else _waiting_tool(screen, part, request)
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
        case _:
            return


def _counted(parts: Sequence[Part]) -> Iterator[tuple[Part, int]]:
    """The parts, each with 1; of neighbours of one unknown type the first, with their count."""
    for _, group in groupby(
        parts, lambda one: (one.body.get("type"), "") if isinstance(one, ForeignPart) else (None, one.id)
    ):
        first, *others = group
        yield first, 1 + len(others)


def _foreign(screen: Screen, part: ForeignPart, count: int) -> Iterator[str]:
    what = "a part" if count == 1 else plural(count, "part")
    yield _mark(screen, "?", f"{what} of the unknown type {part.body.get('type')!r}")


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
    mark = f"{screen.paint(icon, style)} {screen.paint(harmless(part.tool), 'cyan')}"
    yield _line(screen, mark, given_title(part) or arguments(state.input), end)
    if isinstance(state, ToolCompleted):
        yield from _output(screen, state.output)
    elif isinstance(state, ToolError):
        yield from _output(screen, partial_output(state.metadata))
        yield from _output(screen, state.error, "red")


def _waiting_tool(screen: Screen, part: ToolPart, request: PermissionRequest | QuestionRequest) -> Iterator[str]:
    """A call that does nothing until the user has answered."""
    if isinstance(request, PermissionRequest):
        what, lines = "permission", permission_wait(request)
    else:
        what, lines = "an answer", question_wait(request)
    title = "" if isinstance(request, QuestionRequest) else arguments(part.state.input)
    mark = f"{screen.paint('◌', 'yellow')} {screen.paint(harmless(part.tool), 'cyan')}"
    yield _line(screen, mark, title, f"waits for {what}")
    # Not shortened: the last line is there to be copied.
    yield from (f"{INDENT}{INDENT}{screen.paint(f'│ {line}', 'yellow')}" for line in lines)


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
    width = max(min(screen.width, WIDTH_MAX) - len(INDENT), 1) if screen.width is not None else None
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


def _problem(message: AssistantMessage) -> str:
    return ending_text(message) if message.error is None else one_line(_failure(message.error))


def _failure(failure: Failure) -> str:
    name = type(failure).__struct_config__.tag
    return f"{name}: {getattr(failure.data, 'message', '')}".rstrip(": ")
