"""The model-visible history: a fold of the log, and what of it is shown after compactions."""

from itertools import product

import pytest

from turnkeeper.core.entry import Recorded
from turnkeeper.core.history import Entry, History, boundary_reached, extend, visible
from turnkeeper.core.projector import project
from turnkeeper.model import event as e
from turnkeeper.model.failure import ApiData, ApiFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import CompactionPart, TextPart
from turnkeeper.testing.builders import a_text, a_turn, a_user, an_assistant, every_event

FAILED = ApiFailure(data=ApiData(message="no", is_retryable=False))


def chat(words: str, *, failed: str = "", tails: dict[str, str] | None = None) -> list[Entry]:
    """A history from names: ``u1 a1 m1 s1``; m is a marker, s the summary that answers the marker of its number."""
    entries = []
    for seq, name in enumerate(words.split(), 1):
        match name[0]:
            case "u":
                message = a_user("ses_one", name, seq=seq)
                parts = (a_text(message, f"prt_{name}", name),)
            case "m":
                message = a_user("ses_one", name, seq=seq)
                tail = (tails or {}).get(name)
                parts = (
                    CompactionPart(
                        id=f"prt_{name}", session_id="ses_one", message_id=name, auto=True, tail_start_id=tail
                    ),
                )
            case _:
                parent = name.replace("s", "m") if name[0] == "s" else name.replace("a", "u")
                is_failed = name in failed.split()
                message = an_assistant("ses_one", name, parent, seq=seq, summary=name[0] == "s" or None)
                message = message.but(finish=None if is_failed else "stop", error=FAILED if is_failed else None)
                parts = (a_text(message, f"prt_{name}", name),)
        entries.append(Entry(message=message, parts=parts))
    return entries


def names(entries: object) -> str:
    return " ".join(entry.message.id for entry in entries)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("words", "tails", "failed", "shown"),
    [
        ("u1 a1 u2", {}, "", "u1 a1 u2"),
        ("u1 a1 m1 s1 u2", {}, "", "m1 s1 u2"),
        ("u1 a1 u2 a2 m1 s1 u3", {"m1": "u2"}, "", "m1 s1 u2 a2 u3"),
        ("u1 a1 u2 a2 m1 s1 u3", {"m1": "a2"}, "", "m1 s1 a2 u3"),
        # A compaction whose summary never came, or failed, hides nothing and is not shown itself.
        ("u1 a1 m1 u2", {}, "", "u1 a1 u2"),
        ("u1 a1 m1 s1 u2", {}, "s1", "u1 a1 u2"),
        ("u1 a1 m1", {}, "", "u1 a1 m1"),
        # Repeated: only the newest counts.
        ("u1 a1 m1 s1 u2 a2 m2 s2 u3", {}, "", "m2 s2 u3"),
        ("u1 a1 u2 a2 m1 s1 u3 a3 m2 s2 u4", {"m1": "u2", "m2": "u3"}, "", "m2 s2 u3 a3 u4"),
        ("u1 a1 u2 a2 m1 s1 u3 a3 m2 s2 u4", {"m1": "u2", "m2": "u3"}, "s2", "m1 s1 u2 a2 u3 a3 u4"),
        # A tail that is not there any more is no tail.
        ("u1 a1 m1 s1 u2", {"m1": "gone"}, "", "m1 s1 u2"),
        # A turn between marker and summary stays behind the tail.
        ("u1 a1 m1 u2 s1 u3", {"m1": "a1"}, "", "m1 s1 a1 u2 u3"),
    ],
)
def test_the_model_is_shown_the_newest_completed_summary_its_tail_and_what_came_after(
    words: str, tails: dict[str, str], failed: str, shown: str
) -> None:
    assert names(visible(chat(words, tails=tails, failed=failed))) == shown


def test_a_tail_that_reaches_behind_an_older_compaction_shows_no_summary_but_the_newest() -> None:
    shown = visible(chat("u1 a1 m1 s1 u2 a2 m2 s2 u3", tails={"m2": "a1"}))
    assert names(shown) == "m2 s2 a1 u2 a2 u3"


