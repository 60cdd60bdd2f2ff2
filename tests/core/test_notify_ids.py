"""Ids and times of notifications: derived from the entry, so that they are the same whenever it is told again."""

from turnkeeper.core.entry import Recorded
from turnkeeper.core.notify import notify, spelt_out
from turnkeeper.core.projector import apply
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.notification import Notification
from turnkeeper.testing.builders import NOW, a_session, a_text, a_user, an_assistant

LINK = "0123456789abcdef" * 2
VIEW = SessionView(session=a_session(), seq=3)
USER = a_user("ses_one", "msg_1")


def told(event: e.Event, view: SessionView = VIEW, seq: int = 4) -> list[Notification]:
    recorded = Recorded(seq, NOW, event)
    after, changes = apply(view, recorded)
    return notify(after.session, recorded, changes, LINK)


def test_each_notification_of_an_event_has_an_id_of_its_own_and_the_same_each_time() -> None:
    event = e.MessageRecorded(message=USER, parts=(a_text(USER, "prt_1", "a"), a_text(USER, "prt_2", "b")))
    first, again = told(event), told(event)
    assert len({one.id for one in first}) == 3
    assert [one.id for one in first] == [one.id for one in again]
    assert all(len(one.id) == len("evt_") + 26 for one in first)
    assert {one.time for one in first} == {NOW}


def test_the_project_of_the_session_is_told_with_it() -> None:
    assert {one.project_id for one in told(e.SessionTitled(title="New"))} == {VIEW.session.project_id}


def test_the_end_of_a_summary_is_told_as_a_compaction_unless_it_failed() -> None:
    turn = an_assistant("ses_one", "msg_2", "msg_1", summary=True)
    open_view = apply(VIEW, Recorded(4, NOW, e.TurnStarted(message=turn))).view
    ended = [one.type for one in told(e.TurnEnded(message=turn), open_view, 5)]
    failed = [one.type for one in told(e.TurnEnded(message=turn.but(error=_stopped())), open_view, 5)]
    assert ("session.compacted" in ended, "session.compacted" in failed) == (True, False)


def test_marks_are_spelt_out_in_values_and_in_plain_json() -> None:
    mark = "\x01blob:sha256:" + "a" * 64
    one = Notification(
        type="any",
        session_id="ses_one",
        directory="/",
        seq=1,
        properties={"part": a_text(USER, "prt_1", mark), "deep": {"list": [mark]}, "text": mark, "number": 1},
    )
    properties = spelt_out(one, {"a" * 64: "long"}).properties
    assert properties == {
        "part": a_text(USER, "prt_1", "long"),
        "deep": {"list": ["long"]},
        "text": "long",
        "number": 1,
    }


def _stopped() -> AbortedFailure:
    return AbortedFailure(data=MessageData(message="stopped"))
