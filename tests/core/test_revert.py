"""Revert: where it begins, which steps it undoes, and what becomes of a file that others changed."""

import pytest

from turnkeeper.core import turn_ends
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.revert import (
    A_LINK,
    CREATED,
    EDITED,
    FORGOTTEN,
    REMOVED,
    SAME_LINES,
    FileStep,
    Merge,
    Merging,
    RevertPoint,
    file_edits,
    file_steps,
    first_and_last_tree,
    merged_anew,
    redo,
    removal,
    revert_point,
    set_aside,
    undo,
    unknown_turns,
)
from turnkeeper.model.event import MessageRemoved, PartRemoved
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import Part, PatchPart, SnapshotPart, StepFinishPart, StepStartPart
from turnkeeper.model.restore import FileEdit, FileRestore, FileState
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.testing.builders import a_call, a_system, a_text, a_user, an_assistant, completed

ROOT = "/prj"


def user(name: str) -> HistoryItem:
    message = a_user("ses_one", name)
    return HistoryItem(message=message, parts=(a_text(message, f"{name}.text", "Do it"),))


def turn(name: str, *parts: str) -> HistoryItem:
    """A message: ``start:T``, ``finish:T``, ``snapshot:T``, ``patch:T:file,file``, ``text``, ``tool``, ``bash``."""
    message = an_assistant("ses_one", name, "u1")
    return HistoryItem(message=message, parts=tuple(part(message, nth, one) for nth, one in enumerate(parts)))


def part(message: AssistantMessage, nth: int, given: str) -> Part:
    id, session_id, message_id = f"{message.id}.{nth}", message.session_id, message.id
    kind, _, rest = given.partition(":")
    match kind:
        case "start":
            return StepStartPart(id=id, session_id=session_id, message_id=message_id, snapshot=rest)
        case "finish":
            finish = StepFinishPart(
                id=id, session_id=session_id, message_id=message_id, reason="stop", cost=0, tokens=ZERO_TOKENS
            )
            return finish.but(snapshot=rest or None)
        case "snapshot":
            return SnapshotPart(id=id, session_id=session_id, message_id=message_id, snapshot=rest)
        case "patch":
            tree, _, files = rest.partition(":")
            names = tuple(files.split(","))
            return PatchPart(id=id, session_id=session_id, message_id=message_id, hash=tree, files=names)
        case "text":
            return a_text(message, id, "Well")
        case "bash":
            return a_call(message, id, completed(), tool="bash")
        case _:
            return a_call(message, id)


NEWS = HistoryItem(message=a_system("ses_one", "news", "It is Monday"), parts=())
HISTORY = [
    user("u1"),
    turn("a1", "start:T0", "text", "tool", "finish:T1", "patch:T0:/prj/one,/elsewhere/x"),
    turn("a2", "start:T1", "tool", "finish:T2", "patch:T1:/prj/one,/prj/two"),
    user("u2"),
    NEWS,
    turn("a3", "start:T2", "text", "finish:T2", "start:T2", "tool", "snapshot:T3", "patch:T2:/prj/sub/three"),
    turn("a4", "start:T3", "tool", "patch:T3:/prj/two"),
    turn("empty"),
]

POINTS: list[tuple[str, str | None, RevertPoint | None]] = [
    ("u1", None, RevertPoint("u1")),
    ("a1", None, RevertPoint("u1")),
    ("a2", None, RevertPoint("u1")),
    ("u2", None, RevertPoint("u2")),
    ("a4", None, RevertPoint("u2")),
    ("empty", None, None),
    ("news", None, None),
    ("unknown", None, None),
    ("a1", "a1.0", RevertPoint("u1")),
    ("a1", "a1.1", RevertPoint("u1")),
    ("a1", "a1.2", RevertPoint("a1", "a1.2")),
    ("a1", "a1.4", RevertPoint("a1", "a1.4")),
    ("a2", "a2.1", RevertPoint("u1")),
    ("a2", "a2.2", RevertPoint("a2", "a2.2")),
    ("anything", "a2.2", RevertPoint("a2", "a2.2")),
    ("u2", "u2.text", RevertPoint("u2")),
    ("a1", "unknown", None),
]