@pytest.mark.parametrize(
    ("words", "tails", "failed", "read"),
    [
        ("u1 a1 u2", {}, "", "u1 a1 u2"),
        ("u1 a1 m1 s1 u2", {}, "", "m1 s1 u2"),
        ("u0 u1 a1 u2 a2 m1 s1 u3", {"m1": "u2"}, "", "u2 a2 m1 s1 u3"),
        ("u0 a0 u1 a1 m1 s1 u2 a2 m2 s2 u3", {"m1": "u1", "m2": "u2"}, "s2", "u1 a1 m1 s1 u2 a2 m2 s2 u3"),
    ],
)
def test_a_walk_back_ends_where_the_model_s_view_begins(
    words: str, tails: dict[str, str], failed: str, read: str
) -> None:
    entries = chat(words, tails=tails, failed=failed)
    walked: list[Entry] = []
    for entry in reversed(entries):
        walked.append(entry)
        if boundary_reached(walked):
            break
    assert names(reversed(walked)) == read
    assert visible(list(reversed(walked))) == visible(entries)


def test_whatever_was_compacted_a_walk_back_shows_the_same_as_the_whole_history() -> None:
    for good, tail in product((True, False), (None, "u1", "a1", "u2", "m1", "gone")):
        entries = chat(
            "u1 a1 m1 s1 u2 a2 m2 s2 u3",
            tails={"m2": tail} if tail else {},
            failed="" if good else "s2",
        )
        walked: list[Entry] = []
        for entry in reversed(entries):
            walked.append(entry)
            if boundary_reached(walked):
                break
        assert visible(list(reversed(walked))) == visible(entries), (good, tail)


def fold(events: list[e.Event], seq: int = 1, history: History | None = None) -> History:
    history = history or History(seq=0)
    for number, event in enumerate(events, seq):
        history = extend(history, Recorded(number, 0, event))
    return history


def test_a_prompt_is_part_of_the_history_once_it_is_promoted() -> None:
    events = a_turn("ses_one", 1, prompt="Do it", answer="Done")
    admitted = fold(events[:1], seq=2)
    assert admitted.entries == ()
    assert list(admitted.inbox) == ["msg_u1_one"]
    whole = fold(events, seq=2)
    assert names(whole.entries) == "msg_u1_one msg_a1_one"
    assert whole.inbox == {}
    assert [entry.message.seq for entry in whole.entries] == [3, 5]
    answer = whole.entries[1]
    assert isinstance(answer.message, AssistantMessage)
    assert answer.message.finish == "stop"
    assert [type(part).__name__ for part in answer.parts] == ["StepStartPart", "TextPart", "ToolPart", "StepFinishPart"]
    assert isinstance(answer.parts[1], TextPart)
    assert answer.parts[1].text == "Done"


def test_folding_an_event_again_changes_nothing() -> None:
    events = every_event()
    whole = fold(events)
    for number in range(len(events)):
        assert fold(events[number:], seq=number + 1, history=whole).entries == whole.entries


def test_the_history_of_a_whole_life_has_the_messages_its_view_counts() -> None:
    events = every_event()
    view = project(Recorded(number, 0, event) for number, event in enumerate(events, 1))
    assert view is not None
    whole = fold(events)
    assert len(whole.entries) == view.messages
    assert sum(len(entry.parts) for entry in whole.entries) == view.parts
    assert whole.seq == len(events)


def test_a_message_that_comes_again_keeps_its_place_and_its_parts() -> None:
    first, second = a_user("ses_one", "msg_1"), a_user("ses_one", "msg_2")
    words = a_text(first, "prt_1", "hello")
    history = fold([e.MessageRecorded(message=first, parts=(words,)), e.MessageRecorded(message=second)])
    again = extend(history, Recorded(3, 0, e.MessageRecorded(message=first.but(seq=1, agent="plan"))))
    assert names(again.entries) == "msg_1 msg_2"
    assert again.entries[0].message.agent == "plan"
    assert again.entries[0].parts == (words,)


def test_a_withdrawn_prompt_and_removed_messages_and_parts_are_gone() -> None:
    user = a_user("ses_one", "msg_1")
    words = a_text(user, "prt_1", "hello")
    history = fold([e.PromptAdmitted(message=user, parts=(words,), delivery="steer")])
    assert extend(history, Recorded(2, 0, e.PromptWithdrawn(message_id="msg_1"))).inbox == {}
    history = extend(history, Recorded(2, 0, e.PromptPromoted(message_id="msg_1")))
    without = extend(history, Recorded(3, 0, e.PartRemoved(message_id="msg_1", part_id="prt_1")))
    assert without.entries[0].parts == ()
    assert extend(history, Recorded(3, 0, e.MessageRemoved(message_id="msg_1", seq=2))).entries == ()
