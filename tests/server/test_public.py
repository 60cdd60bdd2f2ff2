"""What clients are sent has no private field, wherever it is nested, and everything else."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from turnkeeper.model.message import Message
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import FilePart, ForeignPart, Part, ReasoningPart, StepStartPart, TextPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import ToolProvider
from turnkeeper.model.session import Origin
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Private, Value, encode
from turnkeeper.server.public import public
from turnkeeper.testing.builders import a_call, a_session, a_text, a_user, an_assistant, completed, running

SESSION = "ses_one"
USER = a_user(SESSION, "msg_one", seq=2)
ANSWER = an_assistant(SESSION, "msg_two", "msg_one", seq=3)
IMPORTED = {"from": "elsewhere"}
TRAPS = {"seq": 5, "nth": 6, "$extra": {}, "origin": 1, "raw": "raw", "says": ',"seq":7,"nth":8'}
"""What looks private in a place where it belongs to others."""
PRIVATE = {"seq", "nth", "$extra", "origin", "provider", "outputPaths", "full", "withheld"}


def sent(value: object) -> Any:
    """A value as clients read it."""
    return msgspec.json.decode(encode(public(value)))


def names(said: object) -> set[str]:
    """Every field of an answer and of the objects inside it, but for free JSON."""
    if isinstance(said, list):
        return {name for one in said for name in names(one)}
    if not isinstance(said, dict):
        return set()
    inner = {name for key, one in said.items() if key not in ("metadata", "body", "input") for name in names(one)}
    return inner | said.keys()


def parts() -> Iterator[Part]:
    placed: dict[str, Any] = {"session_id": SESSION, "message_id": USER.id, "seq": 4, "nth": 2, "extra": IMPORTED}
    yield a_text(USER, "prt_one", ',"seq":1,"nth":2', metadata=TRAPS, seq=4, nth=1)
    yield ReasoningPart(id="prt_one", text="hm", time=Span(start=1, end=2), metadata=TRAPS, **placed)
    yield StepStartPart(id="prt_one", **placed)
    yield ForeignPart(id="prt_one", body=TRAPS, **placed)
    yield a_call(ANSWER, "prt_one", running().but(raw="{}"), metadata=TRAPS, provider=ToolProvider(executed=True))
    file = FilePart(id="prt_file", mime="a/b", url="data:", **placed)
    state = completed().but(raw="{}", full="all of it", output_paths=("a",), attachments=(file,), withheld=(file,))
    yield a_call(ANSWER, "prt_one", state.but(structured=TRAPS, content=({"type": "text"},)), seq=4)


@pytest.mark.parametrize("one", list(parts()), ids=lambda one: type(one).__name__)
def test_a_part_is_sent_without_private_fields(one: Part) -> None:
    said = sent(one)
    assert not names(said) & PRIVATE
    assert said["id"] == one.id
    assert said.get("metadata", TRAPS) == TRAPS


def test_a_call_is_sent_without_what_is_kept_of_its_output() -> None:
    *_, call = parts()
    state = sent(call)["state"]
    assert set(state) == {"status", "input", "output", "title", "metadata", "time", "attachments"}
    assert set(state["attachments"][0]) == {"type", "id", "sessionID", "messageID", "mime", "url"}


@pytest.mark.parametrize("one", [USER, USER.but(extra=IMPORTED), ANSWER.but(structured=TRAPS)], ids=lambda one: one.id)
def test_a_message_is_sent_with_its_parts_and_without_private_fields(one: Message) -> None:
    text = TextPart(id="prt_one", session_id=SESSION, message_id=one.id, text="a", seq=2, nth=3)
    said = sent(MessageWithParts(info=one, parts=(text,)))
    assert not {"seq", "$extra"} & said["info"].keys()
    assert said["parts"] == [{"type": "text", "id": "prt_one", "sessionID": SESSION, "messageID": one.id, "text": "a"}]
    assert said["info"].get("structured", TRAPS) == TRAPS


def test_a_session_and_a_task_list_are_sent_without_private_fields() -> None:
    fork = a_session(SESSION, origin=Origin(session_id="ses_two"), extra=IMPORTED, metadata=TRAPS)
    assert sent(fork) == sent(a_session(SESSION, metadata=TRAPS))
    assert sent((Todo(content="a", status="b", priority="c", id="1"),)) == [
        {"content": "a", "status": "b", "priority": "c"}
    ]


def test_a_field_that_is_marked_private_anywhere_is_left_out() -> None:
    class Inner(Value):
        shown: int
        kept: Private[int] = 0

    class Outer(Value):
        one: Inner
        many: tuple[Inner, ...] | None = None

    inner = Inner(shown=1, kept=2)
    assert sent(Outer(one=inner, many=(inner,))) == {"one": {"shown": 1}, "many": [{"shown": 1}]}
