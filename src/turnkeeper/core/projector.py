"""The fold: ``apply(view, recorded)`` gives the view after an event, and its changes. The only match over events."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias, TypeVar, assert_never

from turnkeeper.core import asks, child_tasks, restores
from turnkeeper.core import changes as c
from turnkeeper.core.changes import Change
from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.core.open_calls import is_open
from turnkeeper.core.usage import add_costs, add_tokens
from turnkeeper.core.view import Admitted, FirstPatch, OpenTurn, PermissionAsk, QuestionAsk, Rewritten, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.parts import Part, PatchPart, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import may_follow
from turnkeeper.model.permission import Reply
from turnkeeper.model.question import QuestionReply
from turnkeeper.model.session import Session
from turnkeeper.model.status import IDLE, Idle

T = TypeVar("T")

SELECTIONS_MAX = 2
"""An admission may be followed by two selections that belong to it: of an agent and of a model."""


class Folded(NamedTuple):
    """The view after an event, and the changes of the event in the order that clients expect."""

    view: SessionView
    changes: tuple[Change, ...]


_Step: TypeAlias = tuple[SessionView, tuple[Change, ...]]


def project(recorded: Iterable[Recorded]) -> SessionView | None:
    """The view after all these events; None if there are none."""
    view: SessionView | None = None
    for one in recorded:
        view = apply(view, one).view
    return view


def apply(view: SessionView | None, recorded: Recorded) -> Folded:
    """The view after one more event, and its changes. Raises Damaged if the event cannot follow this view."""
    seq, _, event = recorded
    if isinstance(event, e.SessionCreated):
        if view is not None:
            raise Damaged(seq, "creates a session that exists")
        return Folded(SessionView(session=event.session, seq=seq), (c.SessionPut(event.session, is_new=True),))
    if view is None:
        raise Damaged(seq, "comes before the session was created")
    if seq != view.seq + 1:
        raise Damaged(seq, f"does not follow event {view.seq}")
    after, changes = _apply(view, recorded)
    if after.session is view.session:
        return Folded(after.but(seq=seq), changes)
    if after.session == view.session:
        return Folded(after.but(seq=seq, session=view.session), changes)
    return Folded(after.but(seq=seq), (*changes, c.SessionPut(after.session)))


def _apply(view: SessionView, recorded: Recorded) -> _Step:
    """One case for each event, the most frequent first; the type checker demands a case for a new event."""
    seq, time, event = recorded
    match event:
        case e.MessageRecorded():
            return _message_recorded(view, seq, event)
        case e.PartRecorded(part=part):
            return _part_recorded(view, seq, part)
        case e.PartExtended():
            return _part_extended(view, seq, event)
        case e.PromptAdmitted():
            admitted = Admitted(seq=seq, message=event.message, parts=event.parts, delivery=event.delivery)
            after = view.but(session=_touched(view.session, time), inbox=(*view.inbox, admitted))
            return after, (c.PromptPut(admitted, event.digest),)
        case e.PromptPromoted(message_id=message_id):
            return _promoted(view, seq, message_id)
        case e.SessionCreated():
            raise AssertionError("handled by apply")
        case e.SessionTitled(title=title):
            return _session(view, title=title), ()
        case e.SessionTouched():
            return _active(view, time), ()
        case e.SourceFollowed():
            return _followed(view, event), ()
        case e.SessionArchived(at=at):
            return _session(view, time=view.session.time.but(archived=at)), ()
        case e.SessionRestored():
            return _session(view, time=view.session.time.but(archived=None)), ()
        case e.SessionMoved():
            place = {"project_id": event.project_id, "directory": event.directory, "path": event.path}
            # Instructions met while reading hold where they were met.
            moved = view if event.directory == view.session.directory else view.but(instructions=())
            place |= {"workspace_id": event.workspace_id, "label": event.label}
            return _active(moved, time, **place), (c.DirectoryPut(event.directory),)
        case e.SessionShared(share=share, hosted=hosted):
            return _active(view.but(hosted=hosted), time, share=share), ()
        case e.SessionUnshared():
            return _active(view.but(hosted=None), time, share=None), ()
        case e.PermissionsSet(rules=rules):
            return _active(view, time, permission=rules), ()
        case e.MetadataSet(metadata=metadata):
            return _active(view, time, metadata=metadata), ()
        case e.AgentSelected(agent=agent):
            switched = c.AgentPut(agent, is_for_prompt(_newest_prompt(view), recorded))
            return _active(view, time, agent=agent), (switched,)
        case e.ModelSelected(model=model):
            chosen = c.ModelPut(model, is_for_prompt(_newest_prompt(view), recorded))
            return _active(view, time, model=model), (chosen,)
        case e.SummaryRecorded(summary=summary, diffs=diffs):
            # The same counts with other diffs are no activity: an import brings them beside the session.
            counted = view if summary == view.session.summary else _active(view, time, summary=summary)
            return counted, (c.DiffsPut(diffs),)
        case e.TodosSet(todos=todos):
            return view.but(todos=todos), (c.TodosPut(todos),)
        case e.CompactingSet(at=at):
            return _session(view, time=view.session.time.but(compacting=at)), ()
        case e.RestoreBegun():
            return view.but(restore=restores.begun(event)), ()
        case e.RevertStaged(revert=revert):
            ended = view.but(restore=restores.staged(view, revert))
            return _active(ended, time, revert=revert), (c.RevertPut(revert),)
        case e.RevertCleared(unwritten=unwritten):
            ended = view.but(restore=restores.cleared(view, unwritten))
            return _active(ended, time, revert=None), (c.RevertGone(),)
        case e.RevertCommitted(message_id=message_id, ends_epoch=ends_epoch):
            epoch = view.epoch.but(is_over=True) if view.epoch is not None and ends_epoch else view.epoch
            return _active(view.but(restore=None, epoch=epoch), time, revert=None), (c.RevertGone(message_id),)
        case e.MessageRemoved(message_id=message_id, part_ids=ids):
            turn = _turn_of(view, message_id)
            counts = {"messages": view.messages - 1, "parts": view.parts - len(ids)}
            kept, gone = asks.without(view, lambda ask: ask.request.tool.message_id == message_id)
            after = child_tasks.without_message(kept, message_id).but(
                turn=None if turn is not None else view.turn,
                first_patch=_first_patch_without(view, message_id),
                **counts,
            )
            return after, (*gone, c.MessageGone(message_id, event.seq, ids, turn))
        case e.PartRemoved():
            return _part_removed(view, event)
        case e.OutputsPruned(reason=reason):
            return view.but(rewritten=Rewritten(seq=seq, reason=reason)), ()
        case e.PartsQuarantined(part_ids=ids, reason=reason):
            quarantined = (*view.quarantined, *(one for one in ids if one not in view.quarantined))
            remedy = Rewritten(seq=seq, reason=reason, is_remedy=True)
            rejected = c.PartsRejected(reason, is_running=not isinstance(view.status, Idle))
            return view.but(rewritten=remedy, quarantined=quarantined), (rejected,)
        case e.PromptWithdrawn(message_id=message_id):
            return _without(view, _admitted(view, seq, message_id)), (c.PromptGone(message_id),)
        case e.EpochStarted(epoch=epoch):
            return view.but(epoch=epoch.but(seq=seq)), ()
        case e.ContextAdmitted(message=system, checkpoint=checkpoint):
            if view.epoch is None:
                raise Damaged(seq, "admits context before the first epoch")
            after = view.but(epoch=view.epoch.but(checkpoint=checkpoint), messages=view.messages + 1)
            return after, (c.ContextPut(system.but(seq=system.seq or seq)),)
        case e.InstructionDiscovered(path=path):
            known = view.instructions
            return (view if path in known else view.but(instructions=(*known, path))), ()
        case e.TurnStarted(message=message, prefix=prefix):
            if view.turn is not None:
                raise Damaged(seq, f"starts a turn while {view.turn.message.id} is open")
            message = message.but(seq=seq)
            opened = OpenTurn(message=message, parts={})
            after = view.but(turn=opened, messages=view.messages + 1, prefix=prefix or view.prefix)
            return after, (c.TurnOpened(message, is_asked=prefix is not None),)
        case e.TurnEnded(message=message):
            if view.turn is None or view.turn.message.id != message.id:
                raise Damaged(seq, f"ends the turn {message.id}, which is not open")
            closed = c.TurnClosed(message.but(seq=view.turn.message.seq), view.turn)
            kept, gone = asks.without(view, lambda ask: ask.request.tool.message_id == message.id)
            after = child_tasks.without_message(kept, message.id).but(turn=None, turn_ended=seq)
            return _active(after, time), (*gone, closed)
        case e.PermissionAsked(request=permission, restarts=restarts):
            return asks.asked(view, seq, PermissionAsk(request=permission, restarts=restarts))
        case e.PermissionReplied(request_id=request_id, reply=answer, feedback=feedback, absence=absence):
            return asks.replied(view, seq, request_id, Reply(answer=answer, feedback=feedback, absence=absence))
        case e.QuestionAsked(request=question, restarts=restarts):
            return asks.asked(view, seq, QuestionAsk(request=question, restarts=restarts))
        case e.QuestionReplied(request_id=request_id, answers=answers):
            return asks.replied(view, seq, request_id, QuestionReply(answers=answers))
        case e.QuestionRejected(request_id=request_id, absence=absence):
            return asks.replied(view, seq, request_id, QuestionReply(absence=absence))
        case e.AnswerApplied(request_id=request_id):
            return asks.applied(view, seq, request_id)
        case e.ChildBegun(task=task):
            return child_tasks.begun(view, seq, task), ()
        case e.ChildEnded(session_id=child_id):
            return child_tasks.ended(view, child_id), ()
        case e.UsageRecorded():
            return _spent(view, time, event)
        case e.StatusChanged(status=status, owner=owner):
            # IDLE itself: a default is left out of the state document only if it is the same object.
            after = view.but(status=IDLE if status == IDLE else status, owner=owner)
            return after, ((c.StatusPut(status),) if status != view.status else ())
        case _:
            assert_never(event)


def is_for_prompt(prompt: Admitted | None, recorded: Recorded) -> bool:
    """Whether a selected agent or model belongs to the admission of this prompt, the newest one in the inbox."""
    if prompt is None or recorded.seq - prompt.seq > SELECTIONS_MAX:
        return False
    message = prompt.message
    match recorded.event:
        case e.AgentSelected(agent=agent):
            return message.agent == agent
        case e.ModelSelected(model=model) if model is not None:
            return (message.model.provider_id, message.model.model_id) == (model.provider_id, model.id)
        case _:
            return False


def _newest_prompt(view: SessionView) -> Admitted | None:
    return max(view.inbox, key=lambda one: one.seq, default=None)


def _session(view: SessionView, **changes: object) -> SessionView:
    return view.but(session=view.session.but(**changes))


def _active(view: SessionView, time: int, **changes: object) -> SessionView:
    """Change the session in a way that counts as activity."""
    return view.but(session=_touched(view.session, time, **changes))


def _touched(session: Session, time: int, **changes: object) -> Session:
    """The session after activity at this time. The clock may step back; activity does not."""
    return session.but(time=session.time.but(updated=max(time, session.time.updated)), **changes)


def _followed(view: SessionView, event: e.SourceFollowed) -> SessionView:
    """Activity at the time of the source, and not at that of the import."""
    taken = {name: getattr(event, name) for name in ("title", "metadata", "agent", "model", "summary")}
    spent = add_costs(view.session.cost, event.cost), add_tokens(view.session.tokens, event.tokens)
    return _active(view, event.updated, **taken, cost=spent[0], tokens=spent[1])


def _turn_of(view: SessionView, message_id: str) -> OpenTurn | None:
    """The open turn, if this message is its own."""
    return view.turn if view.turn is not None and view.turn.message.id == message_id else None


def _admitted(view: SessionView, seq: int, message_id: str) -> Admitted:
    for prompt in view.inbox:
        if prompt.message.id == message_id:
            return prompt
    raise Damaged(seq, f"names the prompt {message_id}, which is not in the inbox")


def _without(view: SessionView, prompt: Admitted) -> SessionView:
    return view.but(inbox=tuple([one for one in view.inbox if one is not prompt]))


def _promoted(view: SessionView, seq: int, message_id: str) -> _Step:
    prompt = _admitted(view, seq, message_id)
    counts = {"messages": view.messages + 1, "parts": view.parts + len(prompt.parts)}
    message = prompt.message.but(seq=prompt.message.seq or seq)
    put = c.MessagePut(message, _numbered(prompt.parts, seq), is_new=True, delivery=prompt.delivery)
    return _without(view, prompt).but(**counts), (put,)


def _message_recorded(view: SessionView, seq: int, event: e.MessageRecorded) -> _Step:
    message, turn, parts = event.message, view.turn, _numbered(event.parts, seq)
    is_new = not message.seq
    after = view.but(messages=view.messages + is_new, parts=view.parts + len(parts))
    if turn is None or message.id != turn.message.id:
        return after, (c.MessagePut(message.but(seq=message.seq or seq), parts, is_new),)
    message = message.but(seq=turn.message.seq)
    placed = {part.id: part for part in parts}
    after = after.but(turn=turn.but(message=message, parts={**turn.parts, **placed}))
    return after, (c.MessagePut(message, parts, is_new),)


def _part_recorded(view: SessionView, seq: int, part: Part) -> _Step:
    turn = _turn_of(view, part.message_id)
    if isinstance(part, PatchPart) and view.first_patch is None:
        view = view.but(first_patch=FirstPatch(message_id=part.message_id, tree=part.hash))
    if turn is None:
        return view.but(parts=view.parts + (not part.seq)), (c.PartPut(_placed(part, part.seq or seq), None),)
    before = turn.parts.get(part.id)
    part = _placed(part, seq if before is None else before.seq)
    if isinstance(before, ToolPart) and isinstance(part, ToolPart) and not may_follow(before.state, part.state):
        raise Damaged(seq, f"takes the call {part.call_id} back from a later state")
    grown = turn.but(parts={**turn.parts, part.id: part}, extended=_others(turn.extended, part.id))
    after, gone = (view, ()) if is_open(part) else asks.without_call(child_tasks.without_call(view, part), part)
    return after.but(turn=grown, parts=view.parts + (before is None)), (c.PartPut(part, turn), *gone)


def _first_patch_without(view: SessionView, message_id: str) -> FirstPatch | None:
    first = view.first_patch
    return None if first is not None and first.message_id == message_id else first


def _part_extended(view: SessionView, seq: int, event: e.PartExtended) -> _Step:
    turn = view.turn
    part = turn.parts.get(event.part_id) if turn is not None else None
    if turn is None or not isinstance(part, TextPart | ReasoningPart):
        raise Damaged(seq, f"adds text to the part {event.part_id}, which is not open")
    if event.offset != len(part.text):
        raise Damaged(seq, f"adds text at {event.offset} to a part that has {len(part.text)} characters")
    offsets = (*turn.extended.get(part.id, ()), event.offset)
    parts = {**turn.parts, part.id: part.but(text=part.text + event.text)}
    grown = turn.but(parts=parts, extended={**turn.extended, part.id: offsets})
    return view.but(turn=grown), (c.PartGrown(event.message_id, event.part_id, event.offset, event.text),)


def _part_removed(view: SessionView, event: e.PartRemoved) -> _Step:
    part_id, turn, left = event.part_id, view.turn, view.turn
    part = turn.parts.get(part_id) if turn is not None else None
    view, gone = asks.without_call(child_tasks.without_call(view, part), part)
    if left is not None and part_id in left.parts:
        left = left.but(parts=_others(left.parts, part_id), extended=_others(left.extended, part_id))
    return view.but(turn=left, parts=view.parts - 1), (*gone, c.PartGone(event.message_id, part_id, turn))


def _spent(view: SessionView, time: int, event: e.UsageRecorded) -> _Step:
    session = view.session
    cost, tokens = add_costs(session.cost, event.cost), add_tokens(session.tokens, event.tokens)
    row = LedgerRow(
        session_id=session.id,
        time=time,
        purpose=event.purpose,
        provider_id=event.provider_id,
        model_id=event.model_id,
        message_id=event.message_id,
        attempt=event.attempt,
        tokens=event.tokens,
        cost=event.cost,
    )
    return _session(view, cost=cost, tokens=tokens), (c.Spent(row),)


def _numbered(parts: tuple[Part, ...], seq: int) -> tuple[Part, ...]:
    """The parts of one event, each with its ``seq`` and ``nth``."""
    return tuple([part.but(seq=seq, nth=nth) for nth, part in enumerate(parts)])


def _others(items: Mapping[str, T], name: str) -> dict[str, T]:
    return {key: item for key, item in items.items() if key != name}


def _placed(part: Part, seq: int) -> Part:
    return part if part.seq == seq else part.but(seq=seq)
