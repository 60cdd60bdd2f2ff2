"""The fold: what each event does to a view, and what it refuses."""

from typing import Any

import pytest

from turnkeeper.core.entry import KINDS, Damaged, Recorded
from turnkeeper.core.projector import apply, project
from turnkeeper.core.view import Admitted, OpenTurn, PermissionAsk, QuestionAsk, Restore, Rewritten, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.parts.base import Span
from turnkeeper.model.permission import Reply, Rule
from turnkeeper.model.question import QuestionReply
from turnkeeper.model.restore import FileEdit, FileRestore, FileState
from turnkeeper.model.session import ZERO_TOKENS, Revert, SessionModel, Share, Summary
from turnkeeper.model.status import BUSY, IDLE, Owner
from turnkeeper.model.todo import Todo
from turnkeeper.testing.builders import (
    NOW,
    SOME_TOKENS,
    a_call,
    a_child_task,
    a_permission,
    a_question,
    a_session,
    a_system,
    a_text,
    a_turn,
    a_user,
    an_assistant,
    an_epoch,
    completed,
    every_event,
    running,
)

LATER = NOW + 1000
SESSION = a_session("ses_one")
BARE = SessionView(session=SESSION, seq=1)
ACTIVE = SESSION.but(time=SESSION.time.but(updated=LATER))
USER = a_user("ses_one", "msg_u")
WORDS = (a_text(USER, "prt_u", "Do it"),)
PROMPT = Admitted(seq=1, message=USER, parts=WORDS, delivery="steer")
TURN = an_assistant("ses_one", "msg_a", "msg_u", seq=1)
TEXT = a_text(TURN, "prt_t", "Half", time=Span(start=NOW), seq=1)
CALL = a_call(TURN, "prt_c", seq=1)
OPEN = BARE.but(turn=OpenTurn(message=TURN, parts={TEXT.id: TEXT, CALL.id: CALL}), messages=1, parts=2)
RULES = (Rule(permission="bash", pattern="*", action="deny"),)
MODEL = SessionModel(id="large", provider_id="acme")
OWNER = Owner(host="here", pid=1, started="then")
TODOS = (Todo(content="Test", status="pending", priority="low"),)
SUMMARY = Summary(additions=1, deletions=2, files=3)
REVERT = Revert(message_id="msg_u")
OTHER = Revert(message_id="msg_other")
STATE = FileState(mode="100644", blob="b1")
FILES = (
    FileRestore(file="a.py", kind="delete", now=STATE, undone=FileEdit(before=STATE)),
    FileRestore(file="b.py", kind="conflict", now=STATE, undone=FileEdit(after=STATE), reason="changed"),
    FileRestore(file="c.py", kind="conflict", now=STATE, reason="changed"),
)
BEGUN = Restore(root="/p", files=FILES, revert=REVERT)
CLEARING = BEGUN.but(revert=None)
FAILED = FILES[0].but(earlier=FileEdit(after=STATE))
UNWRITTEN = Restore(root="/p", files=(FAILED.but(undone=FileEdit(after=STATE)),), is_open=False, unwritten=("a.py",))
KNOWN = Restore(root="/p", files=FILES[:2], is_open=False)


def settled(**changes: object) -> SessionView:
    return BARE.but(session=SESSION.but(**changes))


def active(**changes: object) -> SessionView:
    return BARE.but(session=ACTIVE.but(**changes))


def turned(view: SessionView, **changes: object) -> SessionView:
    assert view.turn is not None
    return view.but(turn=view.turn.but(**changes))


