"""Conversations: lowering what is new gives what lowering everything gives."""

from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.conversations import Conversations
from turnkeeper.core.history import Entry, History, since_epoch, visible
from turnkeeper.core.lowering import conversation
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.message import ContextUpdate, MessageTime, SystemMessage
from turnkeeper.model.parts import CompactionPart, TextPart
from turnkeeper.model.value import encode
from turnkeeper.testing.builders import a_user, an_assistant

SESSION = "ses_one"
MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="openai-chat")
OTHER = MODEL.but(id="small", api_id="small")


def entry(kind: str, seq: int) -> Entry:
    """One entry of a history, by kind."""
    name = f"msg_{seq}"
    place = {"session_id": SESSION, "message_id": name}
    words = TextPart(id=f"prt_{seq}", text=f"words {seq}", **place)
    if kind == "news":
        update = ContextUpdate(key="core/date", text=f"day {seq}")
        message = SystemMessage(id=name, session_id=SESSION, seq=seq, time=MessageTime(created=seq), updates=(update,))
        return Entry(message=message, parts=())
    if kind == "mark":
        return Entry(
            message=a_user(SESSION, name).but(seq=seq), parts=(CompactionPart(id=f"prt_{seq}", auto=True, **place),)
        )
    if kind == "summary":
        parent = f"msg_{seq - 1}"
        return Entry(
            message=an_assistant(SESSION, name, parent).but(seq=seq, summary=True, finish="stop"), parts=(words,)
        )
    if kind == "answer":
        return Entry(message=an_assistant(SESSION, name, f"msg_{seq - 1}").but(seq=seq, finish="stop"), parts=(words,))
    return Entry(message=a_user(SESSION, name).but(seq=seq), parts=(words,))


KINDS = st.lists(st.sampled_from(["user", "answer", "news", "mark", "summary"]), max_size=12)


@given(KINDS, st.lists(st.tuples(st.integers(0, 12), st.sampled_from([MODEL, OTHER]), st.integers(0, 8)), min_size=1))
def test_a_kept_conversation_is_the_one_that_would_be_lowered_anew(
    kinds: list[str], looks: list[tuple[int, ModelInfo, int]]
) -> None:
    kept = Conversations()
    entries = tuple(entry(kind, seq) for seq, kind in enumerate(kinds, 1))
    for length, model, epoch_seq in looks:
        history = History(seq=length, entries=entries[:length])
        lowered = kept.of(SESSION, history, model, epoch_seq)
        anew = conversation(since_epoch(visible(history.entries), epoch_seq), model)
        assert lowered.messages == anew
        assert lowered.encoded == [encode(message) for message in anew]


def test_what_was_lowered_is_not_lowered_again() -> None:
    kept = Conversations()
    entries = tuple(entry("user" if seq % 2 else "answer", seq) for seq in range(1, 9))
    before = kept.of(SESSION, History(seq=6, entries=entries[:6]), MODEL, 0).messages
    after = kept.of(SESSION, History(seq=8, entries=entries), MODEL, 0).messages
    assert all(one is other for one, other in zip(before, after, strict=False))
