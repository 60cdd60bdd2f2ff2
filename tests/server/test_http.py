"""HTTP/1.1 as bytes on a connection: order, framing, limits, and what is not a request."""

import socket

import anyio
import anyio.abc
import pytest
from caller import CHUNK, FLOOD, Called, called

from turnkeeper.server import serving
from turnkeeper.server.connection import ConnectionLimits

HOST = b"host: here"
HEAD_BYTES_MAX = ConnectionLimits().head_bytes_max


async def test_requests_of_one_connection_are_answered_one_after_the_other() -> None:
    async with called() as server:
        for number in range(3):
            await server.first.says(b"GET /%d?a=b HTTP/1.1" % number, HOST)
            assert await server.first.hears() == b"GET /%d a=b " % number
    assert [one["type"] for one in server.app.heard] == ["http.disconnect"] * 3


async def test_requests_that_do_not_wait_are_answered_in_their_order() -> None:
    async with called() as server:
        await server.first.stream.send(b"".join(b"GET /%d HTTP/1.1\r\nhost: here\r\n\r\n" % one for one in range(5)))
        assert [await server.first.hears() for _ in range(5)] == [b"GET /%d  " % one for one in range(5)]


async def test_no_further_request_is_read_while_one_waits_for_its_turn() -> None:
    async with called() as server, anyio.create_task_group() as group:
        is_taken = anyio.Event()

        async def send() -> None:
            # More than all buffers on the way hold.
            await server.first.stream.send(b"GET /x HTTP/1.1\r\nhost: here\r\n\r\n" * 1_000_000)
            is_taken.set()

        group.start_soon(send)
        for _ in range(300):
            assert await server.first.hears() == b"GET /x  "
        assert not is_taken.is_set()
        group.cancel_scope.cancel()


@pytest.mark.parametrize("size", [0, 1, 70_000, 1_000_000])
async def test_a_body_is_read_whole_however_it_comes(size: int) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    async with called() as server:
        caller = server.first
        await caller.says(b"POST /up HTTP/1.1", HOST, b"content-length: %d" % size, body=body)
        assert await caller.hears() == b"POST /up  " + body
        await caller.says(b"POST /up HTTP/1.1", HOST, b"transfer-encoding: chunked")
        for start in range(0, size, 5000):
            piece = body[start : start + 5000]
            await caller.stream.send(b"%x\r\n%b\r\n" % (len(piece), piece))
        await caller.stream.send(b"0\r\n\r\n")
        assert await caller.hears() == b"POST /up  " + body


@pytest.mark.parametrize("expectation", [b"expect: 100-continue", b"Expect: 100-Continue", b"EXPECT: 100-CONTINUE"])
async def test_a_client_that_expects_100_gets_it_when_the_body_is_read_and_keeps_its_connection(
    expectation: bytes,
) -> None:
    async with called() as server:
        for _ in range(2):
            await server.first.says(b"POST /up HTTP/1.1", HOST, expectation, b"content-length: 2")
            assert (await server.first.head())[0] == b"HTTP/1.1 100 Continue"
            await server.first.stream.send(b"ok")
            assert await server.first.hears() == b"POST /up  ok"


async def test_a_client_that_expects_100_and_is_answered_early_is_disconnected() -> None:
    async with called() as server:
        await server.first.says(b"POST /early HTTP/1.1", HOST, b"Expect: 100-continue", b"content-length: 2")
        first, headers = await server.first.head()
        assert (first, headers[b"connection"]) == (b"HTTP/1.1 200 OK", b"close")
        assert await server.first.rest() == b"early"


async def test_a_path_is_decoded_and_the_scope_has_the_headers_in_order() -> None:
    async with called() as server:
        await server.first.says(b"GET /a%20b/%C3%A9?q=%20 HTTP/1.1", b"Host: Here", b"X-Thing: One")
        assert await server.first.hears() == "GET /a b/é q=%20 ".encode()
        [scope] = server.app.scopes
        assert scope["headers"] == [(b"host", b"Here"), (b"x-thing", b"One")]
        assert scope["client"][0] == scope["server"][0] == "127.0.0.1"


async def test_trailers_are_no_headers() -> None:
    async with called() as server:
        lines = (b"POST /up HTTP/1.1", HOST, b"transfer-encoding: chunked", b"authorization: mine")
        trailers = b"host: evil\r\nauthorization: forged\r\n"
        await server.first.says(*lines, body=b"2\r\nok\r\n0\r\n" + trailers + b"\r\n")
        assert await server.first.hears() == b"POST /up  ok"
        await server.first.says(b"GET /next HTTP/1.1", HOST)
        assert await server.first.hears() == b"GET /next  "
        assert [dict(scope["headers"])[b"host"] for scope in server.app.scopes] == [b"here", b"here"]
        assert dict(server.app.scopes[0]["headers"])[b"authorization"] == b"mine"


