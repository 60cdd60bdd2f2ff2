"""The model-visible history: a fold of the log, and what of it is shown after compactions."""

from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrow import of_type

from turnkeeper.core.entry import Recorded
from turnkeeper.core.history import History, HistoryItem, boundary_reached, extend, trimmed, visible
from turnkeeper.core.projector import project
from turnkeeper.model import event as e
from turnkeeper.model.failure import ApiData, ApiFailure
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import CompactionPart, FilePart, Part, TextPart
from turnkeeper.testing.builders import a_history, a_text, a_turn, a_user, an_assistant, every_event

FAILED = ApiFailure(data=ApiData(message="no", is_retryable=False))


def chat(words: str, *, failed: str = "", tails: dict[str, str] | None = None) -> list[HistoryItem]:
    """A history from names: ``u1 a1 m1 s1``; m is a marker, s the summary that answers the marker of its number."""
    entries = []
    message: UserMessage | AssistantMessage
    parts: tuple[Part, ...]
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
        entries.append(HistoryItem(message=message, parts=parts))
    return entries


def names(entries: Iterable[HistoryItem]) -> str:
    return " ".join(entry.message.id for entry in entries)


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


NESTED = "u1 a1 u2 a2 m1 s1 u3 a3 m2 s2 u4"


def test_the_worked_example_of_the_specification_holds_in_both_halves() -> None:
    tails = {"m1": "u2", "m2": "u3"}
    assert names(visible(chat(NESTED, tails=tails))) == "m2 s2 u3 a3 u4"
    # The second summary failed, though its tail is on record, as opencode writes it: the first one holds.
    assert names(visible(chat(NESTED, tails=tails, failed="s2"))) == "m1 s1 u2 a2 u3 a3 u4"


@pytest.mark.parametrize(
    ("tails", "failed", "shown"),
    [
        # A tail may reach into the tail of the compaction before, or before that compaction as a whole.
        ({"m1": "u2", "m2": "a2"}, "", "m2 s2 a2 u3 a3 u4"),
        ({"m1": "u2", "m2": "u1"}, "", "m2 s2 u1 a1 u2 a2 u3 a3 u4"),
        ({"m2": "a1"}, "s1", "m2 s2 a1 u2 a2 u3 a3 u4"),
        ({"m1": "u1", "m2": "u1"}, "s1 s2", "u1 a1 u2 a2 u3 a3 u4"),
        # A tail that begins with the older summary itself is what lies behind it.
        ({"m2": "m1"}, "", "m2 s2 u3 a3 u4"),
        ({"m2": "s1"}, "", "m2 s2 u3 a3 u4"),
        # A tail cannot begin behind its own mark.
        ({"m2": "u4"}, "", "m2 s2 u4"),
        ({"m2": "m2"}, "", "m2 s2 u4"),
    ],
)
def test_tails_of_nested_compactions_show_everything_once_and_no_summary_but_the_newest(
    tails: dict[str, str], failed: str, shown: str
) -> None:
    assert names(visible(chat(NESTED, tails=tails, failed=failed))) == shown


def test_failed_compactions_one_after_another_hide_nothing() -> None:
    shown = visible(chat("u1 a1 m1 s1 u2 a2 m2 s2 m3 s3 u3", tails={"m1": "a1", "m3": "u2"}, failed="s2 s3"))
    assert names(shown) == "m1 s1 a1 u2 a2 u3"


def test_a_mark_that_nobody_has_answered_yet_is_shown_while_it_is_the_last() -> None:
    assert names(visible(chat("u1 a1 m1 s1 u2 a2 m2"))) == "m1 s1 u2 a2 m2"
    assert names(visible(chat("u1 a1 m1 s1 u2 a2 m2 u3"))) == "m1 s1 u2 a2 u3"


def test_a_mark_beside_words_of_the_user_is_never_left_out_with_them() -> None:
    entries = chat("u1 a1 m1 s1 u2", failed="s1")
    words = a_text(of_type(UserMessage, entries[2].message), "prt_w", "And this.")
    marked = entries[2].but(parts=(*entries[2].parts, words))
    assert names(visible([*entries[:2], marked, *entries[3:]])) == "u1 a1 m1 u2"


