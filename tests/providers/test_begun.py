"""Long requests that are sent but for their end, before they may be asked: what is seen of them, and when."""

from collections.abc import AsyncIterator
from contextlib import aclosing

import anyio
import anyio.lowlevel
import httpx2
import pytest
from anyio.abc import SocketStream
from loopback import END, Answer, Server, chunk, cutting, head, serving, stalling, whole
from test_http_provider import a_provider, a_request, ask
from wire_cases import an_endpoint, recording

from turnkeeper.model.failure import OverflowFailure
from turnkeeper.model.request import AssistantTurn, ModelRequest, Text, UserTurn
from turnkeeper.model.stream import Finish, StreamError, StreamEvent
from turnkeeper.providers import PROVIDERS, codec_of, connection
from turnkeeper.providers.codec import encode_body
from turnkeeper.providers.connection import TOGETHER_MAX, Connections
from turnkeeper.providers.http import DirectClient, HttpBegun, HttpProvider
from turnkeeper.providers.provider import Begun

PIECES = [b"x" * TOGETHER_MAX, b"y" * TOGETHER_MAX, b"z"]
LINES = 40
"""Of each side, a few thousand characters each: together far more than is sent at once."""
ONE_AT_A_TIME = 1
"""A connection that is not given back would stop the next request."""


@pytest.fixture
async def client() -> AsyncIterator[DirectClient]:
    connections = Connections(idle_max=ONE_AT_A_TIME, open_max=ONE_AT_A_TIME)
    async with DirectClient(connections, {}) as shared:
        yield shared


def a_long_request(protocol: str = "anthropic") -> ModelRequest:
    said = "All work and no play. " * 100
    asked, answered = UserTurn(content=(Text(text=said),)), AssistantTurn(content=(Text(text=said),))
    return a_request(protocol, messages=(*(asked, answered) * LINES, asked))


def as_sent(request: ModelRequest, protocol: str = "anthropic") -> bytes:
    return encode_body(codec_of(protocol).body(request, an_endpoint(protocol, api_key="sk-secret-7")))


async def begun(provider: HttpProvider, request: ModelRequest) -> HttpBegun:
    """A request that has been begun on a connection that an earlier answer left."""
    await ask(provider, a_request("anthropic"))
    beginning = await provider.begin(request)
    assert beginning is not None
    assert beginning.is_on_its_way
    return beginning


async def finished(beginning: Begun) -> list[StreamEvent]:
    return [event async for portion in beginning.stream() for event in portion]


async def cut_off(client: DirectClient, server: Server) -> connection.Begun:
    """A request that has been begun on a connection that the provider closed since."""
    await ask(a_provider(client, server.url), a_request("anthropic"))
    body = connection.Pieces(PIECES)
    asking = httpx2.Request("POST", server.url, headers={"content-length": str(body.size)}, stream=body)
    beginning = await client.connections.begin(asking)
    assert beginning is not None
    with anyio.fail_after(60):
        while beginning.connection.is_open:
            await anyio.lowlevel.checkpoint()
    return beginning


@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_it_is_answered_when_it_is_finished(client: DirectClient, protocol: str) -> None:
    request = a_long_request(protocol)
    async with serving(whole(recording(f"{protocol}.text"))) as server:
        provider = a_provider(client, server.url, protocol)
        await ask(provider, a_request(protocol))
        beginning = await provider.begin(request)
        assert beginning is not None
        events = await finished(beginning)
        beginning.drop()  # It was sent: nothing happens.
        assert events[-1] == Finish()
        assert events == await ask(provider, request)
    assert [one.body for one in server.requests[1:]] == [as_sent(request, protocol)] * 2
    assert server.connections == 1


async def test_all_but_its_end_arrives_before(client: DirectClient) -> None:
    request, most, all_of_it = a_long_request(), anyio.Event(), anyio.Event()
    text, size = recording("anthropic.text"), len(as_sent(a_long_request()))
    assert size > 2 * TOGETHER_MAX

    async def answer(stream: SocketStream) -> None:
        """Answers, and then reads the next request bit by bit."""
        await whole(text)(stream)
        came = b""
        while not (came_of_body := came.partition(b"\r\n\r\n")[2]).endswith(as_sent(request)[-100:]):
            if len(came_of_body) >= size - TOGETHER_MAX:
                most.set()
            came += await stream.receive()
        assert came_of_body == as_sent(request)
        all_of_it.set()
        await whole(text)(stream)

    async with serving(answer) as server:
        beginning = await begun(a_provider(client, server.url), request)
        await most.wait()
        await anyio.wait_all_tasks_blocked()
        assert not all_of_it.is_set()
        assert (await finished(beginning))[-1] == Finish()
        assert all_of_it.is_set()


async def test_one_that_is_dropped_is_never_whole(client: DirectClient) -> None:
    request = a_long_request()
    async with serving(whole(recording("anthropic.text"))) as server:
        provider = a_provider(client, server.url)
        (await begun(provider, request)).drop()
        await server.closed.wait()
        assert len(server.requests) == 1
        assert (await ask(provider, request))[-1] == Finish()
    assert (server.connections, [one.body for one in server.requests[1:]]) == (2, [as_sent(request)])


