"""The server on a socket: starting, answering over the network, and stopping."""

import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import anyio
import httpx2
import pytest
from caller import call
from left_behind import DEAD
from served import DEADLINE_S

from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.refusal import Conflict, Invalid
from turnkeeper.model.status import Owner
from turnkeeper.model.value import encode
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.leases import runtime_name
from turnkeeper.server import serving
from turnkeeper.server.service import ServerOptions, Service
from turnkeeper.store import keys
from turnkeeper.testing.harness import StageOptions as Staging
from turnkeeper.testing.harness import stage

FAR = Owner(host="far", pid=1, started="1", machine="other", boot="other")


def test_a_socket_that_cannot_be_had_is_refused() -> None:
    with closing(serving.listen("127.0.0.1", 0)) as taken:
        with pytest.raises(Conflict):
            serving.listen("127.0.0.1", taken.getsockname()[1])
        with pytest.raises(Invalid):
            serving.listen("127.0.0.1", 70_000)
        with pytest.raises(Invalid):
            serving.listen("no such host", 0)


def test_addresses_are_written_as_clients_need_them() -> None:
    with closing(serving.listen("localhost", 0)) as bound:
        assert serving.address(bound).startswith("http://")
    if socket.has_ipv6:
        with closing(serving.listen("[::1]", 0)) as bound:
            assert serving.address(bound).startswith("http://[::1]:")


async def test_stopping_in_the_middle_of_a_turn_answers_whoever_waits(tmp_path: Path) -> None:
    gate, answers = Gate(), []
    with anyio.fail_after(DEADLINE_S):
        provider = Scripted().says("half").waits(gate)
        async with stage("memory:", tmp_path, provider, Staging(ask=None)) as opened:
            service = Service(opened.tk, tmp_path, ServerOptions(environ={}))
            bound = serving.listen("127.0.0.1", 0)
            url = serving.address(bound)
            async with (
                httpx2.AsyncClient(base_url=url, timeout=DEADLINE_S) as http,
                anyio.create_task_group() as group,
                serving.serving(service, bound),
            ):
                made = (await http.post("/session")).json()

                async def ask() -> None:
                    body = {"parts": [{"type": "text", "text": "go"}]}
                    answers.append((await http.post(f"/session/{made['id']}/message", json=body)).json())

                group.start_soon(ask)
                await gate.wait_reached()
        assert answers[0]["info"]["error"]["name"] == "MessageAbortedError"
        assert [part["text"] for part in answers[0]["parts"] if part["type"] == "text"] == ["half"]


async def test_stopping_ends_in_time_with_streams_hanging_requests_and_half_open_peers(tmp_path: Path) -> None:
    with anyio.fail_after(DEADLINE_S):
        async with stage("memory:", tmp_path, Scripted(), Staging(ask=None)) as opened:
            service = Service(opened.tk, tmp_path, ServerOptions(environ={}))
            bound = serving.listen("127.0.0.1", 0)
            port = bound.getsockname()[1]
            async with serving.serving(service, bound, requests_s=0.1):
                streams = [await call(port) for _ in range(3)]
                for caller in streams:
                    await caller.says(b"GET /event HTTP/1.1", b"host: localhost")
                    await caller.head()
                hanging, half_open, idle = [await call(port) for _ in range(3)]
                await hanging.says(b"POST /session HTTP/1.1", b"host: localhost", b"content-length: 9", body=b"{")
                await half_open.says(b"GET /doc HTTP/1.1", b"host: localhost")
                await half_open.stream.send_eof()
                began = anyio.current_time()
            assert anyio.current_time() - began < DEADLINE_S / 2
            for caller in streams:
                assert b"server.instance.disposed" in (await caller.rest()).rpartition(b"data: ")[2]
            assert await idle.rest() == b""
            for caller in (*streams, hanging, half_open, idle):
                await caller.stream.aclose()


async def test_metrics_count_what_was_done(tmp_path: Path) -> None:
    async with stage("memory:", tmp_path, Scripted(), Staging(ask=None)) as opened:
        bound = serving.listen("127.0.0.1", 0)
        now = opened.tk.store.mint.now()
        for owner, at in ((DEAD, now), (FAR, now), (FAR.but(pid=2), now - 3_600_000)):
            beat = Heartbeat(owner=owner, beat=1, at=at, role="worker")
            await opened.tk.store.engine.put({keys.heartbeat(runtime_name(owner)): encode(beat)})
        async with (
            serving.serving(Service(opened.tk, tmp_path, ServerOptions(environ={})), bound),
            httpx2.AsyncClient(base_url=serving.address(bound)) as http,
        ):
            await http.get("/global/health")
            await http.get("/session/ses_nope")
            text = (await http.get("/metrics")).text
        assert 'turnkeeper_requests_total{operation="global.health",status="200"} 1' in text
        assert 'turnkeeper_requests_total{operation="session.get",status="404"} 1' in text
        assert "turnkeeper_sessions_running 0" in text
        assert "\nturnkeeper_hosts 1\n" in text
        assert "\nturnkeeper_hosts_ended 2\n" in text


def test_a_server_whose_files_are_all_in_use_waits_with_its_modules_until_some_are_free(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "support/no_free_file.py"
    run = subprocess.run(
        [sys.executable, str(script), str(tmp_path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    waiting, *others = run.stdout.splitlines()
    assert waiting.startswith("modules wait to be loaded: [Errno 24] Too many open files"), run.stderr
    assert (run.returncode, others) == (0, ["settled"]), run.stderr