@pytest.mark.parametrize(("message_id", "part_id", "expected"), POINTS)
def test_the_point_of_a_revert(message_id: str, part_id: str | None, expected: RevertPoint | None) -> None:
    assert revert_point(HISTORY, message_id, part_id) == expected


def test_without_a_prompt_before_it_a_revert_begins_at_the_message_itself() -> None:
    assert revert_point(HISTORY[1:2], "a1") == RevertPoint("a1")


STEPS = [
    FileStep("T0", "T1", ("one",)),
    FileStep("T1", "T2", ("one", "two")),
    FileStep("T2", "T3", ("sub/three",)),
    FileStep("T3", None, ("two",)),
]
UNDONE: list[tuple[RevertPoint, list[str], list[FileStep]]] = [
    (RevertPoint("u1"), ["u1", "a1", "a2", "u2", "news", "a3", "a4", "empty"], STEPS),
    (RevertPoint("u2"), ["u2", "news", "a3", "a4", "empty"], STEPS[2:]),
    (RevertPoint("u2", keeps_message=True), ["news", "a3", "a4", "empty"], STEPS[2:]),
    (RevertPoint("a1", "a1.2"), ["a1", "a2", "u2", "news", "a3", "a4", "empty"], STEPS),
    (RevertPoint("a1", "a1.4"), ["a1", "a2", "u2", "news", "a3", "a4", "empty"], STEPS),
    (RevertPoint("a2", keeps_message=True), ["u2", "news", "a3", "a4", "empty"], STEPS[2:]),
    (RevertPoint("a3", "a3.4"), ["a3", "a4", "empty"], STEPS[2:]),
    (RevertPoint("empty", keeps_message=True), [], []),
]


@pytest.mark.parametrize(("point", "messages", "steps"), UNDONE)
def test_what_is_set_aside_and_which_steps_are_undone(
    point: RevertPoint, messages: list[str], steps: list[FileStep]
) -> None:
    aside = set_aside(HISTORY, point)
    assert [entry.message.id for entry in aside] == messages
    assert file_steps(HISTORY, aside, ROOT) == steps


def test_naming_an_answer_undoes_what_naming_its_prompt_undoes() -> None:
    """The files and the history go back to the same moment."""
    found = revert_point(HISTORY, "a2")
    assert found is not None
    assert file_steps(HISTORY, set_aside(HISTORY, found), ROOT) == STEPS


def test_what_is_removed_keeps_the_message_of_a_part() -> None:
    inside = RevertPoint("a3", "a3.4")
    assert removal(set_aside(HISTORY, inside), inside) == [
        *(PartRemoved(message_id="a3", part_id=f"a3.{nth}") for nth in (4, 5, 6)),
        MessageRemoved(message_id="a4", seq=0, part_ids=("a4.0", "a4.1", "a4.2")),
        MessageRemoved(message_id="empty", seq=0),
    ]
    whole = RevertPoint("a4")
    assert removal(set_aside(HISTORY, whole), whole)[0] == MessageRemoved(
        message_id="a4", seq=0, part_ids=("a4.0", "a4.1", "a4.2")
    )


def test_the_trees_around_messages() -> None:
    assert first_and_last_tree(HISTORY[:3]) == ("T0", "T2")
    assert first_and_last_tree([user("u1")]) is None


def test_the_edits_of_a_file_are_newest_first_and_none_where_a_tree_is_gone() -> None:
    trees = {"T0": {}, "T1": {"one": state("x")}, "T2": {"one": state("y"), "two": state("z")}, "T3": None}
    assert file_edits(STEPS, trees) == {
        "two": [None, FileEdit(after=state("z"))],
        "sub/three": [None],
        "one": [FileEdit(before=state("x"), after=state("y")), FileEdit(after=state("x"))],
    }


