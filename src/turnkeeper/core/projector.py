"""The fold: ``apply(view, recorded)`` gives the view after an event. Pure; every reader's truth comes from here."""

from collections.abc import Iterable
from typing import assert_never

from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.core.usage import add_costs, add_tokens
from turnkeeper.core.view import Admitted, OpenTurn, Rewritten, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import MessageRecorded, PartExtended, PartRecorded, SessionCreated
from turnkeeper.model.parts import Part, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import may_follow
from turnkeeper.model.session import Session
from turnkeeper.model.status import IDLE


def project(recorded: Iterable[Recorded]) -> SessionView | None:
    """The view after all these events; None if there are none."""
    view: SessionView | None = None
    for one in recorded:
        view = apply(view, one)
    return view


def apply(view: SessionView | None, recorded: Recorded) -> SessionView:
    """The view after one more event. Raises Damaged if the event cannot follow this view."""
    seq, _, event = recorded
    if isinstance(event, SessionCreated):
        if view is not None:
            raise Damaged(seq, "creates a session that exists")
        return SessionView(session=event.session, seq=seq)
    if view is None:
        raise Damaged(seq, "comes before the session was created")
    if seq != view.seq + 1:
        raise Damaged(seq, f"does not follow event {view.seq}")
    return _apply(view, recorded).but(seq=seq)


def _apply(view: SessionView, recorded: Recorded) -> SessionView:
    """One case per event, the most frequent ones first; the type checker demands the case of a new one."""
    seq, time, event = recorded
    match event:
        case e.MessageRecorded():
            return _message_recorded(view, seq, event)
        case e.PartRecorded():
            return _part_recorded(view, seq, event)
        case e.PartExtended():
            return _part_extended(view, seq, event)
        case e.PromptAdmitted():
            admitted = Admitted(seq=seq, message=event.message, parts=event.parts, delivery=event.delivery)
            return view.but(session=_touched(view.session, time), inbox=(*view.inbox, admitted))
        case e.PromptPromoted(message_id=message_id):
            prompt = _admitted(view, seq, message_id)
            inbox = tuple([p for p in view.inbox if p is not prompt])
            return view.but(inbox=inbox, messages=view.messages + 1, parts=view.parts + len(prompt.parts))
        case e.SessionCreated():
            raise AssertionError("handled by apply")
        case e.SessionTitled(title=title):
            return _session(view, title=title)
        case e.SessionTouched():
            return _active(view, time)
        case e.SessionArchived(at=at):
            return _session(view, time=view.session.time.but(archived=at))
        case e.SessionRestored():
            return _session(view, time=view.session.time.but(archived=None))
        case e.SessionMoved():
            place = {"project_id": event.project_id, "directory": event.directory, "path": event.path}
            # Instructions met while reading hold where they were met.
            moved = view if event.directory == view.session.directory else view.but(instructions=())
            return _active(moved, time, **place, workspace_id=event.workspace_id)
        case e.SessionShared(share=share):
            return _active(view, time, share=share)
        case e.SessionUnshared():
            return _active(view, time, share=None)
        case e.PermissionsSet(rules=rules):
            return _active(view, time, permission=rules)
        case e.MetadataSet(metadata=metadata):
            return _active(view, time, metadata=metadata)
        case e.AgentSelected(agent=agent):
            return _active(view, time, agent=agent)
        case e.ModelSelected(model=model):
            return _active(view, time, model=model)
        case e.SummaryRecorded(summary=summary):
            # The same counts with other diffs are no activity: an import brings them beside the session.
            return view if summary == view.session.summary else _active(view, time, summary=summary)
        case e.TodosSet(todos=todos):
            return view.but(todos=todos)
        case e.CompactingSet(at=at):
            return _session(view, time=view.session.time.but(compacting=at))
        case e.RevertStaged(revert=revert):
            return _active(view, time, revert=revert)
        case e.RevertCleared() | e.RevertCommitted():
            return _active(view, time, revert=None)
        case e.MessageRemoved(message_id=message_id, part_ids=ids):
            is_open = view.turn is not None and view.turn.message.id == message_id
            counts = {"messages": view.messages - 1, "parts": view.parts - len(ids)}
            return view.but(turn=None if is_open else view.turn, **counts)
        case e.PartRemoved(part_id=part_id):
            return _part_removed(view, part_id)
        case e.OutputsPruned(reason=reason):
            return view.but(rewritten=Rewritten(seq=seq, reason=reason))
        case e.PartsQuarantined(part_ids=ids, reason=reason):
            quarantined = (*view.quarantined, *(one for one in ids if one not in view.quarantined))
            remedy = Rewritten(seq=seq, reason=reason, is_remedy=True)
            return view.but(rewritten=remedy, quarantined=quarantined)
        case e.PromptWithdrawn(message_id=message_id):
            prompt = _admitted(view, seq, message_id)
            return view.but(inbox=tuple(p for p in view.inbox if p is not prompt))
        case e.EpochStarted(epoch=epoch):
            return view.but(epoch=epoch.but(seq=seq))
        case e.ContextAdmitted(checkpoint=checkpoint):
            if view.epoch is None:
                raise Damaged(seq, "admits context before the first epoch")
            return view.but(epoch=view.epoch.but(checkpoint=checkpoint), messages=view.messages + 1)
        case e.InstructionDiscovered(path=path):
            return view if path in view.instructions else view.but(instructions=(*view.instructions, path))
        case e.TurnStarted(message=message, prefix=prefix):
            if view.turn is not None:
                raise Damaged(seq, f"starts a turn while {view.turn.message.id} is open")
            turn = OpenTurn(message=message.but(seq=seq), parts={})
            return view.but(turn=turn, messages=view.messages + 1, prefix=prefix or view.prefix)
        case e.TurnEnded(message=message):
            if view.turn is None or view.turn.message.id != message.id:
                raise Damaged(seq, f"ends the turn {message.id}, which is not open")
            return _active(view.but(turn=None), time)
        case e.UsageRecorded(cost=cost, tokens=tokens):
            session = view.session
            return _session(view, cost=add_costs(session.cost, cost), tokens=add_tokens(session.tokens, tokens))
        case e.StatusChanged(status=status, owner=owner):
            # IDLE itself: a default is left out of the state document only if it is the same object.
            return view.but(status=IDLE if status == IDLE else status, owner=owner)
        case _:
            assert_never(event)


