"""Text that comes live and from the log is published once, in order and without a gap."""

from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.live_texts import HELD_MAX, LiveTexts, joined
from turnkeeper.model.notification import Delta


def delta(offset: int, text: str, part_id: str = "prt_1", session_id: str = "ses_1") -> Delta:
    return Delta(
        session_id=session_id,
        directory="/code",
        message_id="msg_1",
        part_id=part_id,
        field="text",
        delta=text,
        offset=offset,
    )


def test_what_the_log_repeats_is_not_published_again() -> None:
    texts = LiveTexts()
    assert texts.began("prt_1", 0) == []
    assert texts.heard(delta(0, "abc"), 0) == [delta(0, "abc")]
    assert texts.logged(delta(0, "ab")) == []
    assert texts.logged(delta(2, "cde")) == [delta(3, "de")]
    assert texts.heard(delta(3, "def"), 5) == [delta(5, "f")]
    assert texts.heard(delta(3, "def"), 5) == []


def test_what_this_process_streamed_is_not_published_again_when_it_reads_its_own_log() -> None:
    texts = LiveTexts()
    texts.streamed(delta(0, "abc"))
    assert texts.logged(delta(0, "abc")) == []


def test_a_delta_that_comes_before_its_part_waits_for_it() -> None:
    texts = LiveTexts()
    assert texts.heard(delta(0, "ab"), None) == []
    assert texts.heard(delta(2, "c"), None) == []
    assert texts.began("prt_1", 0) == [delta(0, "ab"), delta(2, "c")]
    assert texts.heard(delta(3, "d"), 0) == [delta(3, "d")]


def test_a_delta_behind_a_lost_one_waits_until_the_log_has_closed_the_gap() -> None:
    texts = LiveTexts()
    texts.began("prt_1", 0)
    assert texts.heard(delta(2, "cd"), 0) == []
    assert texts.heard(delta(4, "ef"), 0) == []
    assert texts.logged(delta(0, "abc")) == [delta(0, "abc"), delta(3, "d"), delta(4, "ef")]


def test_who_begins_to_follow_in_the_middle_goes_on_after_what_the_log_had() -> None:
    texts = LiveTexts()
    assert texts.heard(delta(7, "hi"), 5) == []
    assert texts.heard(delta(9, "j"), 5) == []
    assert texts.logged(delta(5, "fgh")) == [delta(5, "fgh"), delta(8, "i"), delta(9, "j")]


def test_a_delta_that_comes_after_the_end_of_its_part_is_not_published() -> None:
    texts = LiveTexts()
    texts.began("prt_1", 0)
    texts.ended("prt_1")
    assert texts.heard(delta(0, "late"), None) == []
    texts.rested("ses_other")
    assert texts.weight > 0
    texts.rested("ses_1")
    assert texts.weight == 0


def test_what_is_held_is_bounded_and_the_oldest_is_given_up() -> None:
    texts = LiveTexts()
    texts.heard(delta(0, "x" * (HELD_MAX // 2), "prt_1"), None)
    texts.heard(delta(0, "y" * (HELD_MAX // 2), "prt_2"), None)
    assert texts.weight <= HELD_MAX
    assert texts.began("prt_1", 0) == []
    assert texts.began("prt_2", 0) != []
    for number in range(HELD_MAX // 100):
        texts.heard(delta(0, "", f"prt_{number}"), None)
    assert texts.weight <= HELD_MAX


def test_deltas_that_follow_each_other_are_joined_part_by_part() -> None:
    given_deltas = [delta(0, "a"), delta(0, "x", "prt_2"), delta(1, "b"), delta(5, "f"), delta(1, "y", "prt_2")]
    assert joined(given_deltas) == [delta(0, "ab"), delta(5, "f"), delta(0, "xy", "prt_2")]


@given(data=st.data(), text=st.text(min_size=1, max_size=60))
def test_whatever_is_lost_or_late_the_text_is_published_once_and_in_order(data: st.DataObject, text: str) -> None:
    """The log and the messages are cut anywhere; messages come in any mixture with the log, and some never."""
    texts, published = LiveTexts(), ""
    logged = _cut(data, text)
    lost = data.draw(st.sets(st.integers(min_value=0, max_value=len(text))))
    messages = [one for one in _cut(data, text) if one.offset not in lost]
    durable, has_begun = 0, False
    while logged:
        if bool(messages) and data.draw(st.booleans()):
            fresh = texts.heard(messages.pop(0), durable if has_begun else None)
        elif not has_begun:
            has_begun, fresh = True, texts.began("prt_1", 0)
        else:
            durable = logged[0].offset + len(logged[0].delta)  # The view is swapped before its events are published.
            fresh = texts.logged(logged.pop(0))
        for one in fresh:
            assert one.offset == len(published)
            published += one.delta
    assert published == text


def _cut(data: st.DataObject, text: str) -> list[Delta]:
    places = sorted(data.draw(st.sets(st.integers(min_value=1, max_value=len(text)))) | {len(text)})
    return [delta(begin, text[begin:end]) for begin, end in zip([0, *places], places, strict=False)]
