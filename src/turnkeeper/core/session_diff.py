"""Session diff: the differences of a session between two of its events."""

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Literal, TypeAlias

from turnkeeper.core.usage import add_costs, subtract_tokens
from turnkeeper.core.view import SessionView
from turnkeeper.model.file_change import FileChange
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import Rule
from turnkeeper.model.session import Session, Tokens
from turnkeeper.model.value import Json, Value, encode

ChangeKind: TypeAlias = Literal["added", "removed", "changed"]


class SessionMoment(Value):
    """A session after an event, with all its messages in order."""

    view: SessionView
    messages: tuple[MessageWithParts, ...]


class FieldDiff(Value):
    """A field of a session with its two values."""

    name: str
    before: Json
    after: Json


class PartDiff(Value):
    """A part that differs."""

    id: str
    change: ChangeKind


class MessageDiff(Value):
    """A message that differs. ``was`` is an earlier state of a changed message, of which ``parts`` differ."""

    id: str
    change: ChangeKind
    message: MessageWithParts
    was: MessageWithParts | None = None
    parts: tuple[PartDiff, ...] = ()


class ComponentDiff(Value):
    """A component of the System Context that differs; ``before`` and ``after`` are the hashes the model knows."""

    key: str
    change: ChangeKind
    before: str | None = None
    after: str | None = None


class ContextDiff(Value):
    """The Context Epochs, by number, and the components that differ."""

    before: int | None = None
    after: int | None = None
    reason: str | None = None
    """Why the newer epoch began, if it is another one."""
    components: tuple[ComponentDiff, ...] = ()


class RulesDiff(Value):
    """Permission rules that were removed and added, each list in order. A rule that moved is in both."""

    removed: tuple[Rule, ...] = ()
    added: tuple[Rule, ...] = ()


class SessionDiff(Value):
    """The differences between two moments of a session."""

    session_id: str
    before: int
    after: int
    """The seqs of the two events."""
    fields: tuple[FieldDiff, ...] = ()
    messages: tuple[MessageDiff, ...] = ()
    context: ContextDiff | None = None
    permissions: RulesDiff | None = None
    cost: int | float = 0
    tokens: Tokens | None = None
    """The tokens that were used in between; negative if the second moment is the earlier one."""
    files: tuple[FileChange, ...] | None = None
    """None if they cannot be compared; then ``files_unknown`` says why."""
    files_unknown: str | None = None


def compare(before: SessionMoment, after: SessionMoment) -> SessionDiff:
    """The differences without those of files, which are on disk."""
    one, other = before.view, after.view
    old, new = one.session.tokens, other.session.tokens
    return SessionDiff(
        session_id=other.session.id,
        before=one.seq,
        after=other.seq,
        fields=_fields(one.session, other.session),
        messages=_messages(before.messages, after.messages),
        context=_context(one, other),
        permissions=_rules(one.session.permission or (), other.session.permission or ()),
        cost=add_costs(other.session.cost, -one.session.cost),
        tokens=subtract_tokens(new, old) if new != old else None,
    )


def _fields(before: Session, after: Session) -> tuple[FieldDiff, ...]:
    """The fields that differ, among those that people set or see: no times, totals or counts of changed lines."""
    values = {
        "title": (before.title, after.title),
        "directory": (before.directory, after.directory),
        "agent": (before.agent, after.agent),
        "model": (before.model, after.model),
        "archived": (before.time.archived, after.time.archived),
        "share": (before.share, after.share),
        "revert": (before.revert, after.revert),
        "metadata": (before.metadata, after.metadata),
    }
    return tuple(FieldDiff(name=name, before=old, after=new) for name, (old, new) in values.items() if old != new)


def _messages(before: Sequence[MessageWithParts], after: Sequence[MessageWithParts]) -> tuple[MessageDiff, ...]:
    """The messages that differ, in the order of the history."""
    old, new = {one.info.id: one for one in before}, {one.info.id: one for one in after}
    found: list[MessageDiff] = []
    for message in sorted({**old, **new}.values(), key=lambda one: one.info.seq):
        message_id = message.info.id
        was, now = old.get(message_id), new.get(message_id)
        if was is None or now is None:
            found.append(MessageDiff(id=message_id, change=_kind(was, now), message=message))
        elif was != now:
            parts = _parts(was.parts, now.parts)
            found.append(MessageDiff(id=message_id, change="changed", message=now, was=was, parts=parts))
    return tuple(found)


def _parts(before: Sequence[Part], after: Sequence[Part]) -> tuple[PartDiff, ...]:
    old, new = {one.id: one for one in before}, {one.id: one for one in after}
    return tuple(
        PartDiff(id=part_id, change=_kind(old.get(part_id), new.get(part_id)))
        for part_id in {**old, **new}
        if old.get(part_id) != new.get(part_id)
    )


def _context(before: SessionView, after: SessionView) -> ContextDiff | None:
    old, new = before.epoch, after.epoch
    components = _components(old.checkpoint if old else {}, new.checkpoint if new else {})
    is_other = (old.number if old else None) != (new.number if new else None)
    if not components and not is_other:
        return None
    later = max((one for one in (old, new) if one is not None), key=lambda one: one.number)
    return ContextDiff(
        before=old.number if old else None,
        after=new.number if new else None,
        reason=later.reason if is_other else None,
        components=components,
    )


def _components(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ComponentDiff, ...]:
    return tuple(
        ComponentDiff(key=key, change=_kind(old, new), before=old, after=new)
        for key, old, new in ((key, before.get(key), after.get(key)) for key in sorted({*before, *after}))
        if old != new
    )


def _rules(before: Sequence[Rule], after: Sequence[Rule]) -> RulesDiff | None:
    """The difference of two lists. Their order matters, because of several rules that match the last one holds."""
    old, new = [encode(rule) for rule in before], [encode(rule) for rule in after]
    steps = [step for step in SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if step[0] != "equal"]
    removed = tuple(rule for _, start, end, _, _ in steps for rule in before[start:end])
    added = tuple(rule for _, _, _, start, end in steps for rule in after[start:end])
    return RulesDiff(removed=removed, added=added) if removed or added else None


def _kind(before: object, after: object) -> ChangeKind:
    if before is None:
        return "added"
    return "removed" if after is None else "changed"