def _session(view: SessionView, **changes: object) -> SessionView:
    return view.but(session=view.session.but(**changes))


def _active(view: SessionView, time: int, **changes: object) -> SessionView:
    """Change the session in a way that counts as activity."""
    return view.but(session=_touched(view.session, time, **changes))


def _touched(session: Session, time: int, **changes: object) -> Session:
    """The session after activity at this time. The clock may step back; activity does not."""
    return session.but(time=session.time.but(updated=max(time, session.time.updated)), **changes)


def _admitted(view: SessionView, seq: int, message_id: str) -> Admitted:
    for prompt in view.inbox:
        if prompt.message.id == message_id:
            return prompt
    raise Damaged(seq, f"names the prompt {message_id}, which is not in the inbox")


def _message_recorded(view: SessionView, seq: int, event: MessageRecorded) -> SessionView:
    message, turn = event.message, view.turn
    view = view.but(messages=view.messages + (not message.seq), parts=view.parts + len(event.parts))
    if turn is None or message.id != turn.message.id:
        return view
    placed = {part.id: part.but(seq=seq, nth=nth) for nth, part in enumerate(event.parts)}
    return view.but(turn=turn.but(message=message.but(seq=turn.message.seq), parts={**turn.parts, **placed}))


def _part_recorded(view: SessionView, seq: int, event: PartRecorded) -> SessionView:
    part, turn = event.part, view.turn
    if turn is None or part.message_id != turn.message.id:
        return view.but(parts=view.parts + (not part.seq))
    before = turn.parts.get(part.id)
    if before is None:
        return view.but(turn=turn.but(parts={**turn.parts, part.id: _placed(part, seq)}), parts=view.parts + 1)
    if isinstance(before, ToolPart) and isinstance(part, ToolPart) and not may_follow(before.state, part.state):
        raise Damaged(seq, f"takes the call {part.call_id} back from a later state")
    extended = {name: offsets for name, offsets in turn.extended.items() if name != part.id}
    parts = {**turn.parts, part.id: _placed(part, before.seq)}
    return view.but(turn=turn.but(parts=parts, extended=extended))


def _part_extended(view: SessionView, seq: int, event: PartExtended) -> SessionView:
    turn = view.turn
    part = turn.parts.get(event.part_id) if turn is not None else None
    if turn is None or not isinstance(part, TextPart | ReasoningPart):
        raise Damaged(seq, f"adds text to the part {event.part_id}, which is not open")
    if event.offset != len(part.text):
        raise Damaged(seq, f"adds text at {event.offset} to a part that has {len(part.text)} characters")
    offsets = (*turn.extended.get(part.id, ()), event.offset)
    parts = {**turn.parts, part.id: part.but(text=part.text + event.text)}
    return view.but(turn=turn.but(parts=parts, extended={**turn.extended, part.id: offsets}))


def _part_removed(view: SessionView, part_id: str) -> SessionView:
    turn = view.turn
    if turn is not None and part_id in turn.parts:
        parts = {key: part for key, part in turn.parts.items() if key != part_id}
        extended = {name: offsets for name, offsets in turn.extended.items() if name != part_id}
        turn = turn.but(parts=parts, extended=extended)
    return view.but(turn=turn, parts=view.parts - 1)


def _placed(part: Part, seq: int) -> Part:
    return part if part.seq == seq else part.but(seq=seq)
