"""How two moments of a session, compared, look: fields, messages, files, context, permissions, usage."""

from collections.abc import Iterator, Mapping
from typing import Final

from turnkeeper.cli.change_lines import stat_lines
from turnkeeper.cli.part_lines import subject
from turnkeeper.cli.screen import Screen, harmless, money, one_line, shortened, token_kinds
from turnkeeper.core.session_diff import ChangeKind, MessageDiff, SessionDiff
from turnkeeper.model.message import AssistantMessage, Message, SystemMessage
from turnkeeper.model.parts import FilePart, Part, PatchPart, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.permission import Rule
from turnkeeper.model.value import encode

WIDTH: Final = 100
_SIGNS: Final[Mapping[ChangeKind, tuple[str, str]]] = {
    "added": ("+", "green"),
    "removed": ("-", "red"),
    "changed": ("~", "yellow"),
}


def comparison(screen: Screen, found: SessionDiff) -> str:
    """The sections that have something to show, each with its heading."""
    sections = {
        "Session": list(_fields(screen, found)),
        "Messages": [line for one in found.messages for line in _message(screen, one)],
        "Files": [found.files_unknown] if found.files_unknown else list(stat_lines(screen, found.files or ())),
        "Context": list(_context(screen, found)),
        "Permissions": list(_permissions(screen, found)),
        "Usage": list(_usage(found)),
    }
    shown = [
        "\n".join([screen.paint(name, "bold"), *(f"  {line}" for line in lines)])
        for name, lines in sections.items()
        if lines
    ]
    return "\n\n".join(shown)


def _fields(screen: Screen, found: SessionDiff) -> Iterator[str]:
    for field in found.fields:
        before, after = (_value(screen, value) for value in (field.before, field.after))
        yield f"{field.name}: {before} -> {after}"


def _value(screen: Screen, value: object) -> str:
    if value is None:
        return "none"
    return _short(screen, value if isinstance(value, str) else encode(value).decode())


def _message(screen: Screen, one: MessageDiff) -> Iterator[str]:
    info = one.message.info
    yield f"{_sign(screen, one.change)} {_who(info)}  {screen.paint(info.id, 'dim')}"
    parts = {part.id: part for part in (*(one.was.parts if one.was else ()), *one.message.parts)}
    changes = {part.id: part.change for part in one.parts} if one.was else dict.fromkeys(parts, one.change)
    for part_id, change in changes.items():
        if text := _part(parts[part_id]):
            yield f"  {_sign(screen, change)} {_short(screen, text)}"


def _who(message: Message) -> str:
    match message:
        case AssistantMessage():
            return f"assistant, {one_line(message.model_id)}"
        case SystemMessage():
            return "context"
        case _:
            return "user"


def _part(part: Part) -> str:
    """A part in one line; empty for a part that is only for the runtime."""
    match part:
        case TextPart(text=text) | ReasoningPart(text=text):
            return text
        case ToolPart(tool=tool, state=state):
            return f"{tool} {subject(part)} ({type(state).__struct_config__.tag})"
        case FilePart(filename=name, mime=mime):
            return f"file {name or mime}"
        case PatchPart(files=files) if files:
            return f"changed {', '.join(files)}"
        case _:
            return ""


def _context(screen: Screen, found: SessionDiff) -> Iterator[str]:
    if found.context is None:
        return
    if found.context.before != found.context.after:
        before, after = (number or "none" for number in (found.context.before, found.context.after))
        yield f"epoch {before} -> {after} ({found.context.reason})"
    for one in found.context.components:
        yield f"{_sign(screen, one.change)} {harmless(one.key)}"


def _permissions(screen: Screen, found: SessionDiff) -> Iterator[str]:
    if found.permissions is not None:
        yield from (f"{_sign(screen, 'removed')} {_rule(rule)}" for rule in found.permissions.removed)
        yield from (f"{_sign(screen, 'added')} {_rule(rule)}" for rule in found.permissions.added)


def _rule(rule: Rule) -> str:
    return one_line(f"{rule.action} {rule.permission} {rule.pattern}")


def _usage(found: SessionDiff) -> Iterator[str]:
    if found.cost:
        yield f"cost {'-' if found.cost < 0 else '+'}{money(abs(found.cost))}"
    if found.tokens is not None:
        yield ", ".join(f"{count:+,} {kind}" for kind, count in token_kinds(found.tokens).items() if count)


def _sign(screen: Screen, change: ChangeKind) -> str:
    sign, style = _SIGNS[change]
    return screen.paint(sign, style)


def _short(screen: Screen, text: str) -> str:
    return shortened(one_line(text), max(20, min(screen.width or WIDTH, WIDTH) - 8))
