"""Handles: short names of texts, worked out from the texts alone."""

from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.bounding import bound, kept_hint
from turnkeeper.core.fork import Copier
from turnkeeper.core.handles import HANDLE, handle, handles_in, pieces, recall_text
from turnkeeper.core.history import HistoryItem
from turnkeeper.mint import Mint
from turnkeeper.model.message import Message
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, SubtaskPart, TextPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import SettledTime, ToolError
from turnkeeper.testing.builders import NOW, a_call, a_system, a_text, a_user, an_assistant, completed, running

USER = a_user("ses_1", "msg_1")
TURN = an_assistant("ses_1", "msg_2", "msg_1")

# Any text, with what breaks careless code: half characters, NUL, line ends of all kinds.
ANY_TEXT = st.text(
    st.one_of(st.sampled_from("\0\r\n\t\ud800\udfffé\U0001f600 a"), st.characters(exclude_categories=[])), max_size=400
)


def own(message_id: str, number: int = 1) -> dict[str, Any]:
    return {"id": f"prt_{number}", "session_id": "ses_1", "message_id": message_id}


def texts(*parts: Part, message: Message = TURN) -> dict[str, str]:
    """What can be asked for, by its label."""
    return {piece.label: piece.text for piece in pieces(HistoryItem(message=message, parts=parts))}


def test_a_handle_is_the_beginning_of_a_fingerprint() -> None:
    assert handle("") == "re3b0c44298"
    assert handle("é\ud800") == "r" + sha256("é\ud800".encode("utf-8", "surrogatepass")).hexdigest()[:10]


@given(ANY_TEXT)
def test_a_handle_looks_like_one_and_is_found_in_any_text(text: str) -> None:
    assert HANDLE.fullmatch(handle(text))
    assert handles_in(f"see {handle(text)}, or ({handle(text)})") == [handle(text)]


@pytest.mark.parametrize("text", ["", "r012345678", "r01234567890", "xr0123456789", "r0123456789x", "R0123456789"])
def test_what_only_resembles_a_handle_is_none(text: str) -> None:
    assert handles_in(text) == []


def test_handles_stand_in_the_order_they_are_mentioned() -> None:
    assert handles_in("r0123456789 rabcdefabcd r0123456789") == ["r0123456789", "rabcdefabcd"]


def test_the_texts_of_a_message_can_be_asked_for_one_by_one_and_together() -> None:
    thought = ReasoningPart(text="Hm.", time=Span(start=NOW), **own("msg_2"))
    assert texts(thought, a_text(TURN, "prt_2", "Yes.\r\n")) == {
        "assistant, reasoning": "Hm.",
        "assistant": "Yes.\r\n",
        "assistant, the whole message": "[assistant, reasoning]\nHm.\n\n[assistant]\nYes.\r\n",
    }


def test_a_message_with_one_text_is_that_text() -> None:
    entry = HistoryItem(message=USER, parts=(a_text(USER, "prt_1", "What now?"),))
    [piece] = pieces(entry)
    assert (piece.handle, piece.label, piece.text) == (handle("What now?"), "user", "What now?")
    assert recall_text(entry) == "What now?"


def test_of_a_call_there_are_input_and_whole_output() -> None:
    state = completed("beginning ... end").but(full="beginning, middle, end", title="look", input={"path": "é"})
    found = texts(a_call(TURN, "prt_1", state, tool="bash"))
    assert found["bash, input"] == '{"path":"é"}'
    assert found["bash: look"] == "beginning, middle, end"


def test_a_pruned_output_can_be_asked_for() -> None:
    state = completed("old news").but(title="", time=SettledTime(start=1, end=2, compacted=3))
    assert texts(a_call(TURN, "prt_1", state, tool="bash"))["bash"] == "old news"


def test_of_a_failed_call_there_are_its_error_and_what_it_had_printed() -> None:
    state = ToolError(input={}, error="stopped", metadata={"output": "half"}, time=SettledTime(start=1, end=2))
    found = texts(a_call(TURN, "prt_1", state, tool="bash"))
    assert (found["bash, output until it failed"], found["bash, error"]) == ("half", "stopped")


def test_a_call_under_way_has_only_its_input() -> None:
    assert list(texts(a_call(TURN, "prt_1", running(), tool="bash"))) == ["bash, input"]


@pytest.mark.parametrize(
    ("mime", "url", "text", "kind"),
    [
        ("text/plain", "data:text/plain;base64," + b64encode("é\r\n".encode()).decode(), "é\r\n", None),
        ("text/plain", "data:text/plain,a%20b", "a b", None),
        ("text/plain", "data:text/plain;base64,&&&", "data:text/plain;base64,&&&", None),
        ("image/png", "data:image/png;base64,AAAA", "data:image/png;base64,AAAA", "image/png"),
    ],
)
def test_a_file_is_its_text_or_its_address(mime: str, url: str, text: str, kind: str | None) -> None:
    file = FilePart(mime=mime, filename="f", url=url, **own("msg_1"))
    [piece] = pieces(HistoryItem(message=USER, parts=(file,)))
    assert (piece.label, piece.text, piece.mime) == ("file: f", text, kind)


def test_a_file_that_is_only_named_is_not_here() -> None:
    assert texts(FilePart(mime="text/plain", url="file:///etc/hosts", **own("msg_1")), message=USER) == {}


def test_files_of_a_call_can_be_asked_for_whether_shown_or_withheld() -> None:
    shown, withheld = (
        FilePart(mime="image/png", filename=name, url=f"data:image/png;base64,{name}", **own("msg_2"))
        for name in ("AAAA", "BBBB")
    )
    state = completed().but(attachments=(shown,), withheld=(withheld,))
    found = texts(a_call(TURN, "prt_1", state))
    assert (found["file: AAAA"], found["file: BBBB"]) == (shown.url, withheld.url)


def test_news_and_tasks_can_be_asked_for() -> None:
    assert texts(message=a_system("ses_1", "msg_3", "It rains.")).popitem()[1] == "It rains."
    task = SubtaskPart(prompt="Look.", description="look", agent="explore", **own("msg_1"))
    assert texts(task, message=USER) == {"task for explore": "Look."}


@given(ANY_TEXT, st.integers(1, 30), st.integers(1, 400))
def test_what_is_bounded_is_given_back_whole_by_the_handle_in_its_place(text: str, lines: int, size: int) -> None:
    bounded = bound(text, lines_max=lines, bytes_max=size, hint=kept_hint(handle(text)))
    state = completed(bounded.text).but(full=bounded.full, input={})
    entry = HistoryItem(message=TURN, parts=(a_call(TURN, "prt_1", state),))
    given_back = {piece.handle: piece.text for piece in pieces(entry)}
    if bounded.full is None:
        assert bounded.text == text
    else:
        assert handle(text) in handles_in(bounded.text.replace(text, ""))
        assert given_back[handle(text)] == text


@given(st.lists(ANY_TEXT, max_size=4))
def test_a_copy_has_the_same_handles(said: list[str]) -> None:
    parts = tuple(TextPart(text=text, **own("msg_2", number)) for number, text in enumerate(said))
    call = a_call(TURN, "prt_x", completed("printed"))
    entry = HistoryItem(message=TURN, parts=(*parts, call))
    mint = Mint.fixed()
    copy = Copier("ses_2", mint.message_id, mint.part_id).copy(entry.message, entry.parts)
    copied = HistoryItem(message=copy.message, parts=copy.parts)
    assert [(one.handle, one.label) for one in pieces(copied)] == [(one.handle, one.label) for one in pieces(entry)]
