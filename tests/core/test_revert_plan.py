"""Plans of reverts: what is meant, what is not put back, and what a commit records."""

import pytest

from turnkeeper.core.file_changes import summary_of
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.revert import RevertPoint
from turnkeeper.core.revert_plan import (
    RevertTarget,
    check_same_root,
    commit_events,
    conflicts_of,
    described,
    target_point,
    turned_out,
)
from turnkeeper.core.view import Admitted, Restore, SessionView
from turnkeeper.model.event import MessageRemoved, PromptWithdrawn, RevertCommitted
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.restore import FileRestore, RestoreKind
from turnkeeper.model.session import FileDiff, Revert
from turnkeeper.testing.builders import a_session, a_text, a_user

FIRST, WAITING = a_user("ses_one", "msg_u1", seq=2), a_user("ses_one", "msg_w", seq=0)
HISTORY = [HistoryItem(message=FIRST, parts=(a_text(FIRST, "prt_1", "Do it"),))]


def a_file(name: str, kind: RestoreKind = "restore") -> FileRestore:
    return FileRestore(file=name, kind=kind)


@pytest.mark.parametrize(
    ("target", "point"),
    [
        (RevertTarget(message_id="msg_u1"), RevertPoint("msg_u1")),
        (RevertTarget(message_id="msg_u1", keeps_message=True), RevertPoint("msg_u1", keeps_message=True)),
        (RevertTarget(message_id="", part_id="prt_1"), RevertPoint("msg_u1")),
    ],
)
def test_a_target_means_a_point_of_the_history(target: RevertTarget, point: RevertPoint) -> None:
    assert target_point("ses_one", HISTORY, target) == point


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (RevertTarget(message_id="msg_x"), "no message 'msg_x'"),
        (RevertTarget(message_id="msg_x", keeps_message=True), "no message 'msg_x'"),
        (RevertTarget(message_id="", part_id="prt_x"), "no part 'prt_x'"),
    ],
)
def test_a_target_that_the_history_does_not_have_is_refused(target: RevertTarget, words: str) -> None:
    with pytest.raises(NotFound, match=f"there is {words} with content in session 'ses_one'"):
        target_point("ses_one", HISTORY, target)


def test_an_undo_below_another_directory_is_a_conflict_only_if_it_has_files() -> None:
    check_same_root(None, "/prj")
    check_same_root(Restore(root="/old", files=(), revert=None), "/prj")
    check_same_root(Restore(root="/prj", files=(a_file("a"),), revert=None), "/prj")
    with pytest.raises(Conflict, match="an undo below '/old' is pending"):
        check_same_root(Restore(root="/old", files=(a_file("a"),), revert=None), "/prj")


def test_files_that_could_not_be_written_are_conflicts_with_their_reason() -> None:
    restore = Restore(root="/prj", files=(a_file("b"), a_file("a", "conflict"), a_file("c")), revert=None)
    assert conflicts_of(restore, {"c": "it is a link"}) == ("a", "c")
    assert conflicts_of(Restore(root="/prj", files=(a_file("b"),), revert=None), ()) is None
    assert turned_out(a_file("b"), {"c": "it is a link"}) == a_file("b")
    left = turned_out(a_file("c"), {"c": "it is a link"})
    assert (left.kind, left.to, left.reason) == ("conflict", left.now, "it is a link")


def test_a_commit_removes_what_was_set_aside_and_withdraws_later_prompts_if_the_message_is_kept() -> None:
    waiting = Admitted(message=WAITING, parts=(), delivery="queue", seq=7)
    view = SessionView(session=a_session(), seq=9, inbox=(waiting,))
    committed = RevertCommitted(message_id="msg_u1")
    assert commit_events(view, HISTORY, HISTORY, RevertPoint("msg_u1")) == [
        MessageRemoved(message_id="msg_u1", seq=2, part_ids=("prt_1",)),
        committed,
    ]
    assert commit_events(view, HISTORY, [], RevertPoint("msg_u1", keeps_message=True)) == [
        PromptWithdrawn(message_id="msg_w"),
        committed,
    ]


def test_a_summary_adds_up_the_changes() -> None:
    diffs = [FileDiff(file="a", additions=2, deletions=1), FileDiff(file="b", additions=3, deletions=0)]
    recorded = summary_of(diffs)
    assert recorded.summary is not None
    assert (recorded.summary.additions, recorded.summary.deletions, recorded.summary.files) == (5, 1, 2)
    assert recorded.diffs == tuple(diffs)


@pytest.mark.parametrize(("keeps", "names"), [(True, ["a"]), (False, None)])
def test_a_revert_tells_its_files_to_the_generation_of_the_api_that_asked(keeps: bool, names: list[str] | None) -> None:
    diffs = [FileDiff(file="a", additions=1, deletions=0, patch="+x\n"), FileDiff(additions=0, deletions=0)]
    told = described(Revert(message_id="msg_u1", keeps_message=keeps), diffs)
    assert told.diff == "+x"
    assert (None if told.files is None else [file["path"] for file in told.files]) == names