async def test_answers_without_a_body_have_none() -> None:
    async with called() as server:
        caller = server.first
        await caller.says(b"HEAD /x HTTP/1.1", HOST)
        first, headers = await caller.head()
        assert (first, headers[b"content-length"]) == (b"HTTP/1.1 200 OK", b"9")
        await caller.says(b"GET /nothing HTTP/1.1", HOST)
        assert (await caller.head())[0] == b"HTTP/1.1 204 No Content"
        await caller.says(b"GET /x HTTP/1.1", HOST)
        assert await caller.hears() == b"GET /x  "


async def test_answers_have_the_date_and_do_not_name_the_server() -> None:
    async with called() as server:
        await server.first.says(b"GET /x HTTP/1.1", HOST)
        _, headers = await server.first.head()
        assert headers[b"date"].endswith(b" GMT")
        assert b"server" not in headers


async def test_a_stream_begins_at_once_and_comes_in_chunks() -> None:
    async with called() as server:
        await server.first.says(b"GET /stream HTTP/1.1", HOST)
        _, headers = await server.first.head()
        assert headers[b"transfer-encoding"] == b"chunked"
        server.app.gate.set()
        assert await server.first.exactly(21) == b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n"


async def test_an_http_1_0_client_gets_a_stream_that_ends_with_its_connection() -> None:
    async with called() as server:
        server.app.gate.set()
        await server.first.says(b"GET /stream HTTP/1.0")
        _, headers = await server.first.head()
        assert headers[b"connection"] == b"close"
        assert b"transfer-encoding" not in headers
        assert await server.first.rest() == b"onetwo"


async def test_an_http_1_0_client_gets_an_answer_with_its_length() -> None:
    async with called() as server:
        await server.first.says(b"GET /x HTTP/1.0")
        assert await server.first.hears() == b"GET /x  "
        assert await server.first.rest() == b""


@pytest.mark.parametrize("asked", [b"connection: close", b"connection: upgrade\r\nupgrade: websocket"])
async def test_a_connection_that_serves_no_further_request_is_closed(asked: bytes) -> None:
    async with called() as server:
        await server.first.says(b"GET /x HTTP/1.1", HOST, asked)
        first, headers = await server.first.head()
        assert (first, headers[b"connection"]) == (b"HTTP/1.1 200 OK", b"close")
        assert await server.first.rest() == b"GET /x  "


MALFORMED = {
    "nonsense": b"nonsense\r\n\r\n",
    "a path that is not ASCII": b"GET /\xff HTTP/1.1\r\nhost: here\r\n\r\n",
    "a tunnel": b"CONNECT here:80 HTTP/1.1\r\nhost: here\r\n\r\n",
    "a line without a colon": b"GET /x HTTP/1.1\r\nhost here\r\n\r\n",
    "a space before the colon": b"GET /x HTTP/1.1\r\nhost : here\r\n\r\n",
    "a folded line": b"GET /x HTTP/1.1\r\nhost: here\r\n there\r\n\r\n",
    "lines that end with LF": b"GET /x HTTP/1.1\nhost: here\n\n",
    "a control character": b"GET /x HTTP/1.1\r\nhost: here\r\na: b\x01\r\n\r\n",
    "HTTP/0.9": b"GET /x\r\n\r\n",
    "HTTP/2 without negotiation": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "another version": b"GET /x HTTP/2.0\r\nhost: here\r\n\r\n",
    "no host": b"GET /x HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /x HTTP/1.1\r\nhost: here\r\nHost: here\r\n\r\n",
    "two hosts in HTTP/1.0": b"GET /x HTTP/1.0\r\nhost: here\r\nHost: there\r\n\r\n",
    "two lengths": b"POST /x HTTP/1.1\r\nhost: here\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    "a length with a sign": b"POST /x HTTP/1.1\r\nhost: here\r\ncontent-length: +1\r\n\r\na",
    "a length and chunks": (
        b"POST /x HTTP/1.1\r\nhost: here\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "chunks and a length": (
        b"POST /x HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\ncontent-length: 1\r\n\r\n0\r\n\r\n"
    ),
    "no chunks": b"POST /x HTTP/1.1\r\nhost: here\r\ntransfer-encoding: gzip\r\n\r\n0\r\n\r\n",
    "chunks that are not last": b"POST /x HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "compressed chunks": b"POST /x HTTP/1.1\r\nhost: here\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunks twice": (
        b"POST /x HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"
    ),
    "chunks in HTTP/1.0": b"POST /x HTTP/1.0\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("sent", MALFORMED.values(), ids=MALFORMED.keys())
