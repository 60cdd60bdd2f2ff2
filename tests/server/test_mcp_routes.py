"""The routes about MCP servers, in the shapes that official clients read."""

import sys
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp_addresses import locked
from served import Served, served
from shapes import faults

from turnkeeper.providers.scripted import Scripted

SERVER = Path(__file__).parents[1] / "support/mcp_server.py"


def local(manner: str) -> dict[str, Any]:
    return {"type": "local", "command": [sys.executable, str(SERVER), manner], "timeout": 60_000}


async def statuses(server: Served) -> dict[str, str]:
    found = await server.get("/mcp")
    assert [fault for one in found.values() for fault in faults("MCPStatus", one)] == []
    return {name: one["status"] for name, one in found.items()}


async def test_servers_are_listed_added_switched_off_and_on(tmp_path: Path) -> None:
    config = {"mcp": {"sea": local("tools"), "off": {**local("bad"), "enabled": False}, "bad": local("bad")}}
    async with served(tmp_path, config=config) as server:
        assert await statuses(server) == {"bad": "failed", "off": "disabled", "sea": "connected"}
        assert await server.post("/mcp/sea/disconnect") is True
        assert (await statuses(server))["sea"] == "disabled"
        assert await server.post("/mcp/sea/connect") is True
        assert (await statuses(server))["sea"] == "connected"
        added = await server.post("/mcp", {"name": "more", "config": local("tools")})
        assert added["more"] == {"status": "connected"}
        assert (await statuses(server))["more"] == "connected"
        for wrong in (
            {"name": "x"},
            {"name": "", "config": local("tools")},
            {"name": "x", "config": {"type": "local"}},
            {"name": "x", "config": {"type": "local", "command": "x"}},
            {"name": "x", "config": {"command": ["x"], "url": "http://127.0.0.1:1"}},
        ):
            await server.post("/mcp", wrong, 400)
        assert "x" not in await statuses(server)


async def test_an_unknown_server_is_answered_in_the_official_shape(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        assert await server.get("/mcp") == {}
        assert await server.get("/experimental/resource") == {}
        for method, path in (
            ("POST", "connect"),
            ("POST", "disconnect"),
            ("POST", "auth"),
            ("DELETE", "auth"),
            ("POST", "auth/authenticate"),
            ("POST", "auth/callback"),
        ):
            body = {"json": {"code": "x"}} if path == "auth/callback" else {}
            answer = await server.call(method, f"/mcp/sea/{path}", 404, **body)
            assert answer == {"_tag": "McpServerNotFoundError", "name": "sea", "message": "McpServer not found: sea"}
            assert faults("McpServerNotFoundError", answer) == []


@pytest.mark.parametrize(
    "config",
    [
        {"url": "http://x\ny/"},
        {"url": "tides"},
        {"url": "http://127.0.0.1:9/", "headers": {"tide": "日"}},
        {"url": "http://127.0.0.1:9/", "oauth": {"redirectUri": "no address"}},
    ],
)
async def test_a_login_with_settings_that_make_no_sense_is_refused_and_harms_nobody(
    config: dict[str, Any], tmp_path: Path
) -> None:
    async with served(tmp_path) as server:
        added = await server.post("/mcp", {"name": "sea", "config": config})
        assert added["sea"]["status"] == "failed"
        refused = await server.post("/mcp/sea/auth", status=400)
        assert "the login at sea failed" in refused["data"]["message"]
        assert await statuses(server) == {"sea": "failed"}


async def test_resources_and_prompts_are_listed_by_the_names_of_opencode(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("ok").forever(), config={"mcp": {"my sea": local("tools")}}) as server:
        found = await server.get("/experimental/resource")
        assert sorted(found) == ["my_sea:emden", "my_sea:picture", "my_sea:tape"]
        assert found["my_sea:emden"] == {
            "name": "emden",
            "uri": "charts://emden",
            "description": "The chart of Emden.",
            "mimeType": "text/plain",
            "client": "my sea",
        }
        assert [fault for one in found.values() for fault in faults("McpResource", one)] == []
        [command] = [one for one in await server.get("/command") if one["name"] == "my_sea:report"]
        assert (command["source"], command["hints"]) == ("mcp", ["$1", "$2"])
        session = await server.session()
        resource = {"type": "resource", "clientName": "my sea", "uri": "charts://emden"}
        part = {
            "type": "file",
            "mime": "text/plain",
            "filename": "emden",
            "url": "charts://emden",
            "source": {**resource, "text": {"value": "@emden", "start": 0, "end": 6}},
        }
        await server.post(f"/session/{session}/message", {"parts": [{"type": "text", "text": "See @emden"}, part]})
        first, _ = await server.get(f"/session/{session}/message")
        assert [one["text"] for one in first["parts"][1:]] == [
            "The resource charts://emden of the MCP server my sea was read for the user:",
            "Depth: 7 m",
        ]
        body = {"command": "my_sea:report", "arguments": "Emden"}
        await server.post(f"/session/{session}/command", body)


async def test_a_client_logs_in_and_out_through_the_server(tmp_path: Path) -> None:
    with locked("open") as listening:
        config = {"mcp": {"sea": {"type": "remote", "url": listening.url, "timeout": 60_000}, "local": local("tools")}}
        async with served(tmp_path, config=config) as server:
            assert (await statuses(server))["sea"] == "needs_auth"
            page = await server.post("/mcp/sea/auth")
            assert set(page) == {"authorizationUrl", "oauthState"}
            async with httpx2.AsyncClient(timeout=60) as browser, anyio.create_task_group() as tasks:
                tasks.start_soon(_authenticated, server)
                sent = await browser.get(page["authorizationUrl"])
                assert httpx2.URL(sent.headers["location"]).params["state"] == page["oauthState"]
                await browser.get(sent.headers["location"])
            assert (await statuses(server))["sea"] == "connected"
            assert await server.post("/mcp/sea/auth") == {"authorizationUrl": "", "oauthState": ""}
            assert await server.call("DELETE", "/mcp/sea/auth") == {"success": True}
            assert (await statuses(server))["sea"] == "needs_auth"
            page = await server.post("/mcp/sea/auth")
            async with httpx2.AsyncClient(timeout=60) as browser:
                sent = await browser.get(page["authorizationUrl"])
            code = httpx2.URL(sent.headers["location"]).params["code"]
            assert await server.post("/mcp/sea/auth/callback", {"code": code}) == {"status": "connected"}
            await server.post("/mcp/sea/auth/callback", {"code": code}, 409)
            refused = await server.post("/mcp/local/auth", None, 400)
            assert faults("McpUnsupportedOAuthError", refused) == []


async def _authenticated(server: Served) -> None:
    assert await server.post("/mcp/sea/auth/authenticate") == {"status": "connected"}


async def test_a_server_that_registers_nobody_says_what_it_needs(tmp_path: Path) -> None:
    with locked("closed") as listening:
        config = {"mcp": {"sea": {"type": "remote", "url": listening.url, "timeout": 60_000}}}
        async with served(tmp_path, config=config) as server:
            await server.post("/mcp/sea/auth", None, 400)
            assert await statuses(server) == {"sea": "needs_client_registration"}
