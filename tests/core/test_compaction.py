"""Compaction: how a history is cut, what is never summarised, and when another compaction may still help."""

from collections.abc import Iterable
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.core.compaction import (
    TAIL_MAX,
    TAIL_MIN,
    Split,
    has_media,
    may_recover,
    progressed,
    split,
    summary_text,
    tail_budget,
    without_media,
)
from turnkeeper.core.history import HistoryItem, compaction_of
from turnkeeper.core.lowering import conversation
from turnkeeper.core.window import chars_of, tokens_of
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import AbortedFailure, ApiData, ApiFailure, MessageData
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.parts import CompactionPart, FilePart, Part, StepStartPart, TextPart
from turnkeeper.testing.builders import a_call, a_system, a_text, a_user, an_assistant, completed

MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="anthropic")
FAILED = ApiFailure(data=ApiData(message="no", is_retryable=False))
ABORTED = AbortedFailure(data=MessageData(message="stopped"))
FRAME = 30
"""No message of a word or two is as many tokens as this, with its frame of JSON."""


def image(message_id: str, mime: str = "image/png") -> FilePart:
    return FilePart(id=f"prt_{message_id}_f", session_id="ses_one", message_id=message_id, mime=mime, url="data:,A")


@cache
def entry(name: str, seq: int, tokens: int = 0) -> HistoryItem:
    """An entry by name, of about so many tokens.

    u prompt, i prompt with an image, a answer, t answer whose tool gave an image, f failed turn, p failed turn that had
    spoken, o turn that has not ended, m mark, s summary, b broken summary, n news.
    """
    words = "x" * max(4, (tokens - FRAME) * 4)
    if name[0] == "n":
        return HistoryItem(message=a_system("ses_one", name, "news").but(seq=seq), parts=())
    if name[0] in "uim":
        user = a_user("ses_one", name, seq=seq)
        mark: Part = CompactionPart(id=f"prt_{name}", session_id="ses_one", message_id=name, auto=True)
        parts = (mark,) if name[0] == "m" else (a_text(user, f"prt_{name}", words),)
        return HistoryItem(message=user, parts=(*parts, image(name)) if name[0] == "i" else parts)
    turn = an_assistant("ses_one", name, f"m{name[1:]}", seq=seq, finish=None if name[0] in "fpob" else "stop")
    turn = turn.but(summary=True if name[0] in "sb" else None, error=FAILED if name[0] in "fpb" else None)
    begun = StepStartPart(id=f"prt_{name}_s", session_id="ses_one", message_id=name)
    if name[0] == "f":
        return HistoryItem(message=turn, parts=(begun,))
    if name[0] == "t":
        state = completed("seen").but(attachments=(image(name),))
        return HistoryItem(message=turn, parts=(begun, a_call(turn, f"prt_{name}", state)))
    return HistoryItem(
        message=turn, parts=(begun, a_text(turn, f"prt_{name}", words if name[0] not in "s" else f"sum {name}"))
    )


def chat(words: str, sizes: dict[str, int] | None = None) -> list[HistoryItem]:
    return [entry(name, seq, (sizes or {}).get(name, 0)) for seq, name in enumerate(words.split(), 1)]


def names(entries: Iterable[HistoryItem]) -> str:
    return " ".join(one.message.id for one in entries)


def told(cut: Split) -> tuple[str, str, str]:
    return names(cut.head), names(cut.tail), names(cut.pending)


@pytest.mark.parametrize(
    ("room", "configured", "budget"),
    [
        (168_000, None, 15_000),
        (60_000, None, 15_000),
        (59_996, None, 14_999),
        (16_000, None, 4_000),
        (4_000, None, TAIL_MIN),
        (0, None, TAIL_MIN),
        (None, None, TAIL_MAX),
        (168_000, 0, 0),
        (168_000, 90_000, 90_000),
    ],
)
def test_a_quarter_of_the_usable_window_is_kept_within_bounds_unless_it_is_said_otherwise(
    room: int | None, configured: int | None, budget: int
) -> None:
    assert tail_budget(room, configured) == budget


TURNS = "u1 a1 a9 u2 a2 u3 a3"


