"""The login at OpenRouter over real HTTP: the browser comes back to a port, and the code becomes a key."""

import json
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import pytest
from anyio.abc import SocketStream
from loopback import Server, chunk, head, serving, stalling, whole

from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.openrouter_login import SITE, Callback, address, challenge, exchanged
from turnkeeper.providers.openrouter_login import site as named_site


def site(server: Server) -> str:
    return server.url.removesuffix("/v1")


def test_the_challenge_is_that_of_the_standard() -> None:
    """The example of RFC 7636, appendix B."""
    assert challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


async def test_the_browser_comes_back_with_a_code_that_becomes_a_key() -> None:
    async with Callback("state-1").open() as callback, httpx2.AsyncClient() as browser:
        asked = parse_qs(urlsplit(address(callback.url, "verifier")).query)
        assert asked["callback_url"] == [callback.url]
        assert asked["code_challenge_method"] == ["S256"]
        assert "verifier" not in address(callback.url, "verifier")
        stranger = await browser.get(callback.url.replace("state-1", "state-2") + "?code=evil")
        came = await browser.get(f"{callback.url}?code=auth_1")
        assert (stranger.status_code, came.status_code) == (404, 200)
        code = await callback.wait(5)
    assert code == "auth_1"
    body = b'{"key": "sk-or-v1-secret", "user_id": "u"}'
    async with serving(whole(body, content_type="application/json")) as server:
        assert await exchanged(code, "verifier", site(server)) == "sk-or-v1-secret"
    [sent] = server.requests
    assert sent.line == "POST /api/v1/auth/keys HTTP/1.1"
    assert json.loads(sent.body) == {"code": "auth_1", "code_verifier": "verifier", "code_challenge_method": "S256"}


async def test_a_refusal_a_lost_browser_and_a_wrong_answer_are_told_without_secrets() -> None:
    async with Callback("s").open() as callback, httpx2.AsyncClient() as browser:
        await browser.get(f"{callback.url}?error=access_denied")
        with pytest.raises(Invalid, match="was refused"):
            await callback.wait(5)
    async with Callback("s").open() as callback:
        with pytest.raises(Invalid, match="did not come back within"):
            await callback.wait(0.01)
    async with serving(whole(b"nonsense", content_type="text/html")) as server:
        with pytest.raises(Invalid, match="gave no key") as caught:
            await exchanged("auth_1", "verifier", site(server))
    assert "auth_1" not in str(caught.value)
    for body in (
        b'{"key": ""}',
        b'{"key": "sk-or v1"}',
        b'{"key": "sk-or\\n"x-evil: 1"}',
        b'{"key": "sk-or\\r\\nx: 1"}',
    ):
        async with serving(whole(body, content_type="application/json")) as server:
            with pytest.raises(Invalid, match="nothing was stored"):
                await exchanged("auth_1", "verifier", site(server))
    with pytest.raises(Invalid, match="cannot be reached"):
        await exchanged("auth_1", "verifier", "http://127.0.0.1:9")


async def test_an_answer_without_end_is_given_up() -> None:
    async def endless(stream: SocketStream) -> None:
        await stream.send(head(kind="application/json"))
        while True:
            await stream.send(chunk(b" " * 65_536))

    async with serving(stalling(head(kind="application/json"), chunk(b'{"key": "'))) as server:
        with anyio.fail_after(60), pytest.raises(Invalid, match=r"did not end its answer within 0\.5 s"):
            await exchanged("auth_1", "verifier", site(server), limit_s=0.5)
    async with serving(endless) as server:
        with anyio.fail_after(60), pytest.raises(Invalid, match="gave no key, but a long answer"):
            await exchanged("auth_1", "verifier", site(server))


def test_the_site_is_that_of_the_variable_or_it_is_told_that_this_is_no_address() -> None:
    assert named_site({"OPENROUTER_BASE_URL": " "}) == SITE
    assert named_site({"OPENROUTER_BASE_URL": "http://127.0.0.1:80/api/v1"}) == "http://127.0.0.1:80"
    for wrong in ("http://[bad", "localhost:80/v1", "ftp://host/v1", "https://"):
        with pytest.raises(Invalid, match=r"OPENROUTER_BASE_URL: '.*' is no address"):
            named_site({"OPENROUTER_BASE_URL": wrong})
