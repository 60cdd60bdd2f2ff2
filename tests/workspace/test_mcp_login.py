"""Logins at MCP servers: a real authorization server, a browser that follows its pages, and tokens in a file."""

import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream
from loopback import serving
from mcp_addresses import Listening, locked, over_http

from turnkeeper.core.mcp import output
from turnkeeper.model.config import McpConfig, McpOAuthConfig
from turnkeeper.model.mcp import McpConnected, McpNeedsAuth
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace.mcp_login import LoginAttempt, NotOffered, NotRegistered
from turnkeeper.workspace.mcp_logins import McpLogins
from turnkeeper.workspace.mcp_server import McpPlace, McpServer

SLOW_MS = 60_000


@pytest.fixture
def logins(tmp_path: Path) -> McpLogins:
    return McpLogins(tmp_path / "data" / "mcp-auth.json")


def remote(listening: Listening, **oauth: object) -> McpConfig:
    given = McpOAuthConfig(**oauth) if oauth else None  # type: ignore[arg-type] # The keywords of the settings.
    return McpConfig(url=listening.url, timeout=SLOW_MS, oauth=given)


async def agreed(attempt: LoginAttempt) -> httpx2.Response:
    """What a browser is shown in the end that a user opened the page with."""
    await attempt.shown.wait()
    if attempt.failure is not None:
        raise attempt.failure
    async with httpx2.AsyncClient(follow_redirects=True, timeout=60) as browser:
        return await browser.get(attempt.page)


async def log_in(config: McpConfig, logins: McpLogins) -> LoginAttempt:
    attempt = LoginAttempt("sea", config, logins)
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attempt.run)
            shown = await agreed(attempt)
            assert shown.text == "You can close this page and go back to the terminal.\n"
        await attempt.done()
    return attempt


@asynccontextmanager
async def running(config: McpConfig, logins: McpLogins) -> AsyncIterator[McpServer]:
    place = McpPlace(logins.path.parent, {"PATH": os.environ["PATH"]}, logins=logins)
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            server = McpServer("sea", config, place)
            group.start_soon(server.serve)
            await server.wait_first()
            yield server
            group.cancel_scope.cancel()


async def test_a_user_agrees_once_and_the_server_can_be_called_from_then_on(logins: McpLogins) -> None:
    with locked("open") as listening:
        config = remote(listening)
        async with running(config, logins) as server:
            assert server.status == McpNeedsAuth()
            assert not logins.path.exists()  # Nothing is registered before a user wants to log in.
            await log_in(config, logins)
            await server.renew()
            assert output(await server.call("who", {})).text == "access-1 for tide"
        assert stat.S_IMODE(logins.path.stat().st_mode) == 0o600
        async with running(config, logins) as server:
            assert output(await server.call("who", {})).text == "access-1 for tide"


async def test_a_token_that_has_ended_is_renewed_where_the_authorization_server_says(logins: McpLogins) -> None:
    with locked("open") as listening:
        config = remote(listening)
        await log_in(config, logins)
        known = logins.read(listening.url)
        assert known is not None
        assert known.tokens is not None
        logins.write(listening.url, known.but(expires=1.0))
        async with running(config, logins) as server:
            assert output(await server.call("who", {})).text == "access-2 for tide"
        renewed = logins.read(listening.url)
        assert renewed is not None
        assert renewed.tokens is not None
        assert renewed.tokens["refresh_token"] != known.tokens["refresh_token"]


async def test_a_login_that_was_revoked_is_asked_for_again_and_nobody_is_shown_a_page(logins: McpLogins) -> None:
    with locked("open") as listening:
        config = remote(listening)
        await log_in(config, logins)
        known = logins.read(listening.url)
        assert known is not None
        logins.write(listening.url, known.but(tokens={"access_token": "old", "token_type": "Bearer"}))
        async with running(config, logins) as server:
            assert server.status == McpNeedsAuth()


async def test_a_second_login_uses_the_first_registration(logins: McpLogins) -> None:
    with locked("open") as listening:
        await log_in(remote(listening), logins)
        first = json.loads(logins.path.read_text())[listening.url]["client"]["client_id"]
        known = logins.read(listening.url)
        assert known is not None
        logins.write(listening.url, known.but(tokens=None))
        await log_in(remote(listening), logins)
        assert json.loads(logins.path.read_text())[listening.url]["client"]["client_id"] == first


async def test_a_registered_client_is_used_with_its_port_and_its_scope(logins: McpLogins) -> None:
    with locked("closed") as listening:
        attempt = LoginAttempt("sea", remote(listening), logins)
        await attempt.run()
        assert isinstance(attempt.failure, NotRegistered)
        assert "oauth.clientId" in str(attempt.failure)
        config = remote(listening, client_id="known", callback_port=listening.callback_port, scope="tide wind")
        await log_in(config, logins)
        async with running(config, logins) as server:
            assert output(await server.call("who", {})).text == "access-1 for tide wind"


