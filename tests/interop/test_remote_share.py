"""Shares on another host, which is scripted and on loopback: create, changes, removals, refusals."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from anyio.abc import SocketStream
from loopback import Request, accepting, head, read_request

from turnkeeper.app import Turnkeeper, open_store
from turnkeeper.interop.remote_share import RemoteShares, checked_base
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.store import keys

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
SECRET = "5f6b6f0c-host-secret"


@dataclass
class Host:
    """A host for shares: what it has been told, and what it answers next in place of its usual answers."""

    url: str = ""
    requests: list[Request] = field(default_factory=list)
    statuses: list[str] = field(default_factory=list)
    secret: str = SECRET

    def bodies(self, path: str) -> list[dict[str, Any]]:
        return [json.loads(one.body) for one in self.requests if one.line.split(" ")[1] == path]

    async def handle(self, stream: SocketStream) -> None:
        request = await read_request(stream)
        self.requests.append(request)
        status = self.statuses.pop(0) if self.statuses else "200 OK"
        made = {"id": "abcd1234", "url": f"{self.url}/share/abcd1234", "secret": self.secret}
        content = json.dumps(made).encode()
        begun = head(status, "application/json", connection="close", content_length=str(len(content)))
        await stream.send(begun.replace(b"transfer-encoding: chunked\r\n", b"") + content)


@asynccontextmanager
async def shared(tmp_path: Path) -> AsyncIterator[tuple[Host, Turnkeeper, str]]:
    """A host that the settings name, and a session with a secret in it."""
    host = Host()
    async with accepting(host.handle) as url:
        host.url = url.removesuffix("/v1")
        (tmp_path / "turnkeeper.json").write_text(json.dumps({"enterprise": {"url": host.url}}))
        environ = {"HOME": str(tmp_path / "home"), "TURNKEEPER_TRUST": "1"}
        async with open_store("memory:", directory=tmp_path, environ=environ) as tk:
            tk.remote_shares = RemoteShares(tk.store, environ, _at_once)
            session = await tk.create(title="Tides")
            await said(tk, session.id, f"the token is {TOKEN}")
            yield host, tk, session.id


async def said(tk: Turnkeeper, session_id: str, text: str) -> None:
    await tk.prompt(session_id, Prompt(parts=(TextInput(text=text),), no_reply=True))
    await tk.run(session_id)


async def _at_once(_: float) -> None:
    return None


async def test_a_share_is_made_recorded_and_then_filled_with_redacted_items(tmp_path: Path) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        link = await tk.share(session_id)
        assert (link.url, link.secret) == (f"{host.url}/share/abcd1234", SECRET)
        assert host.bodies("/api/share") == [{"sessionID": session_id}]
        [sync] = host.bodies("/api/share/abcd1234/sync")
        assert sync["secret"] == SECRET
        assert {one["type"] for one in sync["data"]} >= {"session", "message", "part"}
        assert TOKEN not in json.dumps(sync)
        assert "[api-key 1]" in json.dumps(sync)
        assert (await tk.get(session_id)).share is not None


async def test_only_what_has_changed_is_sent_and_removals_too(tmp_path: Path) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        await tk.share(session_id)
        assert await tk.remote_shares.send(session_id) == 0
        await said(tk, session_id, "more of it")
        assert await tk.remote_shares.send(session_id) > 0
        added = host.bodies("/api/share/abcd1234/sync")[-1]["data"]
        assert "more of it" in json.dumps(added)
        assert "[api-key 1]" not in json.dumps(added)
        newest = (await tk.messages(session_id)).items[-1].info.id
        await tk.remove_message(session_id, newest)
        await tk.remote_shares.send(session_id)
        gone = host.bodies("/api/share/abcd1234/sync")[-1]["data"]
        assert {"type": "removed", "key": f"message/{newest}"} in gone


async def test_unsharing_and_removing_a_session_remove_the_share_first(tmp_path: Path) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        await tk.share(session_id)
        await tk.unshare(session_id)
        assert [json.loads(one.body) for one in host.requests if one.line.startswith("DELETE")] == [{"secret": SECRET}]
        await tk.share(session_id)
        await tk.remove(session_id)
        assert len([one for one in host.requests if one.line.startswith("DELETE")]) == 2


async def test_a_link_that_cannot_be_removed_stays_known_until_it_is_given_up(tmp_path: Path) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        await tk.share(session_id)
        for call in (tk.unshare, tk.remove):
            host.statuses = ["500 Internal Server Error"] * 3
            with pytest.raises(Invalid, match="refused DELETE"):
                await call(session_id)
        assert (await tk.get(session_id)).share is not None
        await tk.unshare(session_id, forget=True)
        assert (await tk.get(session_id)).share is None


async def test_a_host_that_fails_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        host.statuses = ["503 Service Unavailable", "503 Service Unavailable"]
        await tk.share(session_id)
        assert len(host.bodies("/api/share")) == 3


async def test_a_host_that_refuses_leaves_nothing_shared(tmp_path: Path) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        host.statuses = ["403 Forbidden"]
        with pytest.raises(Invalid, match="refused POST share with 403"):
            await tk.share(session_id)
        assert (await tk.get(session_id)).share is None


@pytest.mark.parametrize(
    "base", ["http://example.org", "ftp://example.org", "https://a:b@example.org", "https://", "x", "https://e.org/?a"]
)
def test_only_a_host_with_https_is_sent_anything(base: str) -> None:
    with pytest.raises(Invalid):
        checked_base(base)


async def test_a_session_that_cannot_be_read_does_not_keep_the_shares_of_others_from_being_sent(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        await tk.share(session_id)
        other = await tk.create(title="Ebb")
        host.secret = "another-secret"
        await tk.share(other.id)
        await said(tk, session_id, "more of it")
        [key] = [key for key, _ in await tk.store.engine.scan(("session",)) if key[-1] == other.id]
        await tk.store.engine.put({key: b'{"id": 5}', keys.state(other.id): await newer(tk, other.id)})
        await tk.remote_shares.send_all([other.id, session_id])
        assert "more of it" in json.dumps(host.bodies("/api/share/abcd1234/sync")[-1])
    assert f"the share of {other.id} is not up to date" in caplog.text


async def newer(tk: Turnkeeper, session_id: str) -> bytes:
    """The state document of a session after one more event."""
    [stored] = await tk.store.engine.get([keys.state(session_id)])
    assert stored is not None
    state = json.loads(stored)
    return json.dumps({**state, "seq": state["seq"] + 1}).encode()


async def test_without_the_setting_no_host_is_asked(tmp_path: Path) -> None:
    async with shared(tmp_path) as (host, tk, session_id):
        (tmp_path / "turnkeeper.json").write_text("{}")
        link = await tk.share(session_id)
        assert link.url.startswith("http://127.0.0.1:4096/share/")
        assert host.requests == []
