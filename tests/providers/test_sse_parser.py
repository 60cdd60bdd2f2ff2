"""Server-sent events from bytes."""

import collections

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.providers.sse import EventTooLarge, SseEvent, SseParser


def parse(*chunks: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.end()


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        (b"data: a\n\n", [(b"", b"a")]),
        (b"data:a\n\n", [(b"", b"a")]),
        (b"data:  a\n\n", [(b"", b" a")]),
        (b"event: x\ndata: a\n\n", [(b"x", b"a")]),
        (b"data: a\ndata: b\n\n", [(b"", b"a\nb")]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [(b"", b"a"), (b"", b"b")]),
        (b"data: a\r\rdata: b\r\r", [(b"", b"a"), (b"", b"b")]),
        (b": a comment\n\ndata: a\n\n", [(b"", b"a")]),
        (b"id: 7\nretry: 10\ndata: a\n\n", [(b"", b"a")]),
        (b"event: x\n\ndata: a\n\n", [(b"", b"a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [(b"", b"a")]),
        (b"data: a", [(b"", b"a")]),
        (b"data: a\n", [(b"", b"a")]),
        (b"data:\n\n", [(b"", b"")]),
        (b"", []),
        (b"\n\n\n", []),
        (b"<html>no events</html>", []),
    ],
)
def test_events_are_told_apart(wire: bytes, events: list[SseEvent]) -> None:
    assert parse(wire) == events
    assert parse(*(wire[i : i + 1] for i in range(len(wire)))) == events


@given(
    st.lists(
        st.sampled_from([b"data: a", b"data", b"event: x", b"\n", b"\r", b"\r\n", b":", b" ", b"\xf0\x9f"]), max_size=30
    ),
    st.integers(1, 7),
)
def test_chunks_of_any_size_say_the_same(pieces: list[bytes], size: int) -> None:
    wire = b"".join(pieces)
    assert parse(*(wire[i : i + size] for i in range(0, len(wire), size))) == parse(wire)


@pytest.mark.parametrize(
    "chunk", [b"data: " + b"x" * 50, b"data: xxxxxxxxxx\n", b"x"], ids=["at once", "lines", "bytes"]
)
def test_an_event_that_never_ends_is_refused(chunk: bytes) -> None:
    parser = SseParser(event_bytes_max=40)
    with pytest.raises(EventTooLarge):
        collections.deque((parser.feed(chunk) for _ in range(100)), maxlen=0)


def test_many_small_events_are_no_large_one() -> None:
    parser = SseParser(event_bytes_max=40)
    assert sum(len(parser.feed(b"data: 0123456789\n\n")) for _ in range(100)) == 100