# One file.


def state(blob: str, mode: str = "100644") -> FileState:
    return FileState(mode=mode, blob=blob)


def merge(wanted: Merge) -> str | None:
    """Contents are words of letters; each letter is a line. Others' letters are capitals."""
    if "!" in "".join(wanted):
        return None
    theirs = "".join(sorted(letter for letter in wanted.ours if letter.isupper()))
    return wanted.theirs + theirs


def decided(deciding: Merging) -> FileRestore:
    try:
        wanted = next(deciding)
        while True:
            wanted = deciding.send(merge(wanted))
    except StopIteration as done:
        restored: FileRestore = done.value
        return restored


def edit(before: str | None, after: str | None) -> FileEdit:
    return FileEdit(before=state(before) if before else None, after=state(after) if after else None)


DECISIONS: list[tuple[str | None, list[FileEdit | None], str, str | None]] = [
    ("b", [edit("a", "b")], "restore", "a"),
    ("a", [edit("a", "b")], "unchanged", "a"),
    ("b", [edit(None, "b")], "delete", None),
    (None, [edit("a", None)], "create", "a"),
    (None, [edit(None, "b")], "unchanged", None),
    ("a", [edit("a", None)], "unchanged", "a"),
    ("bX", [edit("a", "b")], "merged", "aX"),
    ("b!", [edit("a", "b")], SAME_LINES, None),
    (None, [edit("a", "b")], REMOVED, None),
    ("x", [edit("a", None)], CREATED, None),
    ("bX", [edit(None, "b")], EDITED, None),
    ("b", [None], FORGOTTEN, None),
    ("bX", [edit("b", "b")], "unchanged", "bX"),
    # Chains.
    ("c", [edit("b", "c"), edit("a", "b")], "restore", "a"),
    ("c", [edit("b", "c"), edit(None, "b")], "delete", None),
    ("c", [edit("bX", "c"), edit("a", "b")], "merged", "aX"),
    ("cY", [edit("bX", "c"), edit("a", "b")], "merged", "aXY"),
    ("cY", [edit("b!", "c"), edit("a", "b")], SAME_LINES, None),
    ("a", [edit("b", "a"), edit("a", "b")], "unchanged", "a"),
    (None, [edit("b", None), edit("a", "b")], "create", "a"),
    ("b", [edit(None, "b"), edit("a", None)], "restore", "a"),
    ("c", [edit("b", "c"), None], FORGOTTEN, None),
]


@pytest.mark.parametrize(("now", "edits", "kind", "to"), DECISIONS)
def test_the_steps_of_a_file_are_taken_back_newest_first(
    now: str | None, edits: list[FileEdit | None], kind: str, to: str | None
) -> None:
    found = decided(undo("f", state(now) if now else None, edits))
    if found.kind == "conflict":
        assert (found.reason, found.to, found.undone) == (kind, found.now, None)
    else:
        assert (found.kind, found.to) == (kind, state(to) if to else None)
        assert found.undone == (FileEdit(before=found.now, after=found.to) if found.now != found.to else None)


MODES = [
    # Content and mode of: now, the edit; and the result.
    (state("b", "100755"), FileEdit(before=state("a"), after=state("b")), state("a", "100755")),
    (state("bX"), FileEdit(before=state("b"), after=state("b", "100755")), state("bX")),
    (state("b", "100755"), FileEdit(before=state("b"), after=state("b", "100755")), state("b")),
    (state("bX", "100755"), FileEdit(before=state("a"), after=state("b", "100755")), state("aX")),
]


@pytest.mark.parametrize(("now", "made", "to"), MODES)
def test_the_mode_of_a_file_is_taken_back_like_its_content(now: FileState, made: FileEdit, to: FileState) -> None:
    assert decided(undo("f", now, [made])).to == to