async def test_a_refused_login_stores_no_token_and_says_so(logins: McpLogins) -> None:
    with locked("refuses") as listening:
        with pytest.raises(Invalid, match="was refused: access_denied; nothing was stored"):
            await log_in(remote(listening), logins)
        known = logins.read(listening.url)
        assert known is not None
        assert known.tokens is None


async def test_a_browser_without_the_state_is_sent_away_and_the_wait_goes_on(logins: McpLogins) -> None:
    with locked("open") as listening:
        attempt = LoginAttempt("sea", remote(listening), logins)
        with anyio.fail_after(120):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(attempt.run)
                await attempt.shown.wait()
                address = httpx2.URL(attempt.page).params["redirect_uri"]
                async with httpx2.AsyncClient(timeout=60) as stranger:
                    sent = [await stranger.get(f"{address}?code=evil{more}") for more in ("", "&state=guess")]
                assert [one.status_code for one in sent] == [403, 403]
                assert (await agreed(attempt)).status_code == 200
            await attempt.done()


async def drip(stream: SocketStream) -> None:
    """Send the head of an answer a byte at a time, without an end."""
    await stream.send(b"HTTP/1.1 200 OK\r\nx-slow: ")
    while True:
        await stream.send(b"x")
        with anyio.move_on_after(0.05):
            await stream.receive()  # Raises once the client has hung up.


async def until_shown(config: McpConfig, logins: McpLogins, **limits: float) -> LoginAttempt:
    """The login attempt with these limits; the browser comes back at once."""
    attempt = LoginAttempt("sea", config, logins, **limits)
    with anyio.fail_after(120):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(attempt.run)
            await attempt.shown.wait()
            if attempt.page:
                asked = httpx2.URL(attempt.page).params
                async with httpx2.AsyncClient(timeout=60) as browser:
                    await browser.get(asked["redirect_uri"], params={"code": "c", "state": asked["state"]})
    return attempt


@pytest.mark.parametrize("slow", ["/v1", "/.well-known/", "/token"])
async def test_a_site_that_never_ends_its_answer_ends_the_login(slow: str, logins: McpLogins) -> None:
    async def answer(stream: SocketStream) -> None:
        _, path, _ = server.requests[-1].line.split()
        if path.startswith(slow):
            await drip(stream)
        missing = b"401 Unauthorized" if path == "/v1" else b"404 Not Found"
        await stream.send(b"HTTP/1.1 %b\r\ncontent-length: 0\r\n\r\n" % missing)

    async with serving(answer) as server:
        config = McpConfig(url=server.url, oauth=McpOAuthConfig(client_id="known"))
        attempt = await until_shown(config, logins, answer_s=3)
        assert str(attempt.failure) == (
            "the login at sea failed: its sites did not answer within 3 s; nothing was stored"
        )
        assert slow in server.requests[-1].line
        await server.until_closed()


async def test_a_browser_may_take_longer_than_a_site_and_not_for_ever(logins: McpLogins) -> None:
    with locked("open") as listening:
        attempt = LoginAttempt("sea", remote(listening), logins, wait_s=8, answer_s=6)
        await attempt.run()
    assert str(attempt.failure) == (
        "the login at sea failed: the browser did not come back within 8 s; nothing was stored"
    )


async def test_a_server_without_a_login_says_so(logins: McpLogins) -> None:
    with over_http("tools") as listening:
        attempt = LoginAttempt("sea", McpConfig(url=listening.url), logins)
        await attempt.run()
        assert isinstance(attempt.failure, NotOffered)
    for config, why in (
        (McpConfig(command=("x",)), "it is a program"),
        (McpConfig(url="http://127.0.0.1:1/mcp", oauth=False), "its settings say so"),
        (McpConfig(url="http://127.0.0.1:1/mcp", headers={"authorization": "x"}), "a header for that"),
    ):
        with pytest.raises(NotOffered, match=why):
            LoginAttempt("sea", config, logins)


async def test_a_token_goes_to_no_other_address(logins: McpLogins) -> None:
    with locked("open") as listening, over_http("tools") as other:
        await log_in(remote(listening), logins)
        async with running(McpConfig(url=other.url, timeout=SLOW_MS), logins) as server:
            assert server.status == McpConnected()
        assert logins.read(other.url) is None
        assert logins.remove(listening.url) is True
        assert logins.remove(listening.url) is False
        async with running(remote(listening), logins) as server:
            assert server.status == McpNeedsAuth()