ARCHIVED = settled(time=SESSION.time.but(archived=5))
COMPACTING = settled(time=SESSION.time.but(compacting=5))
THERE = {"project_id": "p2", "directory": "/d", "path": "s", "workspace_id": "wrk_1"}
SOURCE: dict[str, Any] = {"title": "Grown", "metadata": {"a": 1}, "agent": "plan", "model": MODEL, "summary": None}
UPDATED, USED = NOW + 7, ZERO_TOKENS.but(input=3, output=2)
FOLLOWED = settled(**SOURCE, cost=0.5, tokens=USED, time=SESSION.time.but(updated=UPDATED))
ANEW = TEXT.but(text="Whole", seq=0)
RAN = CALL.but(state=running(), seq=0)
EPOCH = an_epoch()
PERMISSION, QUESTION = a_permission(CALL), a_question(CALL)
WAITING = turned(OPEN, parts={TEXT.id: TEXT, CALL.id: RAN.but(seq=1)}).but(asks=(PermissionAsk(request=PERMISSION),))
REJECTED = PermissionAsk(request=PERMISSION, reply=Reply(answer="reject", feedback="No."))
APPLIED = REJECTED.but(is_applied=True)

TABLE: list[tuple[SessionView, Event, SessionView]] = [
    (BARE, e.SessionTitled(title="New"), settled(title="New")),
    (BARE, e.SessionTouched(), active()),
    (BARE, e.SessionArchived(at=5), ARCHIVED),
    (ARCHIVED, e.SessionRestored(), BARE),
    (BARE, e.SessionMoved(**THERE), active(**THERE)),
    (BARE, e.SourceFollowed(updated=UPDATED, tokens=USED, cost=0.5, **SOURCE), FOLLOWED),
    (BARE, e.SessionShared(share=Share(url="u")), active(share=Share(url="u"))),
    (active(share=Share(url="u")), e.SessionUnshared(), active()),
    (BARE, e.PermissionsSet(rules=RULES), active(permission=RULES)),
    (BARE, e.MetadataSet(metadata={"a": 1}), active(metadata={"a": 1})),
    (BARE, e.AgentSelected(agent="plan"), active(agent="plan")),
    (BARE, e.ModelSelected(model=MODEL), active(model=MODEL)),
    (BARE, e.SummaryRecorded(summary=SUMMARY), active(summary=SUMMARY)),
    (BARE, e.TodosSet(todos=TODOS), BARE.but(todos=TODOS)),
    (BARE, e.CompactingSet(at=5), COMPACTING),
    (COMPACTING, e.CompactingSet(at=None), BARE),
    (BARE, e.RevertStaged(revert=REVERT), active(revert=REVERT)),
    (active(revert=REVERT), e.RevertCleared(), active()),
    (active(revert=REVERT), e.RevertCommitted(message_id="msg_u"), active()),
    (BARE, e.RestoreBegun(root="/p", files=FILES, revert=REVERT), BARE.but(restore=BEGUN)),
    (BARE.but(restore=BEGUN), e.RevertStaged(revert=REVERT), active(revert=REVERT).but(restore=KNOWN)),
    (
        BARE.but(restore=BEGUN),
        e.RevertStaged(revert=REVERT.but(conflicts=("a.py",))),
        active(revert=REVERT.but(conflicts=("a.py",))).but(
            restore=KNOWN.but(files=FILES[1:2], unwritten=("a.py",)),
        ),
    ),
    (
        BARE.but(restore=BEGUN.but(files=(FAILED,))),
        e.RevertStaged(revert=REVERT.but(conflicts=("a.py",))),
        active(revert=REVERT.but(conflicts=("a.py",))).but(restore=UNWRITTEN),
    ),
    (
        active(revert=REVERT).but(restore=CLEARING.but(files=(FAILED, FILES[1]))),
        e.RevertCleared(unwritten=("a.py",)),
        active().but(restore=UNWRITTEN),
    ),
    (active().but(restore=UNWRITTEN), e.RevertCleared(), active()),
    (BARE.but(restore=BEGUN), e.RevertStaged(revert=OTHER), active(revert=OTHER).but(restore=BEGUN)),
    (BARE.but(restore=BEGUN), e.RevertCleared(), active().but(restore=BEGUN)),
    (active(revert=REVERT).but(restore=CLEARING), e.RevertCleared(), active()),
    (active(revert=REVERT).but(restore=KNOWN), e.RevertCleared(), active()),
    (active(revert=REVERT).but(restore=KNOWN), e.RevertStaged(revert=OTHER), active(revert=OTHER).but(restore=KNOWN)),
    (active(revert=REVERT).but(restore=KNOWN), e.RevertCommitted(message_id="msg_u"), active()),
    (BARE, e.MessageRecorded(message=USER, parts=WORDS), BARE.but(messages=1, parts=1)),
    (BARE.but(messages=1), e.MessageRecorded(message=USER.but(seq=1)), BARE.but(messages=1)),
    (
        BARE.but(messages=2, parts=3),
        e.MessageRemoved(message_id="m", seq=1, part_ids=("a", "b")),
        BARE.but(messages=1, parts=1),
    ),
    (BARE.but(messages=1), e.PartRecorded(part=TEXT.but(seq=0)), BARE.but(messages=1, parts=1)),
    (BARE.but(messages=1, parts=1), e.PartRecorded(part=TEXT), BARE.but(messages=1, parts=1)),
    (OPEN, e.PartRecorded(part=ANEW), turned(OPEN, parts={TEXT.id: ANEW.but(seq=1), CALL.id: CALL})),
    (OPEN, e.PartRecorded(part=RAN), turned(OPEN, parts={TEXT.id: TEXT, CALL.id: RAN.but(seq=1)})),
    (
        OPEN,
        e.PartRecorded(part=a_text(TURN, "prt_n", "new")),
        turned(OPEN.but(parts=3), parts={TEXT.id: TEXT, CALL.id: CALL, "prt_n": a_text(TURN, "prt_n", "new", seq=2)}),
    ),
    (
        OPEN,
        e.PartExtended(message_id=TURN.id, part_id=TEXT.id, offset=4, text=" of it"),
        turned(OPEN, parts={TEXT.id: TEXT.but(text="Half of it"), CALL.id: CALL}, extended={TEXT.id: (4,)}),
    ),
    (OPEN, e.PartRemoved(message_id=TURN.id, part_id=TEXT.id), turned(OPEN.but(parts=1), parts={CALL.id: CALL})),
    (BARE.but(parts=1), e.PartRemoved(message_id="m", part_id="p"), BARE),
    (
        BARE,
        e.OutputsPruned(part_ids=("prt_c",), tokens=9, reason="cold"),
        BARE.but(rewritten=Rewritten(seq=2, reason="cold")),
    ),
    (
        BARE.but(quarantined=("prt_a",)),
        e.PartsQuarantined(message_id="m", part_ids=("prt_a", "prt_b"), reason="bad"),
        BARE.but(rewritten=Rewritten(seq=2, reason="bad", is_remedy=True), quarantined=("prt_a", "prt_b")),
    ),
    (
        BARE,
        e.PromptAdmitted(message=USER, parts=WORDS, delivery="steer"),
        active().but(inbox=(PROMPT.but(seq=2),)),
    ),
    (BARE.but(inbox=(PROMPT,)), e.PromptPromoted(message_id="msg_u"), BARE.but(messages=1, parts=1)),
    (BARE.but(inbox=(PROMPT,)), e.PromptWithdrawn(message_id="msg_u"), BARE),
    (BARE, e.EpochStarted(epoch=EPOCH), BARE.but(epoch=EPOCH.but(seq=2))),
    (
        BARE.but(epoch=EPOCH),
        e.ContextAdmitted(message=a_system("ses_one", "msg_s", "news"), checkpoint={"k": "h"}),
        BARE.but(epoch=EPOCH.but(checkpoint={"k": "h"}), messages=1),
    ),
    (BARE, e.InstructionDiscovered(path="/AGENTS.md"), BARE.but(instructions=("/AGENTS.md",))),
    (
        BARE,
        e.TurnStarted(message=TURN.but(seq=0)),
        BARE.but(turn=OpenTurn(message=TURN.but(seq=2), parts={}), messages=1),
    ),
    (OPEN, e.TurnEnded(message=TURN), active().but(messages=1, parts=2, turn_ended=2)),
    (WAITING.but(asks=()), e.PermissionAsked(request=PERMISSION), WAITING),
    (
        WAITING,
        e.PermissionReplied(request_id="per_1", reply="reject", feedback="No."),
        WAITING.but(asks=(REJECTED,)),
    ),
    (WAITING.but(asks=(REJECTED,)), e.AnswerApplied(request_id="per_1"), WAITING.but(asks=(APPLIED,))),
    (
        WAITING.but(asks=(APPLIED,)),
        e.QuestionAsked(request=QUESTION),
        WAITING.but(asks=(REJECTED, QuestionAsk(request=QUESTION))),
    ),
    (
        WAITING.but(asks=(APPLIED,)),
        e.QuestionAsked(request=QUESTION, restarts=False),
        WAITING.but(asks=(APPLIED, QuestionAsk(request=QUESTION, restarts=False))),
    ),
    (
        WAITING.but(asks=(QuestionAsk(request=QUESTION),)),
        e.QuestionReplied(request_id="que_1", answers=(("Red",),)),
        WAITING.but(asks=(QuestionAsk(request=QUESTION, reply=QuestionReply(answers=(("Red",),))),)),
    ),
    (
        WAITING.but(asks=(QuestionAsk(request=QUESTION),)),
        e.QuestionRejected(request_id="que_1"),
        WAITING.but(asks=(QuestionAsk(request=QUESTION, reply=QuestionReply()),)),
    ),
    (WAITING, e.ChildBegun(task=a_child_task(CALL)), WAITING.but(children=(a_child_task(CALL),))),
    (BARE.but(children=(a_child_task(CALL),)), e.ChildEnded(session_id="ses_child"), BARE),
    (
        WAITING,
        e.PartRecorded(part=CALL.but(state=completed())),
        turned(OPEN, parts={TEXT.id: TEXT, CALL.id: CALL.but(state=completed())}),
    ),
    (WAITING, e.PartRemoved(message_id=TURN.id, part_id=CALL.id), turned(OPEN.but(parts=1), parts={TEXT.id: TEXT})),
    (WAITING, e.TurnEnded(message=TURN), active().but(messages=1, parts=2, turn_ended=2)),
    (
        WAITING,
        e.MessageRemoved(message_id=TURN.id, seq=1, part_ids=(TEXT.id, CALL.id)),
        BARE.but(messages=0, parts=0),
    ),
    (
        settled(cost=1.5, tokens=SOME_TOKENS),
        e.UsageRecorded(purpose="turn", provider_id="a", model_id="b", tokens=SOME_TOKENS.but(total=999), cost=2),
        settled(
            cost=3.5,
            tokens=SOME_TOKENS.but(input=200, output=40, reasoning=10, cache=SOME_TOKENS.cache.but(read=14, write=6)),
        ),
    ),
    (BARE, e.StatusChanged(status=BUSY, owner=OWNER), BARE.but(status=BUSY, owner=OWNER)),
    (BARE.but(status=BUSY, owner=OWNER), e.StatusChanged(status=IDLE), BARE),
]