def asked_again(
    words: str, copies: dict[str, str], tails: dict[str, str], *, stripped: bool = False
) -> list[HistoryItem]:
    """A history in which some prompts are copies of others under new ids; each prompt has an image beside its words."""
    made: dict[str, HistoryItem] = {}
    for entry in chat(words, tails=tails):
        name = entry.message.id
        if name in copies:
            parts = [part.but(id=f"{part.id}_{name}", message_id=name) for part in made[copies[name]].parts]
            if stripped:
                user = of_type(UserMessage, entry.message)
                parts[1] = a_text(user, f"prt_{name}_2", "[Attached image/png: a.png]")
            entry = entry.but(parts=tuple(parts))
        elif name[0] == "u":
            image = FilePart(
                id=f"prt_{name}_f", session_id="ses_one", message_id=name, mime="image/png", url="data:image/png,A"
            )
            entry = entry.but(parts=(*entry.parts, image))
        elif name == "a9":
            entry = entry.but(message=entry.message.but(finish=None, error=FAILED), parts=())
        made[name] = entry
    return list(made.values())


@pytest.mark.parametrize("stripped", [False, True], ids=["as it was", "without media"])
@pytest.mark.parametrize(
    ("words", "copies", "tail", "shown"),
    [
        # Appendix A.9: the provider refused u3 (a9 came to nothing); r is u3 without its image.
        ("u1 a1 u2 a2 u3 a9 m1 s1 u8", {"u8": "u3"}, "u2", "m1 s1 u2 a2 u8"),
        ("u1 a1 u2 a2 u3 m1 s1 u8", {"u8": "u3"}, "a2", "m1 s1 a2 u8"),
        ("u1 a1 u2 a2 u3 m1 s1 u8 a8 u9", {"u8": "u3"}, "a2", "m1 s1 a2 u8 a8 u9"),
        # Several prompts wait.
        ("u1 a1 u2 u3 m1 s1 u7 u8", {"u7": "u2", "u8": "u3"}, "a1", "m1 s1 a1 u7 u8"),
        # Other prompts came, as where opencode goes on without asking again: those of the tail are all there is.
        ("u1 a1 u2 m1 s1 u8", {}, "a1", "m1 s1 a1 u2 u8"),
        ("u1 a1 u2 u3 m1 s1 u8", {"u8": "u3"}, "a1", "m1 s1 a1 u2 u3 u8"),
        ("u1 a1 u2 m1 s1", {}, "a1", "m1 s1 a1 u2"),
        # An answered prompt that the user repeats is another one.
        ("u1 a1 u2 a2 m1 s1 u8", {"u8": "u2"}, "u2", "m1 s1 u2 a2 u8"),
        ("u1 a1 u2 m1 s1 u7 u8", {"u8": "u2"}, "a1", "m1 s1 a1 u2 u7 u8"),
    ],
)
def test_a_prompt_that_is_asked_again_behind_a_summary_is_not_shown_in_its_tail_too(
    words: str, copies: dict[str, str], tail: str, shown: str, stripped: bool
) -> None:
    assert names(visible(asked_again(words, copies, {"m1": tail}, stripped=stripped))) == shown


@given(
    st.lists(st.sampled_from("uuuaaams"), max_size=12),
    st.lists(st.integers(0, 12), min_size=12, max_size=12),
    st.sets(st.integers(0, 12)),
)
def test_in_any_history_walking_back_and_trimming_show_what_the_whole_shows(
    kinds: list[str], tails: list[int], failures: set[int]
) -> None:
    words, places, failed = [], {}, []
    for number, kind in enumerate(kinds):
        # A summary answers the mark right before it; any other stands for itself.
        if kind == "s" and (number == 0 or kinds[number - 1] != "m"):
            kind = "a"
        name = f"{kind}{number - 1 if kind == 's' else number}"
        words.append(name)
        if kind == "m" and tails[number] < number:
            places[name] = words[tails[number]]
        if kind == "s" and number in failures:
            failed.append(name)
    entries = chat(" ".join(words), tails=places, failed=" ".join(failed))
    shown = visible(entries)
    walked: list[HistoryItem] = []
    for entry in reversed(entries):
        walked.append(entry)
        if boundary_reached(walked):
            break
    assert visible(walked[::-1]) == shown
    assert visible(trimmed(a_history(tuple(entries), seq=99)).entries) == shown
    assert len(set(names(shown).split())) == len(shown), "nothing is shown twice"
    done = [name for name in words if name[0] == "s" and name not in failed]
    assert [name for name in names(shown).split() if name[0] == "s"] == done[-1:], "and no summary but the newest"


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
    walked: list[HistoryItem] = []
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
        walked: list[HistoryItem] = []
        for entry in reversed(entries):
            walked.append(entry)
            if boundary_reached(walked):
                break
        assert visible(list(reversed(walked))) == visible(entries), (good, tail)