@pytest.mark.parametrize(
    ("sizes", "cut"),
    [
        # Appendix A.5, turns of 12,000, 9,000 and 4,000 with a budget of 15,000. The last answer of the oldest one is
        # 1,500: it still fits.
        ({"u1": 5_000, "a1": 5_500, "a9": 1_500, "u2": 1_000, "a2": 8_000, "u3": 500, "a3": 3_500}, "a9"),
        # If no end of it fits, the tail begins with the turn behind it.
        ({"u1": 5_000, "a1": 1_000, "a9": 6_000, "u2": 1_000, "a2": 8_000, "u3": 500, "a3": 3_500}, "u2"),
        # If not even the newest answer fits, nothing is kept.
        ({"u1": 5_000, "a1": 1_000, "a9": 6_000, "u2": 1_000, "a2": 8_000, "u3": 500, "a3": 20_000}, None),
        # A turn too large as a whole is cut inside.
        ({"u3": 14_000, "a3": 3_500}, "a3"),
        # If everything fits, to keep everything would make nothing smaller.
        ({}, None),
    ],
)
def test_the_tail_is_the_newest_history_that_fits_cut_between_messages(sizes: dict[str, int], cut: str | None) -> None:
    found = split(chat(TURNS, sizes), MODEL, tail_budget(168_000, None))
    assert found.tail_start_id == cut
    before, after = TURNS.split(cut) if cut is not None else (TURNS, None)
    assert told(found) == (before.strip(), f"{cut}{after}" if after is not None else "", "")


@pytest.mark.parametrize(("turns_max", "cut"), [(0, None), (1, "u3"), (2, "u2"), (3, None), (None, None)], ids=str)
def test_so_many_turns_are_kept_at_the_most(turns_max: int | None, cut: str | None) -> None:
    assert split(chat(TURNS), MODEL, 15_000, turns_max=turns_max).tail_start_id == cut


def test_a_budget_of_nothing_keeps_nothing() -> None:
    assert split(chat(TURNS), MODEL, 0).tail == ()


@pytest.mark.parametrize(
    ("words", "cut"),
    [
        # Who has not been answered is asked again and not summarised.
        ("u1 a1 u2 a2 u3", ("u1 a1 u2 a2", "", "u3")),
        ("u1 a1 u2 a2 u3 u4", ("u1 a1 u2 a2", "", "u3 u4")),
        # Appendix A.9: the provider refused; what came to nothing is in neither.
        ("u1 a1 u2 a2 i3 f3", ("u1 a1 u2 a2", "", "i3")),
        ("u1 a1 u2 f2 f3 u3 f4", ("u1 a1", "", "u2 u3")),
        # A turn that was at work, or had spoken before it failed, is an answer: work goes on from it.
        ("u1 a1 u2 p2", ("u1 a1 u2 p2", "", "")),
        ("u1 a1 u2 o2", ("u1 a1 u2 o2", "", "")),
        ("u1 a1 u2 t2", ("u1 a1 u2 t2", "", "")),
        ("u1 a1 u2 p2 u3", ("u1 a1 u2 p2", "", "u3")),
        # The only prompt there is stays too: it is what the user still waits for.
        ("i1 f1", ("", "", "i1")),
        ("u1", ("", "", "u1")),
        ("u1 u2", ("", "", "u1 u2")),
        # With a summary before it there is something else to summarise.
        ("m1 s1 u2", ("", "", "u2")),
        ("m1 s1 u2 f2", ("", "", "u2")),
        ("n1 u1 n2 a1 n3 u2 n4", ("u1 a1", "", "u2")),
    ],
)
def test_a_prompt_that_nobody_answered_is_not_summarised(words: str, cut: tuple[str, str, str]) -> None:
    assert told(split(chat(words), MODEL, 15_000)) == cut


def test_the_summary_before_is_merged_and_marks_are_not_summarised() -> None:
    found = split(chat("m1 s1 u2 a2 u3 a3 u4", {"a2": 20_000}), MODEL, 15_000)
    assert (told(found), found.previous) == (("u2 a2", "u3 a3", "u4"), "sum s1")


def test_a_broken_summary_is_no_summary() -> None:
    found = split(chat("m1 s1 u2 a2 m2 b2 u3 a3"), MODEL, 0)
    assert (told(found), found.previous) == (("u2 a2 u3 a3", "", ""), "sum s1")


def test_what_a_summary_says_is_its_texts_trimmed() -> None:
    turn = an_assistant("ses_one", "s1", "m1")
    texts = tuple(a_text(turn, f"prt_{n}", text) for n, text in enumerate((" one\n", " ", "two")))
    assert summary_text(HistoryItem(message=turn, parts=texts)) == "one\n\ntwo"


@pytest.mark.parametrize(
    ("words", "kept"), [("u1 a1 i2 a2 u3 a3", "a2 u3 a3"), ("u1 a1 u2 t2 u3 a3", "u3 a3"), ("u1 a1 u2 a2", "a1 u2 a2")]
)
def test_after_a_refusal_no_media_stay_that_may_be_the_cause(words: str, kept: str) -> None:
    sizes = {"u1": 20_000}
    assert names(split(chat(words, sizes), MODEL, 15_000, overflowed=True).tail) == kept
    assert names(split(chat(words, sizes), MODEL, 15_000).tail) == words.removeprefix("u1 ")


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (image("m"), "[Attached image/png: file]"),
        (image("m", "application/pdf").but(filename="a.pdf"), "[Attached application/pdf: a.pdf]"),
        (image("m", "text/plain"), None),
        (a_text(a_user("ses_one", "m"), "prt_t", "words"), None),
    ],
)
def test_media_are_asked_again_as_words_and_the_rest_as_it_was(part: Part, words: str | None) -> None:
    again = without_media(part)
    if words is None:
        assert again is part
    else:
        assert isinstance(again, TextPart)
        assert (again.id, again.message_id, again.text) == (part.id, part.message_id, words)