@pytest.mark.parametrize(
    ("before", "event", "after"), TABLE, ids=[f"{n}-{type(event).__name__}" for n, (_, event, _) in enumerate(TABLE)]
)
def test_an_event_changes_the_view_in_one_way(before: SessionView, event: Event, after: SessionView) -> None:
    assert apply(before, Recorded(2, LATER, event)).view == after.but(seq=2)


def test_the_table_has_every_event_but_the_creation() -> None:
    assert {type(event) for _, event, _ in TABLE} | {e.SessionCreated} == set(KINDS.values())


def test_a_session_begins_with_its_creation() -> None:
    assert apply(None, Recorded(1, NOW, e.SessionCreated(session=SESSION))).view == BARE


def test_activity_never_steps_back_with_the_clock() -> None:
    ahead = settled(time=SESSION.time.but(updated=LATER))
    assert apply(ahead, Recorded(2, NOW, e.SessionTouched())).view.session.time.updated == LATER


def test_no_events_make_no_view() -> None:
    assert project([]) is None


def test_a_whole_turn_leaves_nothing_open() -> None:
    events = [e.SessionCreated(session=SESSION), *a_turn("ses_one", 1), *a_turn("ses_one", 2)]
    view = project(Recorded(seq, NOW, event) for seq, event in enumerate(events, start=1))
    assert view is not None
    assert (view.turn, view.inbox, view.status, view.messages, view.parts) == (None, (), IDLE, 4, 10)
    assert view.session.cost == 1.0


