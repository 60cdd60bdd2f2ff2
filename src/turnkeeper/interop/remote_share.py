"""Share a session on another host by opencode's protocol: create, send what has changed, remove.

Nothing is sent to a host that the settings do not name, and nothing before the link is in the log. What is sent is
redacted. A removed message is told too, as ``{"type": "removed", "key"}``, which hosts that do not know it ignore.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlsplit

import msgspec

from turnkeeper.core.entry import Damaged
from turnkeeper.interop.shared_session import Item, SharedSession
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.share import RemoteShare
from turnkeeper.model.value import UNREADABLE, JsonObject, encode
from turnkeeper.sessions.share import is_expired
from turnkeeper.store.engine import StoreDamaged
from turnkeeper.store.store import Store

if TYPE_CHECKING:
    import httpx2

log = logging.getLogger(__name__)

TIMEOUT_S: Final = 30.0
ATTEMPTS: Final = 3
PAUSE_S: Final = 1.0
ITEMS_MAX: Final = 500
"""Items of one request."""
UNREAD: Final = -1
"""The number of the newest event of a session whose state cannot be read."""
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class Created(msgspec.Struct, frozen=True):
    """The answer of a host: the id and the address of the share, and the secret that allows changes to it."""

    id: str
    url: str
    secret: str

    def __repr__(self) -> str:
        return f"Created(id={self.id!r})"


class ShareHost:
    """A host for shares."""

    def __init__(self, base: str, client: "httpx2.AsyncClient", sleep: Callable[[float], Awaitable[None]]) -> None:
        self._base, self._client, self._sleep = checked_base(base), client, sleep

    async def create(self, session_id: str) -> Created:
        """Make a share without content. Raises Invalid if the host does not answer as it should."""
        answer = await self._send("POST", "/api/share", {"sessionID": session_id})
        try:
            made = msgspec.json.decode(answer, type=Created)
        except msgspec.MsgspecError as error:
            raise Invalid(f"{self._base} did not answer with the id, url and secret of a share") from error
        if not made.id or not made.secret or urlsplit(made.url).scheme not in ("http", "https"):
            raise Invalid(f"{self._base} did not answer with the id, url and secret of a share")
        return made

    async def sync(self, share_id: str, secret: str, items: Sequence[JsonObject]) -> None:
        """Send items; the host replaces those it has under the same ids. Raises Invalid."""
        for start in range(0, len(items), ITEMS_MAX):
            body = {"secret": secret, "data": items[start : start + ITEMS_MAX]}
            await self._send("POST", f"/api/share/{quote(share_id, safe='')}/sync", body)

    async def remove(self, share_id: str, secret: str) -> None:
        """Remove a share with its content; one that is gone already is removed. Raises Invalid."""
        with suppress(NotFound):
            await self._send("DELETE", f"/api/share/{quote(share_id, safe='')}", {"secret": secret})

    async def _send(self, method: str, path: str, body: JsonObject) -> bytes:
        import httpx2

        headers = {"content-type": "application/json"}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                answer = await self._client.request(method, self._base + path, content=encode(body), headers=headers)
            except httpx2.HTTPError as error:
                if attempt == ATTEMPTS:
                    raise Invalid(
                        f"{self._base} cannot be reached ({type(error).__name__}); try again later"
                    ) from error
            else:
                if answer.status_code == 404:
                    raise NotFound(f"{self._base} does not know this share")
                if answer.status_code < 400:
                    return answer.content
                if answer.status_code < 500 or attempt == ATTEMPTS:
                    raise Invalid(f"{self._base} refused {method} {path.rpartition('/')[2]} with {answer.status_code}")
            await self._sleep(PAUSE_S * 2 ** (attempt - 1))
        raise AssertionError("the last attempt returns or raises")


def checked_base(base: str) -> str:
    """The address of a host. Raises Invalid unless it has https, or is on this machine: what is sent is private."""
    parts = urlsplit(base)
    is_near = parts.hostname in LOOPBACK
    if parts.scheme not in ("https", "http") or not parts.hostname or (parts.scheme == "http" and not is_near):
        raise Invalid(f"enterprise.url is an address with https, not {base!r:.120}")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Invalid("enterprise.url has no user, password, query or fragment")
    return base.rstrip("/")


def changes(items: Sequence[Item], sent: Mapping[str, str]) -> tuple[list[JsonObject], dict[str, str]]:
    """The items to send to a host that has the given ones, by key and digest; and those that it has then."""
    now = {one.key: one.digest for one in items}
    told: list[JsonObject] = [
        {"type": one.type, "data": one.data} for one in items if sent.get(one.key) != now[one.key]
    ]
    told += [{"type": "removed", "key": key} for key in sent if key not in now]
    return told, now


class RemoteShares:
    """The sessions of a store that are shared on other hosts, and what these hosts have of them.

    What a host has is kept in memory: after a restart everything is sent once more, which changes nothing there.
    """

    def __init__(
        self,
        store: Store,
        environ: Mapping[str, str],
        sleep: Callable[[float], Awaitable[None]],
        client: "Callable[[], httpx2.AsyncClient] | None" = None,
    ) -> None:
        self._store, self._environ, self._sleep, self._client = store, environ, sleep, client or _client
        self._shared: dict[str, SharedSession] = {}
        self._sent: dict[str, dict[str, str]] = {}
        self._seen: dict[str, int] = {}

    async def create(self, base: str, session_id: str) -> tuple[str, RemoteShare]:
        """Make a share without content: its address, and what proves that it is ours."""
        async with self._client() as client:
            made = await ShareHost(base, client, self._sleep).create(session_id)
        return made.url, RemoteShare(base=checked_base(base), id=made.id, secret=made.secret)

    async def send(self, session_id: str) -> int:
        """Send what has changed in a session since the last time; how many items. Raises Invalid."""
        hosted = await self._store.queries.hosted(session_id)
        if hosted is None or hosted.remote is None or is_expired(hosted, self._store.mint.now()):
            return 0
        key, remote = hosted.secret_hash, hosted.remote
        shared = self._shared.setdefault(key, SharedSession(self._store, self._environ, hosted))
        view = await shared.view()
        told, now = changes(view.items, self._sent.get(key, {}))
        if told:
            async with self._client() as client:
                await ShareHost(remote.base, client, self._sleep).sync(remote.id, remote.secret, told)
        self._sent[key], self._seen[session_id] = now, view.seq
        return len(told)

    async def remove(self, remote: RemoteShare) -> None:
        """Remove a share from its host. Raises Invalid."""
        async with self._client() as client:
            await ShareHost(remote.base, client, self._sleep).remove(remote.id, remote.secret)

    async def send_all(self, session_ids: Sequence[str]) -> None:
        """Send what has changed in these sessions. What could not be sent is sent after the next change."""
        for session_id in session_ids:
            seq = UNREAD
            with suppress(NotFound):  # It was removed meanwhile.
                try:
                    seq = (await self._store.queries.state(session_id)).seq
                    if seq != self._seen.get(session_id):
                        await self.send(session_id)
                except (Invalid, Damaged, StoreDamaged, *UNREADABLE) as error:
                    # A host that is away, or one damaged session, must not keep the others from being sent.
                    if self._seen.get(session_id) != seq:
                        log.warning("the share of %s is not up to date: %s", session_id, error)
                    self._seen[session_id] = seq


def _client() -> "httpx2.AsyncClient":
    import httpx2

    return httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=False)