@pytest.mark.parametrize(
    ("name", "shows"), [("i1", True), ("t1", True), ("u1", False), ("a1", False), ("m1", False), ("n1", False)]
)
def test_a_message_shows_media_of_its_own_or_of_a_tool(name: str, shows: bool) -> None:
    assert has_media(entry(name, 1)) is shows


def size(one: HistoryItem) -> int:
    return tokens_of(sum(map(chars_of, conversation([one], MODEL))))


HISTORIES = st.lists(st.tuples(st.sampled_from("uuiaaatfpomsbn"), st.sampled_from([0, 0, 100, 900])), max_size=14).map(
    lambda kinds: [entry(f"{kind}{n}", n + 1, tokens) for n, (kind, tokens) in enumerate(kinds)]
)


@settings(max_examples=100)
@given(HISTORIES, st.sampled_from([0, 50, 500, 1_000, 2_500]), st.sampled_from([None, 0, 1, 2]), st.booleans())
def test_every_history_is_cut_into_head_tail_and_pending_and_nothing_is_lost(
    shown: list[HistoryItem], budget: int, turns_max: int | None, overflowed: bool
) -> None:
    found = split(shown, MODEL, budget, turns_max=turns_max, overflowed=overflowed)
    plain = [
        one
        for one in shown
        if not isinstance(one.message, SystemMessage)
        and compaction_of(one) is None
        and not (isinstance(one.message, AssistantMessage) and one.message.summary)
    ]
    cut = [*found.head, *found.tail, *found.pending]
    lost = [one for one in plain if one not in cut]
    assert [one for one in plain if one not in lost] == cut, "in order, each once"
    assert all(one.message.id[0] == "f" for one in lost), "but for turns that came to nothing"
    assert all(isinstance(one.message, UserMessage) for one in found.pending)
    assert sum(map(size, found.tail)) <= budget
    if turns_max is not None:
        assert sum(isinstance(one.message, UserMessage) for one in found.tail) <= turns_max
    if overflowed:
        assert not any(map(has_media, found.tail))
    if found.tail:
        assert found.head, "a tail that is everything makes nothing smaller"
        assert found.tail_start_id == found.tail[0].message.id
    # Prompts behind the newest turn that did anything wait for an answer.
    worked = max((at for at, one in enumerate(plain) if one.message.id[0] in "atpo"), default=-1)
    waiting = [one for one in plain[worked + 1 :] if isinstance(one.message, UserMessage)]
    assert list(found.pending) == waiting


@pytest.mark.parametrize(
    ("words", "is_progress", "recovers"),
    [
        # Nothing but prompts without an answer: only media could be left out of them.
        ("", False, False),
        ("u1", False, False),
        ("u1 f1", False, False),
        ("i1 f1", False, True),
        ("u1 a1", True, True),
        ("u1 a1 u2 f2", True, True),
        # Just compacted: another one would make nothing smaller, and a second refusal is the end.
        ("u1 a1 m1 s1", False, False),
        ("u1 a1 m1 s1 u2", False, False),
        ("u1 a1 m1 s1 u2 f2", False, False),
        ("u1 a1 m1 s1 u2 p2", False, False),
        ("u1 a1 m1 s1 u2 o2", False, False),
        # A turn ended well since.
        ("u1 a1 m1 s1 u2 a2", True, True),
        ("u1 a1 m1 s1 u2 a2 u3 f3", True, True),
        ("u1 a1 m1 s1 u2 a2 m2 s2 u3", False, False),
        # A compaction that broke counts for nothing.
        ("u1 a1 m1 b1", True, True),
        ("u1 m1 b1 u2", False, True),
        ("u1 a1 m1 s1 u2 m2 b2", False, False),
    ],
)
def test_there_is_one_recovery_and_no_second_without_progress(words: str, is_progress: bool, recovers: bool) -> None:
    assert (progressed(chat(words)), may_recover(chat(words))) == (is_progress, recovers)


def test_a_turn_that_the_user_stopped_is_no_progress() -> None:
    stopped = chat("u1 a1 m1 s1 u2 a2")
    last = stopped[-1].but(message=stopped[-1].message.but(error=ABORTED))
    assert not progressed([*stopped[:-1], last])