def test_a_link_is_put_back_and_never_merged() -> None:
    made = FileEdit(before=state("x", "120000"), after=state("y", "120000"))
    assert decided(undo("f", state("y", "120000"), [made])).to == state("x", "120000")
    assert decided(undo("f", state("z", "120000"), [made])).reason == A_LINK
    assert decided(undo("f", state("z"), [made])).reason == A_LINK


def test_a_redo_takes_back_what_the_undo_did() -> None:
    undone = decided(undo("f", state("bX"), [edit("a", "b")]))
    assert undone.undone is not None
    again = decided(redo("f", state("aX"), undone.undone))
    assert (again.kind, again.to, again.undone) == ("restore", state("bX"), None)
    assert decided(redo("f", state("aXY"), undone.undone)).to == state("bXXY")
    assert decided(redo("f", state("bX"), undone.undone)).kind == "unchanged"
    assert decided(redo("f", None, undone.undone)).reason == REMOVED


@pytest.mark.parametrize(
    ("found", "now", "to", "kind", "reason"),
    [
        ("aX", "aX", "aX", "unchanged", None),
        ("bX", "bX", "aX", "merged", None),
        ("b!", "b", "a", "restore", SAME_LINES),
        (None, "b", "a", "restore", REMOVED),
    ],
)
def test_what_changed_after_a_restore_was_cut_off_is_decided_anew(
    found: str | None, now: str, to: str, kind: str, reason: str | None
) -> None:
    one = decided(undo("f", state("b"), [edit("a", "b")]))
    again = decided(merged_anew(one.but(reason="it changed while a command ran"), state(found) if found else None))
    assert (again.now, again.to, again.kind, again.reason) == (state(now), state(to), kind, reason)
    assert (again.undone, again.earlier) == (one.undone, one.undone if reason else None)


def test_a_second_undo_leads_back_to_before_the_first() -> None:
    first = decided(undo("f", state("c"), [edit("b", "c")])).undone
    assert first == edit("c", "b")
    both = [edit("b", "c"), edit("a", "b")]
    assert decided(undo("f", state("b"), both, first)).undone == edit("c", "a")
    edited = decided(undo("f", state("bX"), both, first))
    assert (edited.kind, edited.to, edited.undone) == ("merged", state("aX"), edit("cX", "aX"))


def test_an_undo_of_less_puts_files_back_that_the_first_had_undone() -> None:
    first = edit("c", "a")
    less = decided(undo("f", state("a"), [], first))
    assert (less.kind, less.to, less.undone) == ("restore", state("c"), None)


def test_a_conflict_keeps_what_the_first_undo_did() -> None:
    first = edit("c", "b")
    found = decided(undo("f", state("b!"), [edit("b", "c"), edit("a", "b")], first))
    assert (found.kind, found.to, found.undone) == ("conflict", state("b!"), first)


LOST = AbortedFailure(data=MessageData(message=turn_ends.LOST))
STOPPED = AbortedFailure(data=MessageData(message="the turn was stopped"))


@pytest.mark.parametrize(
    ("parts", "error", "is_unknown"),
    [
        (("start:T0", "bash"), LOST, True),
        (("start:T0", "bash"), STOPPED, False),
        (("start:T0", "text"), LOST, False),
        (("bash",), LOST, False),
        (("start:T0", "bash", "finish:T1"), None, False),
        (("start:T0", "bash", "finish"), None, True),
        (("start:T0", "bash", "finish", "snapshot:T1", "bash", "patch:T1:/prj/one"), None, True),
    ],
    ids=["killed", "stopped", "killed without calls", "without snapshots", "ended", "end not known", "resumed"],
)
def test_turns_that_were_cut_off_while_calls_may_have_written_are_named(
    parts: tuple[str, ...], error: AbortedFailure | None, is_unknown: bool
) -> None:
    found = turn("a1", *parts)
    assert isinstance(found.message, AssistantMessage)
    assert unknown_turns([user("u1"), found.but(message=found.message.but(error=error))]) == ["a1"] * is_unknown