async def test_what_is_not_a_request_is_refused_and_reaches_nobody(sent: bytes) -> None:
    async with called() as server:
        await server.first.stream.send(sent)
        assert (await server.first.refused())[0] == b"HTTP/1.1 400 Bad Request"
        assert server.app.scopes == []


TOO_LONG = {
    "an address": b"GET /" + b"x" * HEAD_BYTES_MAX + b" HTTP/1.1\r\nhost: here\r\n\r\n",
    "a header": b"GET /x HTTP/1.1\r\nhost: here\r\na: " + b"b" * HEAD_BYTES_MAX + b"\r\n\r\n",
    "many headers": b"GET /x HTTP/1.1\r\nhost: here\r\n" + b"a: b\r\n" * HEAD_BYTES_MAX + b"\r\n",
}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"CONNECT host:1", "CONNECT is not served here: this is no proxy"),
        (b"GET http://here", "'http://here' is no address of a request; it begins with '/'"),
        (b"GET http://here?x=1", "'http://here?x=1' is no address of a request; it begins with '/'"),
    ],
)
async def test_an_address_that_names_no_path_is_refused_in_words(line: bytes, said: str) -> None:
    async with called() as server:
        await server.first.stream.send(b"%b HTTP/1.1\r\nhost: here\r\n\r\n" % line)
        assert await server.first.refused() == (b"HTTP/1.1 400 Bad Request", said)
        assert server.app.scopes == []


@pytest.mark.parametrize("sent", TOO_LONG.values(), ids=TOO_LONG.keys())
async def test_a_head_that_is_too_long_is_refused(sent: bytes) -> None:
    async with called() as server:
        await server.first.stream.send(sent)
        assert (await server.first.refused())[0] == b"HTTP/1.1 431 Request Header Fields Too Large"
        assert server.app.scopes == []


ENDLESS = {
    "an address": b"GET /",
    "a header's name": b"GET /x HTTP/1.1\r\nhost: here\r\n",
    "a header's value": b"GET /x HTTP/1.1\r\nhost: here\r\na: ",
    "the second head": b"GET /x HTTP/1.1\r\nhost: here\r\n\r\nGET /y HTTP/1.1\r\na: ",
    "a chunk's extension": b"POST /up HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n1;a=",
    "a trailer": b"POST /up HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\na: ",
}


@pytest.mark.parametrize("begin", ENDLESS.values(), ids=ENDLESS.keys())
async def test_a_line_without_end_is_refused_before_it_takes_memory(begin: bytes) -> None:
    async with called() as server:
        await server.first.stream.send(begin)
        assert await server.first.drips(b"x" * 4096, bytes_max=1_000_000) >= HEAD_BYTES_MAX


@pytest.mark.parametrize("sent", [b"", b"GET /x HTTP/1.1\r\nhost: he", b"GET /x HTTP/1.1\r\nhost: here\r\n\r\nGET /y"])
async def test_a_head_that_is_not_complete_in_time_is_not_waited_for(sent: bytes) -> None:
    async with called(idle_s=0.5) as server:
        await server.first.stream.send(sent)
        await server.first.rest()


async def test_a_head_that_comes_byte_by_byte_has_no_more_time_than_another() -> None:
    async with called(idle_s=0.5) as server:
        await server.first.stream.send(b"GET /x HTTP/1.1\r\nhost: here\r\na: ")
        await server.first.drips(b"b")
        assert server.app.scopes == []


async def test_a_connection_that_waits_for_its_answer_is_not_idle() -> None:
    async with called(idle_s=0.5) as server:
        await server.first.says(b"GET /waits HTTP/1.1", HOST)
        await server.app.reached.wait()
        other = await server.another()
        assert await other.rest() == b""
        server.app.gate.set()
        assert await server.first.hears() == b"waited"
        assert await server.first.rest() == b""


async def test_a_body_that_nobody_reads_has_the_time_of_an_idle_connection() -> None:
    async with called(idle_s=0.5) as server:
        await server.first.says(b"POST /early HTTP/1.1", HOST, b"content-length: 1000000")
        assert await server.first.hears() == b"early"
        await server.first.drips(b"b")


async def test_a_connection_too_many_is_refused_and_the_others_are_served() -> None:
    async with called(connections_max=2) as server:
        second = await server.another()
        await second.says(b"GET /x HTTP/1.1", HOST)
        assert await second.hears() == b"GET /x  "
        third = await server.another()
        assert (await third.refused())[0] == b"HTTP/1.1 503 Service Unavailable"
        await second.stream.aclose()
        await server.first.says(b"GET /x HTTP/1.1", HOST)
        assert await server.first.hears() == b"GET /x  "
        fourth = await server.another()
        await fourth.says(b"GET /x HTTP/1.1", HOST)
        assert await fourth.hears() == b"GET /x  "


