"""Head and body of an answer are sent together, and nothing waits for what does not come."""

import asyncio
from typing import cast

import pytest

from turnkeeper.server.joined import BODY_BYTES_MAX, Joining

HEAD = b"HTTP/1.1 200 OK\r\nvary: Origin\r\ncontent-length: 2\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Wire:
    """A transport that remembers what it was given, call by call."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed_after: int | None = None

    def write(self, data: bytes) -> None:
        self.sent.append(bytes(data))

    def close(self) -> None:
        self.closed_after = len(self.sent)

    def is_closing(self) -> bool:
        return self.closed_after is not None


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def joining(wire: Wire) -> Joining:
    return Joining(cast(asyncio.Transport, wire))


def test_an_answer_is_sent_at_once(wire: Wire, joining: Joining) -> None:
    for _ in range(2):
        joining.write(HEAD)
        assert HEAD not in wire.sent
        joining.write(b"{}")
    assert wire.sent == [HEAD + b"{}", HEAD + b"{}"]


def test_a_stream_begins_at_once(wire: Wire, joining: Joining) -> None:
    joining.write(STREAM)
    joining.write(b"2\r\n{}\r\n")
    assert wire.sent == [STREAM, b"2\r\n{}\r\n"]


def test_a_long_body_is_not_copied(wire: Wire, joining: Joining) -> None:
    body = bytes(BODY_BYTES_MAX + 1)
    joining.write(HEAD)
    joining.write(body)
    assert wire.sent == [HEAD, body]


def test_a_head_without_a_body_is_sent_when_the_answer_is_over(wire: Wire, joining: Joining) -> None:
    joining.write(HEAD)
    joining.flush()
    joining.flush()
    assert wire.sent == [HEAD]


def test_a_body_that_reads_like_a_head_is_a_body(wire: Wire, joining: Joining) -> None:
    joining.write(HEAD)
    joining.write(HEAD)
    assert wire.sent == [HEAD + HEAD]


def test_what_was_kept_is_sent_before_the_end(wire: Wire, joining: Joining) -> None:
    joining.write(HEAD)
    joining.close()
    assert wire.sent == [HEAD]
    assert wire.closed_after == 1
    assert joining.is_closing()