def fold(events: list[e.Event], seq: int = 1, history: History | None = None) -> History:
    history = history or a_history(seq=seq - 1)
    for number, event in enumerate(events, seq):
        history = extend(history, Recorded(number, 0, event))
    return history


def test_a_prompt_is_part_of_the_history_once_it_is_promoted() -> None:
    events = a_turn("ses_one", 1, prompt="Do it", answer="Done")
    admitted = fold(events[:1], seq=2)
    assert admitted.entries == ()
    assert [one.message.id for one in admitted.view.inbox] == ["msg_u1_one"]
    whole = fold(events, seq=2)
    assert names(whole.entries) == "msg_u1_one msg_a1_one"
    assert whole.view.inbox == ()
    assert [entry.message.seq for entry in whole.entries] == [3, 5]
    answer = whole.entries[1]
    assert isinstance(answer.message, AssistantMessage)
    assert answer.message.finish == "stop"
    assert [type(part).__name__ for part in answer.parts] == ["StepStartPart", "TextPart", "ToolPart", "StepFinishPart"]
    assert isinstance(answer.parts[1], TextPart)
    assert answer.parts[1].text == "Done"


def test_folding_an_event_again_changes_nothing() -> None:
    events = every_event()
    whole = fold(events[1:], seq=2)
    for number in range(len(events)):
        assert fold(events[number:], seq=number + 1, history=whole).entries == whole.entries


def test_the_history_of_a_whole_life_has_the_messages_its_view_counts() -> None:
    events = every_event()
    view = project(Recorded(number, 0, event) for number, event in enumerate(events, 1))
    assert view is not None
    whole = fold(events[1:], seq=2)
    assert len(whole.entries) == view.messages
    assert sum(len(entry.parts) for entry in whole.entries) == view.parts
    assert whole.seq == len(events)


def test_a_message_that_comes_again_keeps_its_place_and_its_parts() -> None:
    first, second = a_user("ses_one", "msg_1"), a_user("ses_one", "msg_2")
    words = a_text(first, "prt_1", "hello")
    history = fold([e.MessageRecorded(message=first, parts=(words,)), e.MessageRecorded(message=second)])
    again = extend(history, Recorded(3, 0, e.MessageRecorded(message=first.but(seq=1, agent="plan"))))
    assert names(again.entries) == "msg_1 msg_2"
    assert again.entries[0].message == first.but(seq=1, agent="plan")
    assert again.entries[0].parts == (words.but(seq=1),)


def test_a_withdrawn_prompt_and_removed_messages_and_parts_are_gone() -> None:
    user = a_user("ses_one", "msg_1")
    words = a_text(user, "prt_1", "hello")
    history = fold([e.PromptAdmitted(message=user, parts=(words,), delivery="steer")])
    assert extend(history, Recorded(2, 0, e.PromptWithdrawn(message_id="msg_1"))).view.inbox == ()
    history = extend(history, Recorded(2, 0, e.PromptPromoted(message_id="msg_1")))
    without = extend(history, Recorded(3, 0, e.PartRemoved(message_id="msg_1", part_id="prt_1")))
    assert without.entries[0].parts == ()
    assert extend(history, Recorded(3, 0, e.MessageRemoved(message_id="msg_1", seq=2))).entries == ()
