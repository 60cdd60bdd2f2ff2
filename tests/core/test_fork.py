"""Fork: a copy has new ids, and every link inside it points into the copy."""

from itertools import count
from typing import Any

from turnkeeper.core.fork import Copier
from turnkeeper.core.lowering import INTERRUPTED
from turnkeeper.model.message import AssistantTime
from turnkeeper.model.parts import CompactionPart, FilePart, StepFinishPart, ToolPart
from turnkeeper.model.parts.tool import SettledTime, ToolCompleted, ToolError
from turnkeeper.testing.builders import NOW, SOME_TOKENS, a_call, a_text, a_user, an_assistant, completed, running


def a_copier() -> Copier:
    messages, parts = count(1), count(1)
    return Copier("ses_new", lambda: f"msg_new{next(messages)}", lambda: f"prt_new{next(parts)}")


USER = a_user("ses_old", "msg_u", seq=3)
TURN = an_assistant("ses_old", "msg_a", "msg_u", seq=9, cost=2, tokens=SOME_TOKENS)
PLACE: dict[str, Any] = {"session_id": "ses_old", "message_id": "msg_a"}
NEW = {"session_id": "ses_new", "seq": 0, "nth": 0}


def test_a_copied_message_has_new_ids_and_no_place_yet() -> None:
    text = a_text(USER, "prt_u", "words", seq=3, nth=1)
    copied = a_copier().copy(USER, [text])
    assert copied.message == USER.but(id="msg_new1", session_id="ses_new", seq=0)
    assert copied.parts == (text.but(id="prt_new1", message_id="msg_new1", **NEW),)


def test_the_parent_of_a_copied_turn_is_the_copied_prompt() -> None:
    copier = a_copier()
    copier.copy(USER, [])
    assert copier.copy(TURN, []).message == TURN.but(id="msg_new2", session_id="ses_new", seq=0, parent_id="msg_new1")


def test_a_parent_outside_the_copy_is_left_as_it_is() -> None:
    copied = a_copier().copy(TURN, []).message
    assert copied == TURN.but(id="msg_new1", session_id="ses_new", seq=0)


def test_the_tail_of_a_compaction_is_mapped_and_dropped_if_it_was_not_copied() -> None:
    copier = a_copier()
    copier.copy(USER, [])
    compaction = CompactionPart(id="prt_c", auto=True, tail_start_id="msg_u", **PLACE)
    beyond = compaction.but(id="prt_d", tail_start_id="msg_elsewhere")
    one, other = copier.copy(TURN, [compaction, beyond]).parts
    assert one == compaction.but(id="prt_new1", message_id="msg_new2", tail_start_id="msg_new1", **NEW)
    assert other == beyond.but(id="prt_new2", message_id="msg_new2", tail_start_id=None, **NEW)


def test_attachments_of_a_result_belong_to_the_copy() -> None:
    file = FilePart(id="prt_f", mime="image/png", url="data:,", **PLACE)
    call = a_call(TURN, "prt_c", completed().but(attachments=(file,)))
    [copied] = a_copier().copy(TURN, [call]).parts
    assert isinstance(copied, ToolPart)
    assert isinstance(copied.state, ToolCompleted)
    assert (copied.id, copied.call_id) == ("prt_new1", call.call_id)
    assert copied.state.attachments == (file.but(id="prt_new2", message_id="msg_new1", **NEW),)


def test_a_call_that_is_under_way_is_over_in_the_copy_and_so_is_its_turn() -> None:
    copier = Copier("ses_new", lambda: "msg_new1", lambda: "prt_new1", now=99)
    call = a_call(TURN, "prt_c", running())
    copied = copier.copy(TURN.but(time=AssistantTime(created=1)), [call])
    times = SettledTime(start=NOW, end=99)
    state = ToolError(input={"command": "ls"}, error=INTERRUPTED, metadata={"interrupted": True}, time=times)
    assert copied.parts == (call.but(id="prt_new1", message_id="msg_new1", state=state, **NEW),)
    assert copied.message.time == AssistantTime(created=1, completed=99)


def test_what_a_step_took_is_copied_with_it() -> None:
    step = StepFinishPart(id="prt_s", reason="stop", cost=0.5, tokens=SOME_TOKENS, **PLACE)
    assert a_copier().copy(TURN, [step]).parts == (step.but(id="prt_new1", message_id="msg_new1", **NEW),)