BEHIND = {
    "nonsense": b"nonsense\r\n\r\n",
    "a broken body": b"POST /up HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n",
    "a request and a broken body": (
        b"GET /x HTTP/1.1\r\nhost: here\r\n\r\n"
        b"POST /up HTTP/1.1\r\nhost: here\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n"
    ),
}


@pytest.mark.parametrize("behind", BEHIND.values(), ids=BEHIND.keys())
async def test_what_is_malformed_behind_a_request_leaves_its_answer_whole(behind: bytes) -> None:
    async with called() as server:
        await server.first.stream.send(b"GET /waits HTTP/1.1\r\nhost: here\r\n\r\n" + behind)
        await server.app.reached.wait()
        server.app.gate.set()
        assert await server.first.hears() == b"waited"
        if behind.startswith(b"GET"):
            assert await server.first.hears() == b"GET /x  "
        assert await server.first.rest() == b""
        assert "/up" not in [scope["path"] for scope in server.app.scopes]


async def test_a_broken_body_is_refused_and_its_request_is_told() -> None:
    async with called() as server:
        await server.first.says(b"POST /up HTTP/1.1", HOST, b"transfer-encoding: chunked", body=b"2\r\nok\r\nno")
        assert (await server.first.refused())[0] == b"HTTP/1.1 400 Bad Request"
        await server.app.disconnected.wait()


async def test_a_bug_is_answered_and_half_an_answer_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async with called() as server:
        await server.first.says(b"GET /breaks HTTP/1.1", HOST)
        assert (await server.first.rest()).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        second = await server.another()
        await second.says(b"GET /half HTTP/1.1", HOST)
        assert (await second.rest()).endswith(b"\r\n\r\nhalf")
    assert "as it was asked to" in caplog.text


@pytest.mark.parametrize("path", [b"/split-value", b"/split-name"])
async def test_a_header_with_a_line_break_is_not_sent(path: bytes) -> None:
    async with called() as server:
        await server.first.says(b"GET %b HTTP/1.1" % path, HOST)
        assert await server.first.rest() == b""


async def test_a_long_body_comes_whole() -> None:
    async with called() as server:
        await server.first.says(b"GET /large HTTP/1.1", HOST)
        assert await server.first.hears() == CHUNK * FLOOD


async def test_a_client_that_does_not_read_is_waited_for() -> None:
    async with called() as server:
        await server.first.says(b"GET /flood HTTP/1.1", HOST)
        await server.first.head()
        await anyio.wait_all_tasks_blocked()
        assert 0 < server.app.sent < FLOOD
        assert await server.first.exactly(FLOOD * len(CHUNK)) == CHUNK * FLOOD
        assert server.app.sent == FLOOD


async def test_a_server_that_closes_answers_requests_and_accepts_no_connection() -> None:
    async with called() as server, anyio.create_task_group() as group:
        await server.first.says(b"GET /waits HTTP/1.1", HOST)
        await server.app.reached.wait()
        group.start_soon(server.server.close, 60)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(OSError):
            await server.another()
        server.app.gate.set()
        assert await server.first.hears() == b"waited"
        assert await server.first.rest() == b""


async def hanging(server: Called) -> None:
    await server.first.says(b"GET /hangs HTTP/1.1", HOST)
    await server.app.reached.wait()


async def streaming(server: Called) -> None:
    await server.first.says(b"GET /stream HTTP/1.1", HOST)
    await server.app.reached.wait()


async def unread(server: Called) -> None:
    await server.first.says(b"GET /flood HTTP/1.1", HOST)
    await server.first.head()


async def half_open(server: Called) -> None:
    await server.first.says(b"GET /flood HTTP/1.1", HOST)
    await server.first.stream.send_eof()
    await server.first.head()


async def half_sent(server: Called) -> None:
    await server.first.says(b"POST /up HTTP/1.1", HOST, b"content-length: 5", body=b"hal")


@pytest.mark.parametrize("state", [hanging, streaming, unread, half_open, half_sent], ids=lambda one: one.__name__)
async def test_closing_does_not_wait_for_a_peer_or_a_request_longer_than_it_says(state: object) -> None:
    async with called() as server:
        assert callable(state)
        await state(server)
        await server.server.close(0)
        assert (server.server.server_state.connections, server.server.server_state.tasks) == (set(), set())
        assert server.app.ended == len(server.app.scopes)
        await server.first.rest()


def test_small_packets_are_sent_at_once() -> None:
    bound = serving.listen("127.0.0.1", 0)
    with bound:
        assert bound.proto == socket.IPPROTO_TCP


async def test_a_request_that_is_cancelled_because_the_server_stops_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with called() as server:
        await hanging(server)
        await server.server.close(0)
        assert server.app.ended == 1
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
