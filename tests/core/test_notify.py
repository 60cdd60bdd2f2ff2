"""Notifications: what subscribers hear of each event."""

import pytest

from turnkeeper.core.entry import KINDS, Recorded
from turnkeeper.core.notify import deleted, notify
from turnkeeper.core.projector import apply
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import SessionDeleted
from turnkeeper.model.session import FileDiff, Summary
from turnkeeper.model.status import BUSY, IDLE
from turnkeeper.testing.builders import NOW, a_session, a_system, a_text, a_user, an_assistant, every_event

HEARD = {
    e.SessionCreated: {"session.created"},
    e.SessionTitled: {"session.updated"},
    e.SessionTouched: {"session.updated"},
    e.SessionArchived: {"session.updated"},
    e.SessionRestored: {"session.updated"},
    e.SessionMoved: {"session.updated"},
    e.SourceFollowed: {"session.updated"},
    e.SessionShared: {"session.updated"},
    e.SessionUnshared: {"session.updated"},
    e.PermissionsSet: {"session.updated"},
    e.MetadataSet: {"session.updated"},
    e.AgentSelected: {"session.updated"},
    e.ModelSelected: {"session.updated"},
    e.SummaryRecorded: {"session.diff", "session.updated"},
    e.TodosSet: {"todo.updated"},
    e.CompactingSet: {"session.updated"},
    e.RestoreBegun: set(),
    e.RevertStaged: {"session.updated"},
    e.RevertCleared: {"session.updated"},
    e.RevertCommitted: {"session.updated"},
    e.MessageRecorded: {"message.updated", "message.part.updated"},
    e.MessageRemoved: {"message.removed"},
    e.PartRecorded: {"message.part.updated"},
    e.PartExtended: set(),
    e.PartRemoved: {"message.part.removed"},
    e.OutputsPruned: set(),
    e.PartsQuarantined: {"session.error"},
    e.PromptAdmitted: {"message.updated", "message.part.updated", "session.updated"},
    e.PromptPromoted: {"message.updated", "message.part.updated"},
    e.PromptWithdrawn: {"message.removed"},
    e.EpochStarted: set(),
    e.ContextAdmitted: {"message.updated"},
    e.InstructionDiscovered: set(),
    e.TurnStarted: {"message.updated"},
    e.TurnEnded: {"message.updated", "session.error", "session.updated"},
    e.PermissionAsked: {"permission.asked"},
    e.PermissionReplied: {"permission.replied"},
    e.QuestionAsked: {"question.asked"},
    e.QuestionReplied: {"question.replied"},
    e.QuestionRejected: {"question.rejected"},
    e.AnswerApplied: set(),
    e.ChildBegun: set(),
    e.ChildEnded: set(),
    e.UsageRecorded: {"session.updated"},
    e.StatusChanged: {"session.status", "session.idle"},
}


def test_each_event_is_heard_as_what_clients_know() -> None:
    heard: dict[type, set[str]] = {kind: set() for kind in KINDS.values()}
    view: SessionView | None = None
    # A later time for each, so that whatever counts as activity is seen to.
    for seq, event in enumerate(every_event(), start=1):
        recorded = Recorded(seq, NOW + seq * 1000, event)
        after, changes = apply(view, recorded)
        said = notify(after.session, recorded, changes)
        assert all(
            (one.seq, one.session_id, one.directory) == (seq, "ses_all", after.session.directory) for one in said
        )
        assert all(one.properties["sessionID"] == "ses_all" for one in said)
        heard[type(event)].update(one.type for one in said)
        view = after
    assert heard == HEARD


VIEW = SessionView(session=a_session("ses_one"), seq=4)
USER = a_user("ses_one", "msg_u")
TURN = an_assistant("ses_one", "msg_a", "msg_u")


def said(event: e.Event, view: SessionView = VIEW) -> list[tuple[str, dict[str, object]]]:
    recorded = Recorded(5, NOW, event)
    after, changes = apply(view, recorded)
    notifications = notify(after.session, recorded, changes)
    return [(one.type, {k: v for k, v in one.properties.items() if k != "sessionID"}) for one in notifications]


