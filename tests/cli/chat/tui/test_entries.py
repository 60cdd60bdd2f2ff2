"""The entries of the full screen: what the feed and stored messages become. Nothing is drawn here."""

import pytest
from cli_store import history

from turnkeeper.cli.chat.tui import entries
from turnkeeper.cli.chat.tui.entries import Transcript
from turnkeeper.cli.plain import CUT_OFF
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import RunningTime, SettledTime, ToolCompleted, ToolRunning
from turnkeeper.testing.builders import a_text, a_user, an_assistant

SESSION = "ses_1"


def text(said: str, *, end: int | None = None, id: str = "prt_1") -> TextPart:
    return TextPart(id=id, session_id=SESSION, message_id="msg_1", text=said, time=Span(start=1, end=end))


def call(state: ToolRunning | ToolCompleted) -> ToolPart:
    return ToolPart(id="prt_2", session_id=SESSION, message_id="msg_1", call_id="c", tool="bash", state=state)


def stored() -> list[MessageWithParts]:
    return [MessageWithParts(info=message, parts=parts) for message, parts in history(SESSION)]


def test_a_text_grows_by_paragraphs_and_is_the_same_at_the_end() -> None:
    shown = Transcript()
    shown.opened(text(""))
    for piece in ("One ", "two.\n", "\nThree", " four.\n\n```py\nx\n\ny\n"):
        shown.grew("prt_1", piece)
    entry = shown.entries["prt_1"]
    assert (entry.blocks, entry.is_settled) == (["One two.\n\n", "Three four.\n\n"], False)
    assert entry.tail == "```py\nx\n\ny\n"
    whole = entry.text + "```\n"
    shown.settled(text(whole, end=2))
    assert (shown.entries["prt_1"].text, "".join(shown.entries["prt_1"].blocks)) == (whole, whole)


def test_what_was_lost_on_the_way_is_there_at_the_end() -> None:
    shown = Transcript()
    shown.opened(text("One"))
    shown.settled(text("One two three.", end=2))
    assert shown.entries["prt_1"].text == "One two three."


def test_a_call_keeps_its_fold_while_it_runs_and_ends() -> None:
    shown = Transcript()
    shown.opened(call(ToolRunning(input={"command": "make"}, time=RunningTime(start=1))))
    shown.entries["prt_2"].is_whole = True
    shown.settled(call(ToolCompleted(input={}, output="done", title="", metadata={}, time=SettledTime(start=1, end=2))))
    entry = shown.entries["prt_2"]
    assert (entry.is_whole, entry.is_settled, entry.text) == (True, True, "done")


def test_a_part_of_a_failed_attempt_leaves() -> None:
    shown = Transcript()
    shown.opened(text("half"))
    shown.changed.clear()
    shown.dropped("prt_1")
    assert (shown.entries, shown.changed, shown.removed) == ({}, set(), {"prt_1"})


@pytest.mark.parametrize("before", [0, 1, 2])
def test_a_prompt_that_waited_moves_to_where_it_took_effect(before: int) -> None:
    shown = Transcript()
    for _ in range(before):  # How often it was recorded before the screen knows its id.
        shown.recorded("msg_1")
    shown.prompted("next", "queued", message_id="msg_1")
    shown.note("said meanwhile")
    waiting = [(one.text, one.about) for one in shown.entries.values()]
    for _ in range(3 - before):  # A third time: its summary was added.
        shown.recorded("msg_1")
    taken = [(one.text, one.about) for one in shown.entries.values()]
    late = [("next", ""), ("said meanwhile", "")]
    assert waiting == (late if before == 2 else [("next", "queued"), ("said meanwhile", "")])
    assert taken == (late if before == 2 else late[::-1])


@pytest.mark.parametrize("is_known", [True, False])
def test_a_prompt_that_waited_took_effect_at_the_latest_when_it_is_answered(*, is_known: bool) -> None:
    [answer] = [one.info for one in stored() if isinstance(one.info, AssistantMessage)][:1]
    shown = Transcript()
    shown.recorded(answer.parent_id)  # Only once: the server was restarted when it became part of the history.
    if is_known:
        shown.prompted("next", "steers", message_id=answer.parent_id)
    shown.began(answer)
    if not is_known:
        shown.prompted("next", "steers", message_id=answer.parent_id)
    assert [(one.text, one.about) for one in shown.entries.values() if one.kind == "prompt"] == [("next", "")]


def test_only_what_changed_is_drawn_again() -> None:
    shown = Transcript()
    shown.prompted("hello")
    shown.opened(text("a"))
    shown.changed.clear()
    shown.grew("prt_1", "b")
    assert shown.changed == {"prt_1"}


def test_a_stored_history_and_a_live_part_are_one_entry() -> None:
    shown = Transcript()
    shown.replace(stored())
    kinds = [one.kind for one in shown.entries.values()]
    assert kinds.count("prompt") == sum(isinstance(one.info, UserMessage) for one in stored())
    assert {"head", "text", "thought", "call", "note"} <= set(kinds)
    before = list(shown.entries)
    for one in stored():
        for part in one.parts if isinstance(one.info, AssistantMessage) else ():
            shown.settled(part)
    assert list(shown.entries) == before


def test_a_stored_answer_that_was_cut_off_says_so() -> None:
    user = a_user(SESSION, "msg_1")
    answer = an_assistant(SESSION, "msg_2", user.id, finish="length")
    shown = Transcript()
    shown.replace([MessageWithParts(info=answer, parts=(a_text(answer, "prt_1", "The wind tur"),))])
    assert list(shown.entries.values())[-1].text == f"✗ {CUT_OFF}"


def test_older_messages_come_first_and_once() -> None:
    messages = stored()
    shown = Transcript()
    shown.replace(messages[-1:])
    newest = list(shown.entries)
    shown.add_before(messages)
    assert list(shown.entries)[-len(newest) :] == newest
    assert shown.added_before == list(shown.entries)[: -len(newest)]


def test_a_long_transcript_forgets_its_beginning() -> None:
    shown = Transcript()
    for number in range(entries.ENTRIES_MAX + 1):
        shown.prompted(str(number))
    assert shown.shorten()
    assert len(shown.entries) <= entries.ENTRIES_MAX
    assert list(shown.entries.values())[-1].text == str(entries.ENTRIES_MAX)
    assert not shown.shorten()


def test_control_characters_of_a_prompt_are_shown_and_not_sent_to_the_terminal() -> None:
    shown = Transcript()
    shown.prompted("a\x1b[2Jb")
    [entry] = shown.entries.values()
    assert "\x1b" not in entry.text


def test_a_thought_is_an_entry_of_its_own() -> None:
    shown = Transcript()
    part = ReasoningPart(id="prt_3", session_id=SESSION, message_id="msg_1", text="hm", time=Span(start=1))
    shown.opened(part)
    assert shown.entries["prt_3"].kind == "thought"
