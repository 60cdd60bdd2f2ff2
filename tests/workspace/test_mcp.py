"""MCP servers: real ones, over programs and over HTTP, that work, hang, die and flood."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from mcp_addresses import over_http

from turnkeeper.core.mcp import output
from turnkeeper.model.config import Config, McpConfig
from turnkeeper.model.mcp import McpConnected, McpDisabled, McpFailed, McpNeedsAuth
from turnkeeper.workspace.mcp_connection import McpFailure
from turnkeeper.workspace.mcp_server import McpPlace, McpServer
from turnkeeper.workspace.mcp_servers import McpServers

SERVER = Path(__file__).parents[1] / "support/mcp_server.py"
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
SLOW_MS = 60_000
"""Enough for a busy machine; a test that waits for the limit says less."""


def local(manner: str, *, timeout: int | None = SLOW_MS, **given: object) -> McpConfig:
    return McpConfig(command=(sys.executable, str(SERVER), manner), timeout=timeout, **given)  # type: ignore[arg-type]


async def no_rest(seconds: float) -> None:
    await anyio.lowlevel.checkpoint()


@asynccontextmanager
async def running(
    config: McpConfig, directory: Path, call_ms: int | None = None, start_s: float = SLOW_MS / 1000
) -> AsyncIterator[McpServer]:
    with anyio.fail_after(200):
        async with anyio.create_task_group() as group:
            place = McpPlace(directory, ENVIRON, call_ms)
            server = McpServer("tides", config, place, sleep=no_rest, start_s=start_s)
            group.start_soon(server.serve)
            await server.wait_first()
            yield server
            group.cancel_scope.cancel()


async def said(server: McpServer, tool: str, **arguments: object) -> str:
    return output(await server.call(tool, arguments)).text


async def test_a_program_offers_its_tools_and_answers_calls(tmp_path: Path) -> None:
    async with running(
        local("tools", environment={"MOON": "full"}, cwd="sub"), _made(tmp_path / "sub").parent
    ) as server:
        assert server.status == McpConnected()
        assert [tool.name for tool in server.tools] == sorted(tool.name for tool in server.tools)
        [tide] = [tool for tool in server.tools if tool.name == "tide"]
        assert (tide.description, tide.read_only) == ("The height of the tide in a harbour.", False)
        assert tide.schema["required"] == ["harbour"]
        assert [tool.name for tool in server.tools if tool.read_only] == ["picture"]
        assert server.offers.instructions == "Ask for a harbour by its name."
        assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"
        assert await said(server, "link") == "[resource file:///chart.pdf: chart, application/pdf]"
        assert await said(server, "numbers") == '{"high":3,"low":[1]}'
        assert await said(server, "environment", name="MOON") == f"full in {tmp_path.resolve() / 'sub'}"
        assert output(await server.call("wrong.name", {})) == ("no such harbour", (), True)
        [picture] = output(await server.call("picture", {})).files
        assert picture.mime == "image/png"
        assert picture.url.startswith("data:image/png;base64,iVBOR")


async def test_wrong_arguments_are_told_to_the_caller_and_the_server_stays(tmp_path: Path) -> None:
    async with running(local("tools"), tmp_path) as server:
        result = output(await server.call("tide", {"harbor": "Emden"}))
        assert result.is_error
        assert "harbour" in result.text
        assert "Unknown tool" in str(
            (await _failure(server, "nothing")) or output(await server.call("nothing", {})).text
        )
        assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"


async def test_a_server_that_dies_in_mid_call_fails_the_call_and_is_started_again(tmp_path: Path) -> None:
    async with running(local("dies"), tmp_path) as server:
        tools = server.tools
        words = await _failure(server, "trouble")
        assert words == (
            "The MCP server tides was lost in mid-call: it ended with exit code 7. Whether the call had an effect is "
            "not known. It is connected again when it is next called."
        )
        assert server.tools is tools  # The model's list of tools does not change because of it.
        assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"
        assert server.tools is tools


@pytest.mark.parametrize(
    ("manner", "why"),
    [("floods", "it sent a message of more than 16 MiB"), ("noisy", "it sent more than 2000 messages without a pause")],
)
async def test_a_flood_ends_the_connection_and_not_the_process(manner: str, why: str, tmp_path: Path) -> None:
    async with running(local(manner), tmp_path) as server:
        assert why in await _failure(server, "trouble")
        assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"


async def test_a_call_that_is_never_answered_ends_at_its_limit_and_the_server_is_replaced(tmp_path: Path) -> None:
    async with running(local("sleeps", timeout=None), tmp_path, call_ms=1000, start_s=20) as server:
        words = await _failure(server, "trouble")
        assert words.startswith("The MCP server tides did not answer within ")
        with anyio.fail_after(100):
            while server.status == McpConnected():
                await anyio.lowlevel.checkpoint()
        assert isinstance(server.status, McpFailed)


async def test_a_server_that_hangs_at_its_start_is_waited_for_once(tmp_path: Path) -> None:
    async with running(local("hung", timeout=300), tmp_path) as server:
        with anyio.CancelScope() as scope:
            scope.cancel()  # What waits for anything now ends here.
            await server.wait_first()
        assert not scope.cancelled_caught
        with anyio.fail_after(100):
            while server.status == McpFailed(error="it has not been started"):
                await anyio.lowlevel.checkpoint()
        assert server.status == McpFailed(error="it did not answer within 0.3 s")
        assert (await _failure(server, "tide")).startswith("The MCP server tides cannot be reached: it did not answer")


async def test_a_server_that_cannot_be_started_leaves_nothing_open(tmp_path: Path) -> None:
    async with running(local("tools", cwd="not-there"), tmp_path) as server:
        before = len(os.listdir("/dev/fd"))
        for _ in range(5):
            await server.renew()
        assert isinstance(server.status, McpFailed)
        assert len(os.listdir("/dev/fd")) == before


async def test_a_server_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    async with running(local("bad"), tmp_path) as server:
        assert isinstance(server.status, McpFailed)
        assert server.errors.text == "there is no harbour here"
    async with running(McpConfig(command=("not-there",)), tmp_path) as server:
        assert server.status == McpFailed(error="there is no program 'not-there'")


async def test_a_cancelled_call_leaves_the_server_at_work(tmp_path: Path) -> None:
    async with running(local("tools"), tmp_path) as server:
        with anyio.CancelScope() as scope:
            scope.cancel()
            await server.call("tide", {"harbour": "Emden"})
        assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"


async def test_a_server_is_switched_off_and_on_again(tmp_path: Path) -> None:
    async with running(local("tools"), tmp_path) as server:
        await server.switch(is_on=False)
        assert server.status == McpDisabled()
        assert await _failure(server, "tide", harbour="Emden") == "The MCP server tides is switched off."
        await server.switch(is_on=True)
        assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"


async def test_new_tools_are_learnt_when_the_server_says_so(tmp_path: Path) -> None:
    async with running(local("tools"), tmp_path) as server:
        before = server.tools
        assert await said(server, "grow") == "more"
        with anyio.fail_after(100):
            while server.tools is before:
                await anyio.lowlevel.checkpoint()
        assert {tool.name for tool in server.tools} - {tool.name for tool in before} == {"grown"}


async def test_a_server_at_an_address_dies_and_is_reached_again_once_it_is_back(tmp_path: Path) -> None:
    with over_http("dies") as listening:
        config = McpConfig(url=listening.url, headers={"x-key": "1"}, timeout=SLOW_MS)
        async with running(config, tmp_path) as server:
            tools = server.tools
            assert server.status == McpConnected()
            assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"
            assert "was lost in mid-call" in await _failure(server, "trouble")
            listening.process.wait()
            assert "tides cannot be reached" in await _failure(server, "tide", harbour="Emden")
            with over_http("tools", listening.port):
                assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"
                assert server.tools is tools


async def test_a_server_that_was_started_anew_between_two_calls_answers_the_second(tmp_path: Path) -> None:
    with over_http("tools") as listening:
        async with running(McpConfig(url=listening.url, timeout=SLOW_MS), tmp_path) as server:
            assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"
            listening.process.kill()
            listening.process.wait()
            with over_http("tools", listening.port):
                first = await _failure(server, "tide", harbour="Emden")
                assert first == "" or "was lost in mid-call" in first
                assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"


@pytest.mark.parametrize(
    ("manner", "why"),
    [("floods", "it sent a message of more than 16 MiB"), ("noisy", "it sent more than 2000 messages without a pause")],
)
async def test_a_flood_over_http_ends_the_connection_and_not_the_process(manner: str, why: str, tmp_path: Path) -> None:
    with over_http(manner) as listening:
        async with running(McpConfig(url=listening.url, timeout=SLOW_MS), tmp_path) as server:
            assert why in await _failure(server, "trouble")
            assert await said(server, "tide", harbour="Emden") == "Emden: 2.5"


async def test_a_call_over_http_that_is_never_answered_ends_at_its_limit(tmp_path: Path) -> None:
    with over_http("sleeps") as listening:
        async with running(McpConfig(url=listening.url), tmp_path, call_ms=1000, start_s=20) as server:
            assert "did not answer within " in await _failure(server, "trouble")
            with anyio.fail_after(100):
                while server.status == McpConnected():
                    await anyio.lowlevel.checkpoint()


async def test_an_address_that_wants_a_login_is_said_to(tmp_path: Path) -> None:
    async with _refusing(401) as url, running(McpConfig(url=url, timeout=SLOW_MS), tmp_path) as server:
        assert server.status == McpNeedsAuth()


async def test_servers_are_shared_by_their_settings_and_end_when_nobody_has_them(tmp_path: Path) -> None:
    config = Config(mcp={"tides": local("tools"), "off": local("bad", enabled=False), "named": McpConfig(enabled=True)})
    async with anyio.create_task_group() as group:
        servers = McpServers(group)
        with anyio.fail_after(100):
            [off, tides] = await servers.ready(tmp_path, config, ENVIRON)
            assert (off.status, tides.status) == (McpDisabled(), McpConnected())
            assert (await servers.ready(tmp_path, config, ENVIRON))[1] is tides
            assert servers.of(tmp_path, Config(), ENVIRON) == ()
            assert tides.status == McpDisabled()
        group.cancel_scope.cancel()
    assert McpServers(None).of(tmp_path, config, ENVIRON) == ()


def test_nothing_of_the_package_is_imported_without_a_server() -> None:
    program = "import sys, turnkeeper.run.runtime, turnkeeper.cli.main; print([n for n in sys.modules if n == 'mcp'])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"


async def _failure(server: McpServer, tool: str, **arguments: object) -> str:
    try:
        await server.call(tool, arguments)
    except McpFailure as failure:
        return str(failure)
    return ""


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


@asynccontextmanager
async def _refusing(status: int) -> AsyncIterator[str]:
    async def serve(client: anyio.abc.SocketStream) -> None:
        async with client:
            await client.receive()
            await client.send(b"HTTP/1.1 %d No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, serve)
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        yield f"http://127.0.0.1:{port}/mcp"
        group.cancel_scope.cancel()


async def test_a_server_that_fails_again_in_the_same_way_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(McpConfig(command=("no-such-program",)), tmp_path) as server:
        for _ in range(3):
            with pytest.raises(McpFailure, match="there is no program 'no-such-program'"):
                await server.call("tide", {})
    told = [one.getMessage() for one in caplog.records if one.name == "turnkeeper.workspace.mcp_server"]
    assert told == ["the MCP server tides failed: there is no program 'no-such-program'"]