def test_a_message_is_told_before_its_parts_and_with_its_place() -> None:
    parts = (a_text(USER, "prt_1", "one"), a_text(USER, "prt_2", "two"))
    assert said(e.MessageRecorded(message=USER, parts=parts)) == [
        ("message.updated", {"info": USER.but(seq=5)}),
        ("message.part.updated", {"part": parts[0].but(seq=5), "time": NOW}),
        ("message.part.updated", {"part": parts[1].but(seq=5, nth=1), "time": NOW}),
    ]


def test_a_message_recorded_anew_keeps_its_place() -> None:
    assert said(e.MessageRecorded(message=USER.but(seq=2))) == [("message.updated", {"info": USER.but(seq=2)})]


def test_a_system_message_is_told_like_any_other() -> None:
    view = VIEW.but(epoch=next(one.epoch for one in every_event() if isinstance(one, e.EpochStarted)))
    news = a_system("ses_one", "msg_s", "news")
    assert said(e.ContextAdmitted(message=news, checkpoint={}), view) == [
        ("message.updated", {"info": news.but(seq=5)})
    ]


def test_the_parts_of_a_removed_message_are_told_before_it() -> None:
    assert said(e.MessageRemoved(message_id="msg_u", seq=2, part_ids=("prt_1", "prt_2"))) == [
        ("message.part.removed", {"messageID": "msg_u", "partID": "prt_1"}),
        ("message.part.removed", {"messageID": "msg_u", "partID": "prt_2"}),
        ("message.removed", {"messageID": "msg_u"}),
    ]


def test_idle_is_told_twice_for_old_clients() -> None:
    assert said(e.StatusChanged(status=IDLE), VIEW.but(status=BUSY)) == [
        ("session.status", {"status": IDLE}),
        ("session.idle", {}),
    ]
    assert said(e.StatusChanged(status=BUSY)) == [("session.status", {"status": BUSY})]


@pytest.mark.parametrize("ended", [True, False])
def test_a_turn_that_failed_is_told_as_an_error_too(ended: bool) -> None:
    failure = AbortedFailure(data=MessageData(message="stopped"))
    failed: AssistantMessage = TURN.but(error=failure)
    view = apply(VIEW, Recorded(5, NOW, e.TurnStarted(message=TURN))).view.but(seq=4) if ended else VIEW
    event = e.TurnEnded(message=failed) if ended else e.TurnStarted(message=failed)
    place = 5
    assert said(event, view)[:2] == [
        ("message.updated", {"info": failed.but(seq=place)}),
        ("session.error", {"error": failure}),
    ]


def test_diffs_are_told_and_then_the_session() -> None:
    diff = FileDiff(additions=1, deletions=0)
    [(kind, body), (updated, _)] = said(
        e.SummaryRecorded(summary=Summary(additions=1, deletions=0, files=1), diffs=(diff,)),
        VIEW.but(session=VIEW.session.but(time=VIEW.session.time.but(updated=0))),
    )
    assert (kind, body, updated) == ("session.diff", {"diff": (diff,)}, "session.updated")


def test_a_session_that_did_not_change_is_not_told() -> None:
    assert said(e.SessionTitled(title=VIEW.session.title)) == []


def test_the_last_thing_told_of_a_session_is_its_end() -> None:
    session = VIEW.session
    properties = {"sessionID": "ses_one", "info": session}
    assert deleted(session) == SessionDeleted(
        type="session.deleted",
        session_id="ses_one",
        directory=session.directory,
        seq=0,
        properties=properties,
        project_id=session.project_id,
    )


def test_the_end_of_a_turn_has_the_place_of_its_beginning() -> None:
    started = apply(VIEW, Recorded(5, NOW, e.TurnStarted(message=TURN))).view
    recorded = Recorded(6, NOW, e.TurnEnded(message=TURN.but(finish="stop")))
    after, changes = apply(started, recorded)
    first = notify(after.session, recorded, changes)[0]
    assert first.properties["info"] == TURN.but(finish="stop", seq=5)