def test_a_view_depends_on_nothing_but_the_events() -> None:
    recorded = [Recorded(seq, NOW, event) for seq, event in enumerate(every_event(), start=1)]
    assert project(recorded) == project(recorded)


DONE = turned(OPEN, parts={CALL.id: CALL.but(state=completed())})
REFUSED: list[tuple[SessionView | None, int, Event, str]] = [
    (BARE, 2, e.SessionCreated(session=SESSION), "creates a session that exists"),
    (None, 1, e.SessionTouched(), "comes before the session was created"),
    (BARE, 3, e.SessionTouched(), "does not follow event 1"),
    (BARE, 2, e.PromptPromoted(message_id="msg_x"), "names the prompt msg_x, which is not in the inbox"),
    (BARE, 2, e.PromptWithdrawn(message_id="msg_x"), "names the prompt msg_x, which is not in the inbox"),
    (BARE, 2, e.ContextAdmitted(message=a_system("s", "m"), checkpoint={}), "before the first epoch"),
    (OPEN, 2, e.TurnStarted(message=TURN), "starts a turn while msg_a is open"),
    (BARE, 2, e.PermissionAsked(request=PERMISSION), "asks for the call call_prt_c, which is not running"),
    (BARE, 2, e.PermissionReplied(request_id="per_1", reply="once"), "names the request per_1, which is not open"),
    (WAITING, 2, e.QuestionRejected(request_id="per_1"), "does not wait for such an answer"),
    (WAITING, 2, e.AnswerApplied(request_id="per_1"), "applies the answer to per_1, which has none"),
    (BARE, 2, e.TurnEnded(message=TURN), "ends the turn msg_a, which is not open"),
    (OPEN, 2, e.TurnEnded(message=TURN.but(id="msg_b")), "ends the turn msg_b, which is not open"),
    (DONE, 2, e.PartRecorded(part=RAN), "takes the call call_prt_c back from a later state"),
    (OPEN, 2, e.PartExtended(message_id=TURN.id, part_id="prt_x", offset=0, text="x"), "which is not open"),
    (BARE, 2, e.PartExtended(message_id=TURN.id, part_id=TEXT.id, offset=0, text="x"), "which is not open"),
    (OPEN, 2, e.PartExtended(message_id=TURN.id, part_id=TEXT.id, offset=3, text="x"), "that has 4 characters"),
    (OPEN, 2, e.PartExtended(message_id=TURN.id, part_id=CALL.id, offset=0, text="x"), "which is not open"),
]


@pytest.mark.parametrize(("view", "seq", "event", "reason"), REFUSED)
def test_an_event_that_cannot_follow_is_refused(view: SessionView | None, seq: int, event: Event, reason: str) -> None:
    with pytest.raises(Damaged, match=reason) as caught:
        apply(view, Recorded(seq, LATER, event))
    assert caught.value.seq == seq


def test_the_open_turns_own_message_recorded_anew_is_the_turns_message() -> None:
    anew = TURN.but(finish="length")
    view = apply(OPEN, Recorded(2, LATER, e.MessageRecorded(message=anew))).view
    assert view == turned(OPEN, message=anew).but(seq=2)


def test_removing_the_open_turns_message_closes_the_turn() -> None:
    removed = e.MessageRemoved(message_id=TURN.id, seq=1, part_ids=(TEXT.id, CALL.id))
    assert apply(OPEN, Recorded(2, LATER, removed)).view == BARE.but(seq=2)
