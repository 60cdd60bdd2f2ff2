"""What the search index has of a part: what people read in it, once it is whole."""

import pytest

from turnkeeper.core.search_text import named_title, searchable
from turnkeeper.core.titles import default_title
from turnkeeper.model.parts import Part, ReasoningPart, SnapshotPart, SubtaskPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import SettledTime, ToolError
from turnkeeper.testing.builders import a_call, a_session, a_text, a_user, an_assistant, completed, running

USER = a_user("ses_one", "msg_one")
ANSWER = an_assistant("ses_one", "msg_two", "msg_one")
FAILED = ToolError(input={}, error="no such file", time=SettledTime(start=1, end=2))


def thought(end: int | None) -> ReasoningPart:
    span = Span(start=1, end=end)
    return ReasoningPart(id="prt_one", session_id="ses_one", message_id="msg_two", text="hm", time=span)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (a_text(USER, "prt_one", "a word"), "a word"),
        (a_text(ANSWER, "prt_one", "a wo", time=Span(start=1)), None),
        (a_text(ANSWER, "prt_one", "a word", time=Span(start=1, end=2)), "a word"),
        (thought(None), None),
        (thought(2), "hm"),
        (a_call(ANSWER, "prt_one", running()), None),
        (a_call(ANSWER, "prt_one", FAILED), "no such file"),
        (SnapshotPart(id="prt_one", session_id="ses_one", message_id="msg_two", snapshot="abc"), None),
    ],
)
def test_a_part_is_searched_by_what_people_read_in_it(part: Part, text: str | None) -> None:
    assert searchable(part) == text


def test_a_call_is_searched_by_its_title_its_input_and_its_whole_output() -> None:
    given = {"command": "make", "environ": {"PORT": 80, "QUIET": True, "shell": None}, "files": ["a.c", "b.c"]}
    state = completed("the end").but(title="Build", input=given, full="the beginning and the end")
    text = "Build\nmake\n80\na.c\nb.c\nthe beginning and the end"
    assert searchable(a_call(ANSWER, "prt_one", state)) == text
    failed = FAILED.but(input={"filePath": "a.c"})
    assert searchable(a_call(ANSWER, "prt_one", failed)) == "a.c\nno such file"


def test_a_subtask_is_searched_by_its_description_and_its_prompt() -> None:
    part = SubtaskPart(
        id="prt_one", session_id="ses_one", message_id="msg_one", prompt="do it", description="work", agent="build"
    )
    assert searchable(part) == "work\ndo it"


def test_a_title_that_nobody_chose_is_not_searched() -> None:
    assert named_title(a_session(title=default_title(1_700_000_000_000))) is None
    assert named_title(a_session(title="Wind")) == "Wind"