async def test_one_whose_answer_nobody_began_to_read_is_never_whole(client: DirectClient) -> None:
    async with serving(whole(recording("anthropic.text"))) as server:
        provider = a_provider(client, server.url)
        beginning = await begun(provider, a_long_request())
        await beginning.stream().aclose()
        beginning.drop()
        await server.closed.wait()
        assert len(server.requests) == 1
        assert (await ask(provider, a_request("anthropic")))[-1] == Finish()


async def test_a_connection_that_was_lost_before_the_end_costs_nothing(client: DirectClient) -> None:
    text = recording("anthropic.text")

    async def once(stream: SocketStream) -> None:
        """Answers, and closes the connection in the middle of the next request."""
        await whole(text)(stream)
        await stream.receive()
        await cutting()(stream)

    answers: list[Answer] = [once, whole(text)]

    async def answer(stream: SocketStream) -> None:
        await answers.pop(0)(stream)

    async with serving(answer) as server:
        response = await client.connections.finish(await cut_off(client, server))
        assert await response.aread() == text
    assert (server.connections, [one.body for one in server.requests[1:]]) == (2, [b"".join(PIECES)])


async def test_a_provider_may_refuse_before_the_end(client: DirectClient) -> None:
    text = recording("anthropic.text")

    async def answer(stream: SocketStream) -> None:
        await whole(text)(stream)
        await stream.receive()
        await stream.send(head("413 Payload Too Large", "application/json") + chunk(b"{}") + END)
        while True:
            await stream.receive()

    async with serving(answer) as server:
        (failure,) = await finished(await begun(a_provider(client, server.url), a_long_request()))
    assert isinstance(failure, StreamError)
    assert isinstance(failure.failure, OverflowFailure)


async def test_a_refusal_before_the_end_counts_though_the_connection_is_closed(client: DirectClient) -> None:
    async def answer(stream: SocketStream) -> None:
        await whole(recording("anthropic.text"))(stream)
        await stream.receive()
        await cutting(head("413 Payload Too Large", "application/json") + chunk(b"{}") + END)(stream)

    async with serving(answer) as server:
        response = await client.connections.finish(await cut_off(client, server))
        assert (response.status_code, await response.aread()) == (413, b"{}")
    assert (server.connections, len(server.requests)) == (1, 1)


async def test_what_would_gain_nothing_is_only_made_ready(client: DirectClient) -> None:
    long, short = a_long_request(), a_request("anthropic")
    alone = a_request("anthropic", messages=(UserTurn(content=(Text(text="long " * TOGETHER_MAX),)),))
    async with serving(whole(recording("anthropic.text"))) as server:
        provider = a_provider(client, server.url)

        async def ready(request: ModelRequest) -> HttpBegun:
            beginning = await provider.begin(request)
            assert beginning is not None
            assert not beginning.is_on_its_way
            return beginning

        (await ready(long)).drop()  # Nobody is connected.
        assert server.connections == 0
        await ask(provider, short)
        for request in (short, alone):  # The second is all end.
            assert (await finished(await ready(request)))[-1] == Finish()
        assert [one.body for one in server.requests] == [as_sent(short), as_sent(short), as_sent(alone)]
        beginning = await begun(provider, long)
        (await ready(long)).drop()  # There is no other connection.
        assert (await finished(beginning))[-1] == Finish()


async def test_what_cannot_be_sent_is_not_begun(client: DirectClient) -> None:
    async with serving(whole(recording("anthropic.text"))) as server:
        await ask(a_provider(client, server.url), a_request("anthropic"))
        keyless = a_provider(client, server.url, api_key=None, key_required=True)
        assert await keyless.begin(a_long_request()) is None
        assert isinstance((await ask(keyless, a_long_request()))[-1], StreamError)
        garbled = a_provider(client, server.url, headers={"x-bad": "a\r\nb"})
        with pytest.raises(httpx2.LocalProtocolError):
            await garbled.begin(a_long_request())
        assert isinstance((await ask(garbled, a_long_request()))[-1], StreamError)


async def test_nobody_waits_for_room_to_begin(client: DirectClient) -> None:
    async with serving(whole(recording("anthropic.text"))) as server, serving(stalling(head())) as other:
        provider = a_provider(client, server.url)
        await ask(provider, a_request("anthropic"))
        async with aclosing(a_provider(client, other.url).stream(a_request("anthropic"))) as stalled:
            await anext(stalled)  # All the room there is.
            with anyio.fail_after(5):
                beginning = await provider.begin(a_long_request())
            assert beginning is not None
            assert not beginning.is_on_its_way
        assert (await finished(beginning))[-1] == Finish()


async def test_where_connections_are_not_ours_it_is_only_made_ready() -> None:
    async with httpx2.AsyncClient() as client, serving(whole(recording("anthropic.text"))) as server:
        provider = a_provider(client, server.url)
        await ask(provider, a_request("anthropic"))
        beginning = await provider.begin(a_long_request())
        assert beginning is not None
        assert not beginning.is_on_its_way
        assert (await finished(beginning))[-1] == Finish()
        assert server.requests[-1].body == as_sent(a_long_request())
