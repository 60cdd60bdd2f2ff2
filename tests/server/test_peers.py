"""Each way a peer can go away, or stay and not read, ends its own connection and nothing else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
from caller import CHUNK, FLOOD, Caller, call, called, descriptors, sent_until_blocked, until_open
from served import DEADLINE_S

from turnkeeper.model.notification import Notification
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server import serving
from turnkeeper.server.routes.event import hub
from turnkeeper.server.service import ServerOptions, Service
from turnkeeper.testing.harness import StageOptions as Staging
from turnkeeper.testing.harness import stage

HOST = b"host: 127.0.0.1"
MEGABYTE = "x" * 1024 * 1024


@dataclass
class Running:
    """The whole server on a socket."""

    service: Service
    port: int

    async def works(self) -> None:
        """Another client is answered."""
        caller = await call(self.port)
        await caller.says(b"GET /global/health HTTP/1.1", HOST, b"connection: close")
        assert (await caller.rest()).startswith(b"HTTP/1.1 ")
        await caller.stream.aclose()

    async def subscriber(self) -> Caller:
        caller = await call(self.port)
        await caller.says(b"GET /global/event HTTP/1.1", HOST)
        assert (await caller.head())[0] == b"HTTP/1.1 200 OK"
        return caller

    def publish(self, megabytes: int) -> None:
        """Let every subscriber be sent so much."""
        streams = self.service.part(hub)
        for number in range(megabytes):
            said = {"sessionID": "ses_1", "number": number, "text": MEGABYTE}
            note = Notification(type="session.idle", session_id="ses_1", directory="/", seq=1, properties=said)
            self.service.turnkeeper.bus.publish(note)
            streams.flush()

    @property
    def subscribers(self) -> int:
        return self.service.part(hub).subscribers


@asynccontextmanager
async def running(directory: Path, password: str | None = None) -> AsyncIterator[Running]:
    with anyio.fail_after(DEADLINE_S):
        async with stage("memory:", directory, Scripted(), Staging(ask=None)) as opened:
            service = Service(opened.tk, directory, ServerOptions(environ={}, password=password))
            bound = serving.listen("127.0.0.1", 0)
            async with serving.serving(service, bound):
                yield Running(service, bound.getsockname()[1])


async def _until(is_true: Callable[[], bool]) -> None:
    with anyio.fail_after(DEADLINE_S):
        while not is_true():
            await anyio.sleep(0)


async def closes(caller: Caller) -> None:
    await caller.stream.aclose()


async def resets(caller: Caller) -> None:
    await caller.resets()


async def half_closes(caller: Caller) -> None:
    await caller.stream.send_eof()


WAYS = pytest.mark.parametrize("leave", [closes, resets, half_closes], ids=lambda one: one.__name__)
Leave = Callable[[Caller], Awaitable[None]]


@WAYS
async def test_a_subscriber_that_goes_is_forgotten_and_its_descriptor_freed(tmp_path: Path, leave: Leave) -> None:
    async with running(tmp_path) as server:
        await server.works()
        before = descriptors()
        caller = await server.subscriber()
        assert server.subscribers == 1
        await leave(caller)
        await _until(lambda: server.subscribers == 0)
        await caller.stream.aclose()
        await until_open(before)
        await server.works()


@WAYS
async def test_a_subscriber_that_goes_with_megabytes_unread_is_forgotten_and_its_descriptor_freed(
    tmp_path: Path, leave: Leave
) -> None:
    async with running(tmp_path) as server:
        await server.works()
        before = descriptors()
        caller = await server.subscriber()
        server.publish(3)
        await anyio.wait_all_tasks_blocked()
        await leave(caller)
        await _until(lambda: server.subscribers == 0)
        await caller.stream.aclose()
        await until_open(before)
        await server.works()


async def test_a_subscriber_that_does_not_read_is_dropped_at_once_and_its_descriptor_freed(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        await server.works()
        before = descriptors()
        caller = await server.subscriber()
        attentive = await server.subscriber()
        async with anyio.create_task_group() as group:
            group.start_soon(attentive.rest)
            for _ in range(24):
                server.publish(1)
                await anyio.wait_all_tasks_blocked()
            await _until(lambda: server.subscribers == 1)
            await until_open(before + 3)  # The clients' two ends, and the server's end of the attentive one.
            await server.works()
            # Reading on, it finds what was on the way, and the end.
            assert b"0\r\n\r\n" not in (await caller.rest())[-5:]
            await attentive.stream.aclose()
            await caller.stream.aclose()
        await until_open(before)


async def test_a_burst_that_no_client_could_read_in_time_ends_streams_and_not_the_server(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        caller = await server.subscriber()
        server.publish(12)
        await _until(lambda: server.subscribers == 0)
        await caller.rest()
        await caller.stream.aclose()
        await server.works()


@WAYS
async def test_a_client_that_goes_during_a_long_answer_ends_only_its_connection(leave: Leave) -> None:
    async with called() as server:
        before = descriptors()
        caller = await server.another()
        await caller.says(b"GET /large HTTP/1.1", HOST)
        await caller.head()
        await leave(caller)
        await caller.stream.aclose()
        await until_open(before)
        await server.first.says(b"GET /x HTTP/1.1", HOST)
        assert await server.first.hears() == b"GET /x  "


@pytest.mark.parametrize("path", [b"/large", b"/flood", b"/waits"])
async def test_a_client_that_half_closes_gets_its_whole_answer(path: bytes) -> None:
    async with called() as server:
        await server.first.says(b"GET %b HTTP/1.1" % path, HOST)
        await server.first.stream.send_eof()
        server.app.gate.set()
        _, headers = await server.first.head()
        assert len(await server.first.rest()) == int(headers[b"content-length"])


async def test_a_client_that_half_closes_and_does_not_read_is_dropped() -> None:
    async with called(unread_s=0.2) as server:
        before = descriptors()
        caller = await server.another()
        await caller.says(b"GET /flood HTTP/1.1", HOST)
        await caller.stream.send_eof()
        await caller.head()
        await until_open(before + 1)  # Its own end.
        assert server.app.sent < FLOOD


async def test_a_client_that_reads_slowly_is_served_and_one_that_stops_reading_is_dropped() -> None:
    async with called(unread_s=0.5) as server:
        stalled = await server.another()
        for caller in (stalled, server.first):
            await caller.says(b"GET /large HTTP/1.1", HOST)
            await caller.head()
        left, read_at = FLOOD * len(CHUNK), anyio.current_time()
        with anyio.fail_after(DEADLINE_S):
            while len(server.server.server_state.connections) > 1:
                await anyio.sleep(0)
                if anyio.current_time() > read_at:
                    left -= len(await server.first.exactly(len(CHUNK) * 8))
                    read_at += 0.05
        assert len(await server.first.exactly(left)) == left


@WAYS
async def test_a_client_that_goes_in_the_middle_of_its_body_is_not_answered(tmp_path: Path, leave: Leave) -> None:
    async with running(tmp_path) as server:
        caller = await call(server.port)
        await caller.says(b"POST /session HTTP/1.1", HOST, b"content-length: 5", body=b"{}")
        await anyio.wait_all_tasks_blocked()
        await leave(caller)
        await server.works()
        await caller.stream.aclose()
        assert (await server.service.turnkeeper.list()).items == ()


@WAYS
@pytest.mark.parametrize("size", range(1, 60, 4))
async def test_a_client_that_goes_anywhere_in_a_request_ends_only_its_connection(leave: Leave, size: int) -> None:
    request = b"POST /up HTTP/1.1\r\nhost: here\r\ncontent-length: 9\r\n\r\n123456789"
    async with called() as server:
        caller = await server.another()
        before = descriptors() - 1
        await caller.stream.send(request[:size])
        await leave(caller)
        await caller.stream.aclose()
        await until_open(before)
        await server.first.says(b"GET /x HTTP/1.1", HOST)
        assert await server.first.hears() == b"GET /x  "


@WAYS
async def test_a_stream_with_a_request_waiting_behind_it_ends_with_its_client(leave: Leave) -> None:
    async with called(unread_s=0.5) as server:
        await server.first.stream.send(b"GET /stream HTTP/1.1\r\nhost: a\r\n\r\nGET /x HTTP/1.1\r\nhost: a\r\n\r\n")
        await server.app.reached.wait()
        await leave(server.first)
        if leave is half_closes:
            server.app.gate.set()
            await server.first.rest()
        else:
            # Nothing is read while a request waits: only a failing write can tell.
            [connection] = server.server.server_state.connections
            connection.transport.write(b"x" * 4096)
            connection.transport.write(b"x" * 4096)
            await server.app.disconnected.wait()
        await _until(lambda: not server.server.server_state.tasks)


async def test_pipelined_requests_without_the_password_and_a_half_close_end_nothing_and_are_all_answered(
    tmp_path: Path,
) -> None:
    count = 19_600
    async with running(tmp_path, password="secret") as server, anyio.create_task_group() as group:
        caller = await call(server.port)

        async def send() -> None:
            await caller.stream.send(b"GET /session HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * count)
            await caller.stream.send_eof()

        group.start_soon(send)
        first, _ = await caller.head()
        for _ in range(20):
            await server.works()  # Meanwhile nothing is read, and the answers fill the buffers.
        rest = await caller.rest()
        assert (first, rest.count(b"HTTP/1.1 401 Unauthorized\r\n")) == (b"HTTP/1.1 401 Unauthorized", count - 1)
        await caller.stream.aclose()
        await server.works()


async def test_a_client_that_half_closes_with_its_last_answers_unsent_reads_them_and_ends_nothing() -> None:
    async with called() as server:
        caller = await call(server.port, receive_bytes=128 * 1024)
        count = 0
        with anyio.fail_after(DEADLINE_S):
            while not server.unsent:
                # Its answer has the query in it: ten of them are less than what makes the server wait.
                await caller.stream.send((b"GET /x?" + b"q" * 4096 + b" HTTP/1.1\r\nhost: here\r\n\r\n") * 10)
                count += 10
                while server.app.ended < count:
                    await anyio.sleep(0)
        await caller.stream.send_eof()
        await server.works()
        assert (await caller.rest()).count(b"GET /x q") == count
        await caller.stream.aclose()
        await server.works()


async def test_a_request_whose_connection_is_closed_can_still_abort_it(caplog: pytest.LogCaptureFixture) -> None:
    async with called() as server:
        caller = server.first
        await caller.says(b"POST /aborts HTTP/1.1", HOST, b"transfer-encoding: chunked")
        await server.app.reached.wait()
        await caller.stream.send(b"nonsense\r\n")  # Its body is broken: the connection is closed behind what was sent.
        await server.works()
        assert (await caller.rest()).count(CHUNK) == FLOOD
        server.app.gate.set()
        await _until(lambda: not server.server.server_state.tasks)
    assert [record.getMessage() for record in caplog.records] == []


@WAYS
async def test_pipelined_requests_whose_answers_are_not_read_end_nothing(tmp_path: Path, leave: Leave) -> None:
    async with running(tmp_path, password="secret") as server, anyio.create_task_group() as group:
        before = descriptors()
        caller = await call(server.port)
        requests = b"GET /session HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 200_000
        group.start_soon(sent_until_blocked, caller.stream, requests)
        await caller.head()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await leave(caller)
            await caller.stream.aclose()
            await until_open(before)
            await server.works()


async def test_many_clients_that_go_at_once_leave_nothing_behind(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        await server.works()
        before = descriptors()
        async with AsyncExitStack() as clients:
            for _ in range(50):
                clients.push_async_callback((await server.subscriber()).stream.aclose)
            assert server.subscribers == 50
        await _until(lambda: server.subscribers == 0)
        await until_open(before)
        await server.works()


async def test_a_header_without_end_is_refused_before_the_password(tmp_path: Path) -> None:
    async with running(tmp_path, password="secret") as server:
        caller = await call(server.port)
        await caller.stream.send(b"GET /session HTTP/1.1\r\nhost: 127.0.0.1\r\na: " + b"b" * 65 * 1024)
        assert (await caller.refused())[0] == b"HTTP/1.1 431 Request Header Fields Too Large"
        await caller.stream.aclose()
