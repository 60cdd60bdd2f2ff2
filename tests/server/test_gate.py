"""Who may call at all: passwords, origins of browsers, and hosts that only pretend to be this machine."""

from base64 import b64encode
from pathlib import Path

import pytest
from served import served

from turnkeeper.model.refusal import Forbidden
from turnkeeper.server.service import ServerOptions
from turnkeeper.server.serving import check

LOCKED = ServerOptions(password="open sesame", environ={})
TOKEN = b64encode(b"opencode:open sesame").decode()


async def test_without_the_password_nothing_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path, options=LOCKED) as server:
        for path in ("/global/health", "/doc", "/metrics", "/session", "/event", "/nowhere"):
            answer = await server.http.get(path)
            assert (answer.status_code, answer.content) == (401, b"")
            assert answer.headers["www-authenticate"] == 'Basic realm="Secure Area"'
        refused = await server.get("/api/health", 401)
        assert refused == {"_tag": "UnauthorizedError", "message": "Authentication required"}


async def test_the_password_comes_in_a_header_or_in_the_query(tmp_path: Path) -> None:
    async with served(tmp_path, options=LOCKED) as server:
        await server.get("/global/health", auth=("opencode", "open sesame"))
        await server.get("/global/health", params={"auth_token": TOKEN})
        await server.get("/global/health", params={"auth_token": TOKEN.rstrip("=")})


@pytest.mark.parametrize("given", ["Basic", "Basic !", f"Bearer {TOKEN}", "Basic b3BlbmNvZGU6", "Basic \xfc"])
async def test_a_wrong_password_is_no_password(given: str, tmp_path: Path) -> None:
    async with served(tmp_path, options=LOCKED) as server:
        answer = await server.http.get(
            "/global/health", headers=[(b"authorization", given.encode("latin-1", "replace"))]
        )
        assert answer.status_code == 401


@pytest.mark.parametrize(
    "origin",
    [
        "http://localhost:3000",
        "http://127.0.0.1:5173",
        "https://opencode.ai",
        "https://app.opencode.ai",
        "tauri://localhost",
    ],
)
async def test_pages_of_this_machine_and_of_official_clients_may_call(origin: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        answer = await server.http.post("/session", json={}, headers={"origin": origin})
        assert answer.status_code == 200
        assert (answer.headers["access-control-allow-origin"], answer.headers["vary"]) == (origin, "Origin")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "https://opencode.ai.evil.example", "http://localhost.evil.example"]
)
async def test_other_pages_read_nothing_and_change_nothing(origin: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        read = await server.http.get("/session", headers={"origin": origin})
        assert "access-control-allow-origin" not in read.headers
        # As a form would send it: browsers do not ask before they send this.
        plain = {"origin": origin, "content-type": "text/plain"}
        assert (await server.http.post("/session", content=b"{}", headers=plain)).status_code == 403
        assert await server.get("/session") == []


async def test_further_origins_are_let_in_by_name(tmp_path: Path) -> None:
    async with served(tmp_path, options=ServerOptions(cors=("https://mine.example",), environ={})) as server:
        answer = await server.http.post("/session", json={}, headers={"origin": "https://mine.example"})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, "https://mine.example")


async def test_a_browser_that_asks_first_is_told_without_a_password(tmp_path: Path) -> None:
    async with served(tmp_path, options=LOCKED) as server:
        asked = {
            "origin": "http://localhost:3000",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization, content-type",
        }
        answer = await server.http.options("/session", headers=asked)
        assert answer.status_code == 204
        assert {
            name: answer.headers[f"access-control-{name}"] for name in ("allow-headers", "allow-methods", "max-age")
        } == {
            "allow-headers": "authorization, content-type",
            "allow-methods": "GET, HEAD, PUT, PATCH, POST, DELETE",
            "max-age": "86400",
        }


@pytest.mark.parametrize("host", ["127.0.0.1:4096", "localhost", "app.localhost:4096", "[::1]:4096", "LOCALHOST:1"])
async def test_a_name_of_this_machine_is_answered(host: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await server.get("/global/health", headers={"host": host})


@pytest.mark.parametrize("host", ["evil.example", "evil.example:4096", "127.0.0.1.evil.example", "10.0.0.1:4096", ""])
async def test_another_name_that_points_at_this_machine_is_not(host: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        refused = await server.get("/global/health", 403, headers={"host": host})
        assert refused["name"] == "ForbiddenError"


async def test_a_server_that_others_may_reach_answers_under_every_name(tmp_path: Path) -> None:
    options = ServerOptions(hostname="0.0.0.0", password="x", environ={})
    async with served(tmp_path, options=options) as server:
        await server.get("/global/health", headers={"host": "my.machine.example"}, auth=("opencode", "x"))


@pytest.mark.parametrize("hostname", ["0.0.0.0", "::", "192.168.1.7", "my.machine.example", "127.0.0.1.example"])
def test_what_others_can_reach_needs_a_password_or_an_explicit_word(hostname: str) -> None:
    with pytest.raises(Forbidden, match="OPENCODE_SERVER_PASSWORD"):
        check(ServerOptions(hostname=hostname))
    check(ServerOptions(hostname=hostname), insecure=True)
    check(ServerOptions(hostname=hostname, password="x"))


def test_what_only_this_machine_can_reach_needs_none() -> None:
    for hostname in ("127.0.0.1", "localhost", "::1", "[::1]"):
        check(ServerOptions(hostname=hostname))


def test_a_password_is_not_shown() -> None:
    assert "sesame" not in repr(LOCKED)
