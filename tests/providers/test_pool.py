"""Connections to providers: which are used again, which are replaced, and what happens when none can be opened."""

import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream, TaskStatus
from loopback import END, Answer, Server, accepting, chunk, cutting, head, serving, whole
from wire_cases import a_provider, a_request, ask, code_of, recording

from turnkeeper.model.failure import ApiFailure, Failure
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.model.stream import Finish, StreamError, StreamEvent
from turnkeeper.providers.connection import keep_alive
from turnkeeper.providers.endpoint import Timeouts
from turnkeeper.providers.http import DirectClient
from turnkeeper.providers.pool import CONNECT_PAUSES_S, IDLE_S, ConnectionPool

SOON = 0.02
TEXT = recording("anthropic.text")
REQUEST = a_request("anthropic")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def a_client(**given: Any) -> AsyncIterator[DirectClient]:
    settings: dict[str, Any] = {"idle_max": 5, "open_max": 5, **given}
    async with DirectClient(ConnectionPool(**settings), {}) as client:
        yield client


async def finishes(client: DirectClient, server: Server, request: ModelRequest = REQUEST) -> None:
    assert (await ask(a_provider(client, server.url), request))[-1] == Finish()


def failure_of(events: list[StreamEvent]) -> Failure:
    last = events[-1]
    assert isinstance(last, StreamError)
    return last.failure


def in_turn(*answers: Answer) -> Answer:
    """Each request gets the next of these answers."""
    left = list(answers)

    async def answer(stream: SocketStream) -> None:
        await left.pop(0)(stream)

    return answer


@pytest.mark.parametrize(
    ("passed", "connections"), [(IDLE_S - 1, 1), (IDLE_S, 2), (3600, 2), (-1, 2)], ids=["soon", "late", "slept", "back"]
)
async def test_a_connection_is_used_again_only_within_its_idle_time(passed: float, connections: int) -> None:
    clock = Clock()
    async with a_client(clock=clock) as client, serving(whole(TEXT)) as server:
        await finishes(client, server)
        clock.now += passed
        await finishes(client, server)
    assert (server.connections, len(server.requests)) == (connections, 2)


async def test_an_idle_connection_is_closed_after_its_time() -> None:
    async with a_client(idle_s=SOON) as client, serving(whole(TEXT)) as server:
        await finishes(client, server)
        with anyio.fail_after(60):
            await server.until_closed()


async def test_closed_connections_leave_room_for_idle_ones() -> None:
    async def once(stream: SocketStream) -> None:
        await whole(TEXT)(stream)
        await stream.aclose()
        raise anyio.EndOfStream

    async with a_client(idle_max=1) as client, serving(once) as first, serving(whole(TEXT)) as second:
        await finishes(client, first)
        with anyio.fail_after(60):
            await first.until_closed()
        await anyio.wait_all_tasks_blocked()
        await finishes(client, second)
        await finishes(client, second)
    assert second.connections == 1


