"""Which turns and calls wrote a file: ordering, copies, reverts, and the calls that name a file."""

import pytest

from turnkeeper.core.blame import WritingTurn, blamed, in_order, origin, writing_turns
from turnkeeper.core.history_trees import KnownTree, TurnPatch
from turnkeeper.core.writing_calls import READERS
from turnkeeper.model.message import AssistantTime
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import PatchPart, ToolPart
from turnkeeper.model.parts.tool import ToolPending
from turnkeeper.model.session import Origin, Revert
from turnkeeper.testing.builders import NOW, a_call, a_session, a_user, an_assistant, completed
from turnkeeper.tools import BUILT_IN, load

HERE = "/home/me/prj"
TURN = an_assistant("ses_one", "msg_2", "msg_1")
PATCH = TurnPatch(
    before=KnownTree(tree="a", directory=HERE), after=KnownTree(tree="b", directory=HERE), files=(f"{HERE}/f.txt",)
)


def call(tool: str, **input: object) -> ToolPart:
    state = completed().but(input=input)
    return a_call(TURN, f"prt_{tool}_{len(str(input))}", state, tool=tool)


def a_turn(*parts: ToolPart, **changes: object) -> WritingTurn:
    return WritingTurn(
        session_id="ses_one", slug="calm", message_id="msg_2", patch=PATCH, began=1, ended=2, parts=parts
    ).but(**changes)


def named(file: str, *parts: ToolPart) -> list[str]:
    return [one.tool for one in origin(a_turn(*parts), f"{HERE}/{file}").calls]


OTHER = call("bash", command="make")


@pytest.mark.parametrize(
    ("part", "is_named"),
    [
        (call("write", filePath="f.txt", content=""), True),
        (call("write", filePath="./sub/../f.txt", content=""), True),
        (call("write", filePath=f"{HERE}/f.txt", content=""), True),
        (call("edit", path="f.txt"), True),
        (call("edit", file_path="f.txt"), True),
        (call("write", filePath="g.txt", content="f.txt"), False),
        (call("write", filePath="sub/f.txt", content=""), False),
        (call("bash", command="echo x > f.txt"), True),
        (call("bash", command=f"rm {HERE}/f.txt; ls"), True),
        (call("bash", command="cat ./f.txt."), True),
        (call("bash", command="cat sub/f.txt ../f.txt"), False),
        (call("bash", command="cat f.txt.bak xf.txt f.txt-2 f.txtx"), False),
        (call("apply_patch", patchText="*** Update File: f.txt\n@@\n"), True),
        (call("custom", edits=[{"where": "f.txt"}]), True),
        (call("custom", edits=[{"where": 7}]), False),
    ],
)
def test_of_several_calls_those_are_named_whose_arguments_name_the_file(part: ToolPart, is_named: bool) -> None:
    assert named("f.txt", OTHER, part) == ([part.tool] if is_named else [])


def test_a_call_that_alone_may_have_written_is_named_whatever_its_arguments_are() -> None:
    assert named("f.txt", OTHER) == ["bash"]
    assert named("f.txt", OTHER, call("read", filePath="f.txt")) == ["bash"], "reading writes nothing"
    pending = a_call(TURN, "prt_9", ToolPending(input={"filePath": "f.txt"}, raw=""), tool="write")
    assert named("f.txt", OTHER, pending) == ["bash"], "it was never run"
    assert named("f.txt") == []
    both = (call("write", filePath="f.txt", content=""), call("edit", filePath="f.txt"))
    assert named("f.txt", *both) == ["write", "edit"]


def test_the_built_in_tools_that_write_nothing_are_known() -> None:
    read_only = {tool.name for tool in load() if tool.read_only}
    assert read_only == READERS <= BUILT_IN.keys()
    assert {"bash", "write", "edit", "multiedit", "apply_patch"}.isdisjoint(READERS)


def test_turns_are_in_the_order_they_ended_and_copies_count_once() -> None:
    one, two = a_turn(ended=5), a_turn(ended=3, message_id="msg_3")
    copy = one.but(session_id="ses_fork", is_copy=True)
    assert in_order([copy, one, two]) == [two, one]
    assert in_order([copy]) == [copy], "its original was removed"


def test_a_reverted_turn_wrote_nothing_and_a_copied_one_is_known_as_such() -> None:
    patch = PatchPart(
        id="prt_p", session_id="ses_one", message_id="msg_2", hash="a", after="b", files=(f"{HERE}/f.txt",)
    )
    done = TURN.but(time=AssistantTime(created=NOW - 10, completed=NOW - 5))
    history = [
        MessageWithParts(info=a_user("ses_one", "msg_1"), parts=()),
        MessageWithParts(info=done, parts=(patch,)),
    ]
    session = a_session()
    [found] = writing_turns(session, history)
    assert (found.patch, found.began, found.ended, found.is_copy) == (PATCH, NOW - 10, NOW - 5, False)
    assert list(writing_turns(session.but(revert=Revert(message_id="msg_1")), history)) == []
    [copied] = writing_turns(session.but(origin=Origin(session_id="ses_source")), history)
    assert copied.is_copy


def test_lines_are_those_that_a_line_feed_ends() -> None:
    by = origin(a_turn(), f"{HERE}/f.txt")
    found = blamed("f", b"a\r\nb\x0cc\nlast \xff", [by, None, by], 2)
    assert [(one.line, one.text, one.origin) for one in found.lines] == [
        (1, "a\r", by),
        (2, "b\x0cc", None),
        (3, "last \N{REPLACEMENT CHARACTER}", by),
    ]
    assert found.left_out == 2
    assert blamed("f", b"", [], 0).lines == ()
