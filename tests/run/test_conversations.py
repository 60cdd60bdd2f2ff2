"""Conversations: lowering what is new gives what lowering everything gives."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.core.handles import handle
from turnkeeper.core.history import HistoryItem, since_epoch, visible
from turnkeeper.core.lowering import CLEARED, Lowered, conversation
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.message import ContextUpdate, MessageTime, SystemMessage
from turnkeeper.model.parts import CompactionPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.value import encode
from turnkeeper.run.conversations import Conversations
from turnkeeper.testing.builders import a_call, a_history, a_user, an_assistant, completed

SESSION = "ses_one"
MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="openai-chat")
OTHER = MODEL.but(id="small", api_id="small")


def entry(kind: str, seq: int) -> HistoryItem:
    """One entry of a history, by kind."""
    name = f"msg_{seq}"
    place: dict[str, Any] = {"session_id": SESSION, "message_id": name}
    words = TextPart(id=f"prt_{seq}", text=f"words {seq}", **place)
    if kind == "news":
        update = ContextUpdate(key="core/date", text=f"day {seq}")
        message = SystemMessage(id=name, session_id=SESSION, seq=seq, time=MessageTime(created=seq), updates=(update,))
        return HistoryItem(message=message, parts=())
    if kind == "mark":
        return HistoryItem(
            message=a_user(SESSION, name).but(seq=seq), parts=(CompactionPart(id=f"prt_{seq}", auto=True, **place),)
        )
    if kind == "summary":
        parent = f"msg_{seq - 1}"
        return HistoryItem(
            message=an_assistant(SESSION, name, parent).but(seq=seq, summary=True, finish="stop"), parts=(words,)
        )
    if kind == "answer":
        return HistoryItem(
            message=an_assistant(SESSION, name, f"msg_{seq - 1}").but(seq=seq, finish="stop"), parts=(words,)
        )
    return HistoryItem(message=a_user(SESSION, name).but(seq=seq), parts=(words,))


KINDS = st.lists(st.sampled_from(["user", "answer", "news", "mark", "summary"]), max_size=12)


@given(KINDS, st.lists(st.tuples(st.integers(0, 12), st.sampled_from([MODEL, OTHER]), st.integers(0, 8)), min_size=1))
def test_a_kept_conversation_is_the_one_that_would_be_lowered_anew(
    kinds: list[str], looks: list[tuple[int, ModelInfo, int]]
) -> None:
    kept = Conversations()
    entries = tuple(entry(kind, seq) for seq, kind in enumerate(kinds, 1))
    for length, model, epoch_seq in looks:
        history = a_history(entries[:length], seq=length)
        lowered = kept.of(SESSION, history, model, epoch_seq)
        anew = conversation(since_epoch(visible(history.entries), epoch_seq), model)
        assert lowered.messages == anew
        assert list(lowered.encoded) == [encode(message) for message in anew]


def test_what_was_lowered_is_not_lowered_again() -> None:
    kept = Conversations()
    entries = tuple(entry("user" if seq % 2 else "answer", seq) for seq in range(1, 9))
    before = kept.of(SESSION, a_history(entries[:6], seq=6), MODEL, 0).messages
    after = kept.of(SESSION, a_history(entries, seq=8), MODEL, 0).messages
    assert all(one is other for one, other in zip(before, after, strict=False))


def called(seq: int, size: int = 40) -> HistoryItem:
    """A turn that called a tool."""
    message = an_assistant(SESSION, f"msg_{seq}", f"msg_{seq - 1}").but(seq=seq, finish="tool-calls")
    return HistoryItem(message=message, parts=(a_call(message, f"prt_{seq}", completed("x" * size)),))


def pruned(one: HistoryItem) -> HistoryItem:
    """The same turn, its output pruned."""
    [call] = one.parts
    assert isinstance(call, ToolPart)
    assert isinstance(call.state, ToolCompleted)
    return one.but(parts=(call.but(state=call.state.but(time=call.state.time.but(compacted=9))),))


TOLD = (entry("user", 1), called(2), entry("answer", 3), entry("user", 4), called(5), entry("answer", 6))


def anew(entries: tuple[HistoryItem, ...], left_out: tuple[str, ...] = ()) -> Lowered:
    lowered = Lowered(MODEL, frozenset(left_out))
    lowered.add(visible(entries))
    return lowered


def test_a_pruning_lowers_the_conversation_anew_and_its_output_counts_no_more() -> None:
    kept = Conversations()
    before = kept.of(SESSION, a_history(TOLD, seq=6), MODEL, 0)
    assert kept.outputs(SESSION) == 80
    after = (TOLD[0], pruned(TOLD[1]), *TOLD[2:])
    lowered = kept.of(SESSION, a_history(after, seq=7), MODEL, 0)
    assert lowered is not before
    assert lowered.messages == anew(after).messages != before.messages
    assert CLEARED in str(lowered.messages)
    assert kept.outputs(SESSION) == 40


def test_a_quarantine_lowers_the_conversation_anew_without_what_is_left_out() -> None:
    kept = Conversations()
    history = a_history(TOLD, seq=6)
    before = kept.of(SESSION, history, MODEL, 0)
    lowered = kept.of(SESSION, history, MODEL, 0, ("prt_4",))
    assert lowered is not before
    assert lowered.messages == anew(TOLD, ("prt_4",)).messages
    assert ("words 4" in str(before.messages), "words 4" in str(lowered.messages)) == (True, False)
    assert handle("words 4") in str(lowered.messages)
    assert kept.of(SESSION, history, MODEL, 0, ("prt_4",)) is lowered, "and then it is kept again"


def test_each_message_knows_the_one_it_comes_from_whatever_is_left_out() -> None:
    lowered = anew(TOLD, ("prt_2", "prt_4"))
    assert lowered.sources == ["msg_1", "msg_2", "msg_2", "msg_3", "msg_4", "msg_5", "msg_5", "msg_6"]
    assert len(lowered.messages) == len(lowered.sources)


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("grow"), st.integers(1, 3)),
        st.tuples(st.just("prune"), st.integers(0, 7)),
        st.tuples(st.just("leave out"), st.integers(1, 8)),
    ),
    max_size=8,
)


@settings(max_examples=40)
@given(CHANGES)
def test_however_a_history_grows_and_is_rewritten_what_is_kept_is_what_would_be_lowered_anew(
    changes: list[tuple[str, int]],
) -> None:
    kept = Conversations()
    entries: tuple[HistoryItem, ...] = ()
    left_out: tuple[str, ...] = ()
    for kind, number in changes:
        match kind:
            case "grow":
                for _ in range(number):
                    seq = len(entries) + 1
                    entries = (*entries, called(seq) if seq % 3 == 2 else entry("user" if seq % 3 else "answer", seq))
            case "prune" if number < len(entries) and isinstance(entries[number].parts[0], ToolPart):
                entries = (*entries[:number], pruned(entries[number]), *entries[number + 1 :])
            case "leave out":
                left_out = (*left_out, f"prt_{number}")
            case _:
                pass
        lowered = kept.of(SESSION, a_history(entries, seq=len(entries)), MODEL, 0, left_out)
        fresh = anew(entries, left_out)
        assert (lowered.messages, lowered.encoded, lowered.sources) == (fresh.messages, fresh.encoded, fresh.sources)
        assert (lowered.outputs, lowered.gauge.tokens(0, 0)) == (fresh.outputs, fresh.gauge.tokens(0, 0))