async def test_a_connection_on_which_something_came_unasked_is_not_used_again() -> None:
    async def twice(stream: SocketStream) -> None:
        await whole(TEXT)(stream)
        await anyio.wait_all_tasks_blocked()
        await stream.send(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")

    async with a_client() as client, serving(in_turn(twice, whole(TEXT))) as server:
        await finishes(client, server)
        with anyio.fail_after(60):
            await server.until_closed()
        await finishes(client, server)
    assert server.connections == 2


async def test_a_reused_connection_that_proves_to_be_closed_is_replaced_unseen() -> None:
    async with a_client() as client, serving(in_turn(whole(TEXT), cutting(), whole(TEXT))) as server:
        await finishes(client, server)
        await finishes(client, server)
    assert server.connections == 2
    assert [one.body for one in server.requests] == [server.requests[0].body] * 3


@pytest.mark.parametrize(
    ("answers", "settings"),
    [
        ((cutting(),), {}),
        ((whole(TEXT), cutting(b"H")), {}),
        ((whole(TEXT), cutting(head())), {}),
        ((whole(TEXT), cutting()), {"stale_s": 0}),
    ],
    ids=["it was new", "an answer had begun", "there was a head", "it was closed late"],
)
async def test_a_request_that_may_have_been_answered_is_not_sent_again_unseen(
    answers: tuple[Answer, ...], settings: dict[str, object]
) -> None:
    async with a_client(**settings) as client, serving(in_turn(*answers)) as server:
        for _ in answers[1:]:
            await finishes(client, server)
        events = await ask(a_provider(client, server.url), REQUEST)
    assert code_of(failure_of(events)) == ("ECONNRESET", True)
    assert len(server.requests) == len(answers)


def a_long_request(length: int) -> ModelRequest:
    return a_request("anthropic", messages=(UserTurn(content=(Text(text="x" * length),)),))


async def test_a_provider_that_stops_reading_is_left_after_the_time_allowed() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        async with a_client() as client:
            provider = a_provider(client, url, timeouts=Timeouts(write_s=SOON))
            failure = failure_of(await ask(provider, a_long_request(32 * 1024 * 1024)))
    assert code_of(failure) == ("write_timeout", True)


async def test_a_long_request_arrives_whole_at_a_provider_that_reads_slowly() -> None:
    async with a_client() as client, serving(whole(TEXT)) as server:
        await finishes(client, server, a_long_request(8 * 1024 * 1024))
        await finishes(client, server)
    assert len(server.requests[0].body) > 8 * 1024 * 1024
    assert server.connections == 1


async def test_a_connection_whose_request_was_refused_half_read_is_not_used_again() -> None:
    async def refuse(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(head("413 Too Large", "application/json") + chunk(b"{}") + END)
        await anyio.sleep_forever()

    async with a_client() as client, accepting(refuse) as url:
        for _ in range(2):
            events = await ask(a_provider(client, url), a_long_request(32 * 1024 * 1024))
            assert type(failure_of(events)).__name__ == "OverflowFailure"


def a_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def unreachable(url: str, **changes: Any) -> tuple[Failure, list[float]]:
    """The failure of a request to where nothing listens, and the waits before connecting was tried again."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async with a_client(sleep=sleep) as client:
        return failure_of(await ask(a_provider(client, url, **changes), REQUEST)), waits


async def test_where_nothing_listens_there_is_one_failure_within_seconds_that_says_what_to_check() -> None:
    url = f"http://127.0.0.1:{a_free_port()}/v1"
    failure, waits = await unreachable(url)
    assert code_of(failure) == ("ECONNREFUSED", False)
    assert waits == list(CONNECT_PAUSES_S)
    assert sum(waits) <= 3
    assert isinstance(failure, ApiFailure)
    assert url in failure.data.message
    assert "Check that the server runs" in failure.data.message


async def test_a_password_in_an_address_is_not_in_what_is_recorded() -> None:
    failure, _ = await unreachable(f"http://me:word@127.0.0.1:{a_free_port()}/v1")
    assert isinstance(failure, ApiFailure)
    assert "word" not in str(failure)
    assert (failure.data.metadata or {})["url"].startswith("http://127.0.0.1:")


async def test_a_server_that_is_up_a_moment_later_is_found() -> None:
    port = a_free_port()
    is_up = False

    async def serve(*, task_status: TaskStatus[None]) -> None:
        async with serving(whole(TEXT), port=port):
            task_status.started()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as group:

        async def sleep(seconds: float) -> None:
            nonlocal is_up
            if not is_up:
                await group.start(serve)
                is_up = True

        async with a_client(sleep=sleep) as client:
            events = await ask(a_provider(client, f"http://127.0.0.1:{port}/v1"), REQUEST)
        assert (events[-1], is_up) == (Finish(), True)
        group.cancel_scope.cancel()


def test_the_system_is_asked_to_notice_lost_connections() -> None:
    with socket.socket() as one:
        keep_alive(one)
        assert one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if sys.platform == "linux":
            idle, interval, count = (
                one.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert idle + interval * count <= 60
            assert one.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000


@pytest.mark.parametrize(
    ("variables", "client"),
    [({"no_proxy": "localhost"}, "DirectClient"), ({"http_proxy": "http://127.0.0.1:9"}, "AsyncClient")],
    ids=["only exceptions", "a proxy"],
)
def test_a_proxy_of_the_environment_is_used(variables: dict[str, str], client: str) -> None:
    code = "from turnkeeper.providers.http import new_client; print(type(new_client(user_agent='x')).__name__)"
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == client
