"""Compare a stored session with its version in a source, and decide which events to record. Pure."""

from collections.abc import Sequence

from turnkeeper.core.usage import add_costs, add_tokens, subtract_tokens
from turnkeeper.core.view import SessionView
from turnkeeper.interop.imported import imported_from
from turnkeeper.interop.newer import is_newer_message, is_newer_part
from turnkeeper.interop.normalise import Incoming, IncomingMessage
from turnkeeper.interop.report import Finding
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.parts import Part, StepFinishPart
from turnkeeper.model.session import ZERO_TOKENS, FileDiff, Session, Summary, Tokens

KEPT = "differs from ours, which was kept"

COMPARED = ("slug", "directory", "parent_id", "title", "version", "metadata", "permission", "share", "revert", "extra")
"""The fields of a session that are compared. Activity changes the others: totals, times, agent, model, summary.

The project is not compared, because the project of a directory may change."""


class Comparison:
    """Call ``message`` with every stored message, then ``events``."""

    def __init__(self, incoming: Incoming, view: SessionView, diffs: tuple[FileDiff, ...]) -> None:
        self._incoming, self._diffs, self.view = incoming, diffs, view
        self._pending = {one.info.id: one for one in incoming.messages}
        self._has_steps = any(isinstance(part, StepFinishPart) for one in incoming.messages for part in one.parts)
        self._events: list[Event] = []
        self._cost: float = 0
        self._tokens = ZERO_TOKENS
        self.conflicts: list[Finding] = _session_conflicts(view.session, incoming.session)
        self._others: list[e.MessageRemoved] = []
        self.equal_messages = self.equal_parts = self.new_parts = 0

    @property
    def known(self) -> frozenset[str]:
        """The ids of the incoming messages that are stored."""
        return frozenset(one.info.id for one in self._incoming.messages) - self._pending.keys()

    def missing(self) -> list[IncomingMessage]:
        """The incoming messages that are not stored."""
        return list(self._pending.values())

    @property
    def is_continued(self) -> bool:
        """Whether the stored session has messages that the source never had: it was continued here."""
        return any(one.message_id not in self._incoming.gone for one in self._others)

    def message(self, ours: Message, parts: Sequence[Part]) -> None:
        """Compare a stored message."""
        theirs = self._pending.pop(ours.id, None)
        if theirs is None:
            ids = tuple(part.id for part in parts)
            self._others.append(e.MessageRemoved(message_id=ours.id, seq=ours.seq, part_ids=ids))
            return
        place = ours.seq
        ours = ours.but(seq=0)
        if ours == theirs.info or is_newer_message(theirs.info, ours):
            self.equal_messages += 1
        elif is_newer_message(ours, theirs.info):
            self._events.append(e.MessageRecorded(message=theirs.info.but(seq=place)))
            self._count_growth(ours, theirs)
        else:
            self.conflicts.append(Finding(reason=KEPT, session_id=ours.session_id, message_id=ours.id))
        self._parts({part.id: part for part in parts}, theirs)

    def events(self, new: list[IncomingMessage]) -> list[Event]:
        """The events to record, including the given new messages."""
        if self._incoming.follows and not self._incoming.is_again and not self.is_continued:
            self._events.extend(self._others)
        for one in new:
            self._events.append(e.MessageRecorded(message=one.info, parts=one.parts))
            self._count(one, one.parts)
        return [*self._events, *self._settings(has_grown=bool(self._events))]

    def _parts(self, ours: dict[str, Part], theirs: IncomingMessage) -> None:
        added = []
        for part in theirs.parts:
            known = ours.get(part.id)
            if known is None:
                added.append(part)
                continue
            bare = known.but(seq=0, nth=0)
            if bare == part or is_newer_part(part, bare):
                self.equal_parts += 1
            elif is_newer_part(bare, part):
                self._events.append(e.PartRecorded(part=part.but(seq=known.seq, nth=known.nth)))
            else:
                where = {"session_id": part.session_id, "message_id": part.message_id}
                self.conflicts.append(Finding(reason=KEPT, part_id=part.id, **where))
        self._events.extend(e.PartRecorded(part=part) for part in added)
        self.new_parts += len(added)
        self._count(theirs, added)

    def _count(self, message: IncomingMessage, new: Sequence[Part]) -> None:
        """Add the usage of new parts of a message."""
        info = message.info
        if not isinstance(info, AssistantMessage) or not message.is_counted:
            return
        steps = [part for part in new if isinstance(part, StepFinishPart)]
        # In old histories without step parts, the message has the usage.
        for counted in steps if self._has_steps else [info] if info.id in self._pending else []:
            self._spent(counted.tokens, counted.cost)

    def _count_growth(self, ours: Message, theirs: IncomingMessage) -> None:
        """Add the usage of a turn of a source without step parts that went on."""
        info = theirs.info
        if not isinstance(info, AssistantMessage) or not isinstance(ours, AssistantMessage) or not theirs.is_counted:
            return
        if self._incoming.follows and not self._has_steps:
            self._spent(subtract_tokens(info.tokens, ours.tokens), add_costs(info.cost, -ours.cost))

    def _spent(self, tokens: Tokens, cost: float) -> None:
        self._tokens, self._cost = add_tokens(self._tokens, tokens), add_costs(self._cost, cost)

    def _settings(self, has_grown: bool) -> list[Event]:
        """Events for the session itself, the task list and the diffs."""
        theirs, ours, facts = self._incoming, self.view, list[Event]()
        if theirs.todos is not None and theirs.todos != ours.todos:
            facts += self._take("the task list", e.TodosSet(todos=theirs.todos), has_grown or not ours.todos)
        summary = ours.session.summary
        if theirs.diffs and theirs.diffs != self._diffs:
            recorded = e.SummaryRecorded(summary=theirs.session.summary, diffs=theirs.diffs)
            taken = self._take("the list of changed files", recorded, has_grown or not self._diffs)
            summary = theirs.session.summary if taken else summary
            facts += taken
        # Before the summary is recorded, which else would be activity at the time of the import.
        return [*self._followed(summary, has_grown), *facts]

    def _followed(self, summary: Summary | None, has_grown: bool) -> list[Event]:
        theirs, before = self._incoming.session, self.view.session
        after = before.but(summary=summary)
        if not self._incoming.is_again and is_title_followed(before, theirs):
            after = after.but(title=theirs.title, metadata=theirs.metadata)
        if has_grown:
            after = after.but(agent=theirs.agent or before.agent, model=theirs.model or before.model)
        if after == before and not has_grown:
            return []
        updated = theirs.time.updated if has_grown else before.time.updated
        kept = {name: getattr(after, name) for name in ("title", "metadata", "agent", "model", "summary")}
        return [e.SourceFollowed(**kept, updated=updated, tokens=self._tokens, cost=self._cost)]

    def _take(self, what: str, fact: Event, is_taken: bool) -> list[Event]:
        if is_taken:
            return [fact]
        self.conflicts.append(Finding(reason=f"{what} {KEPT}", session_id=self.view.session.id))
        return []


def is_title_followed(ours: Session, theirs: Session) -> bool:
    """Whether the source has another title now, and the stored session still has the one that was imported."""
    before, after = imported_from(ours), imported_from(theirs)
    kept = {key: one for key, one in after.items() if key != "title"} | {"title": before.get("title")}
    return kept == before and ours.title == before.get("title") and ours.title != theirs.title


def _session_conflicts(ours: Session, theirs: Session) -> list[Finding]:
    followed = ("title", "metadata") if is_title_followed(ours, theirs) else ()
    names = [name for name in COMPARED if name not in followed and getattr(ours, name) != getattr(theirs, name)]
    names += [
        f"time.{name}" for name in ("created", "archived") if getattr(ours.time, name) != getattr(theirs.time, name)
    ]
    return [Finding(reason=f"its {', '.join(names)} {KEPT}", session_id=ours.id)] if names else []
