"""Entries: what an event is on disk, and how the chain shows damage."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core import entry
from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.value import encode
from turnkeeper.testing.builders import NOW, every_event


def log_of(session_id: str, events: list[Event]) -> list[bytes]:
    prev, log = entry.genesis(session_id), []
    for seq, event in enumerate(events, start=1):
        log.append(entry.write(Recorded(seq, NOW + seq, event), prev, encode(event)))
        prev = entry.digest(log[-1])
    return log


LIFE = every_event("ses_all")
LOG = log_of("ses_all", LIFE)


def test_an_entry_has_exactly_these_bytes() -> None:
    written = entry.write(Recorded(7, 42, e.SessionTitled(title="Größe")), "ab" * 16, '{"title":"Größe"}'.encode())
    assert written.decode() == (
        '{"seq":7,"prev":"abababababababababababababababab","time":42,'
        '"type":"session.titled.1","data":{"title":"Größe"}}'
    )


def test_the_hash_before_the_first_entry_depends_on_the_session() -> None:
    assert entry.genesis("ses_one") == "8940a870873aa868ac8a17f6cbfe540e"
    assert entry.genesis("ses_one") != entry.genesis("ses_two")


def test_a_log_read_back_gives_its_events_with_their_places_and_times() -> None:
    read = [recorded for recorded, _ in entry.chain("ses_all", LOG)]
    assert read == [Recorded(seq, NOW + seq, event) for seq, event in enumerate(LIFE, start=1)]


def test_each_link_is_the_hash_of_its_entry() -> None:
    links = [link for _, link in entry.chain("ses_all", LOG)]
    assert links == [entry.digest(one) for one in LOG]
    assert all(f'"prev":"{link}"'.encode() in following for link, following in zip(links, LOG[1:], strict=False))


def test_the_chain_can_be_taken_up_in_the_middle() -> None:
    rest = list(entry.chain("ses_all", LOG[10:], after=10, prev=entry.digest(LOG[9])))
    assert rest == list(entry.chain("ses_all", LOG))[10:]


@given(st.integers(0, len(LOG) - 2), st.data())
def test_a_change_of_any_byte_of_any_entry_but_the_last_breaks_the_chain(index: int, data: st.DataObject) -> None:
    victim = LOG[index]
    position = data.draw(st.integers(0, len(victim) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != victim[position]))
    damaged = victim[:position] + bytes([byte]) + victim[position + 1 :]
    with pytest.raises(Damaged) as caught:
        list(entry.chain("ses_all", [*LOG[:index], damaged, *LOG[index + 1 :]]))
    # Unreadable at its own place, or else refused by its successor.
    assert caught.value.seq in (index + 1, index + 2)


@given(st.data())
def test_a_change_of_any_byte_of_the_last_entry_changes_the_head(data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(LOG[-1]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != LOG[-1][position]))
    assert entry.digest(LOG[-1][:position] + bytes([byte]) + LOG[-1][position + 1 :]) != entry.digest(LOG[-1])


@pytest.mark.parametrize("index", [0, 1, 20, len(LOG) - 2])
def test_a_missing_entry_breaks_the_chain_at_its_place(index: int) -> None:
    with pytest.raises(Damaged, match=f"event {index + 1}: says it is event {index + 2}"):
        list(entry.chain("ses_all", [*LOG[:index], *LOG[index + 1 :]]))


def test_exchanged_entries_break_the_chain() -> None:
    with pytest.raises(Damaged, match="event 4: says it is event 5"):
        list(entry.chain("ses_all", [*LOG[:3], LOG[4], LOG[3], *LOG[5:]]))


def test_the_log_of_another_session_does_not_pass_for_this_one() -> None:
    with pytest.raises(Damaged, match="event 1: does not follow"):
        list(entry.chain("ses_other", LOG))


def test_an_unknown_type_is_refused_with_a_hint_at_a_newer_program() -> None:
    foreign = LOG[1].replace(b"session.titled.1", b"session.titled.2")
    with pytest.raises(Damaged, match=r"unknown type 'session.titled.2'; a newer turnkeeper"):
        entry.read(foreign, 2)


def test_every_event_class_has_its_own_name_in_the_log() -> None:
    assert len(entry.KINDS) == len({type(event) for event in LIFE})
    assert all(name == f"{kind.KIND}.{kind.VERSION}" for name, kind in entry.KINDS.items())


def test_the_names_in_the_log_never_change() -> None:
    """Logs written today must open for ever: a name may be added here, none may go."""
    assert {
        "session.created.1",
        "session.titled.1",
        "session.touched.1",
        "session.archived.1",
        "session.restored.1",
        "session.moved.1",
        "session.shared.1",
        "session.unshared.1",
        "permissions.set.1",
        "metadata.set.1",
        "agent.selected.1",
        "model.selected.1",
        "summary.recorded.1",
        "todos.set.1",
        "compacting.set.1",
        "restore.begun.1",
        "revert.staged.1",
        "revert.cleared.1",
        "revert.committed.1",
        "message.recorded.1",
        "message.removed.1",
        "part.recorded.1",
        "part.extended.1",
        "part.removed.1",
        "outputs.pruned.1",
        "parts.quarantined.1",
        "prompt.admitted.1",
        "prompt.promoted.1",
        "prompt.withdrawn.1",
        "epoch.started.1",
        "context.admitted.1",
        "instruction.discovered.1",
        "turn.started.1",
        "turn.ended.1",
        "child.begun.1",
        "child.ended.1",
        "usage.recorded.1",
        "status.changed.1",
    } <= {*entry.KINDS, *entry.UPCASTS}


def test_ids_of_events_are_unique_and_follow_their_order_within_a_millisecond() -> None:
    ids = [entry.event_id(recorded, link) for recorded, link in entry.chain("ses_all", LOG)]
    assert all(one < other for one, other in pairwise(ids))
