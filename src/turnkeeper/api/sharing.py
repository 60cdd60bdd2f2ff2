"""Sharing: links to sessions, which show them redacted and read-only."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.api.running import Running
from turnkeeper.core.arguments import checked
from turnkeeper.core.sharing import EXPIRES_S, EXPIRES_S_MAX, LOCAL
from turnkeeper.model.refusal import Forbidden, Invalid
from turnkeeper.model.session import Session

if TYPE_CHECKING:
    from turnkeeper.core.sharing import ShareSettings
    from turnkeeper.interop.shared_session import SharedSession
    from turnkeeper.model.share import ShareLink
    from turnkeeper.model.value import JsonObject


@checked
class Sharing(Running):
    """The methods about links to sessions. Imports are inside of them, because most programs share nothing."""

    async def share(
        self,
        session_id: str,
        *,
        include: Sequence[str] | None = None,
        expires_s: float | None = EXPIRES_S,
        base: str | None = None,
    ) -> "ShareLink":
        """Give a session a link, which ends an earlier one: ``(await tk.share(session.id)).url``.

        ``include`` is what it shows; ``expires_s`` is how long it lasts, None: until ``unshare``. ``base`` is the
        address of the server that shows it: by default that of ``server_address``, or else the usual one of ``serve``.
        Secrets are masked in what it shows; the report says which kinds.
        Raises Forbidden if the settings forbid it.
        """
        from turnkeeper.interop import redacting
        from turnkeeper.sessions import share

        chosen = share.checked_include(include)
        if expires_s is not None and not 0 < expires_s <= EXPIRES_S_MAX:
            raise Invalid(f"expires_s is above 0 and at most {EXPIRES_S_MAX:,} seconds, or None for no end")
        session = await self.get(session_id)
        settings = await self.share_settings(Path(session.directory))
        if settings.mode == "disabled":
            raise Forbidden("the settings say that no session is shared (`turnkeeper config explain share`)")
        mask = await redacting.redactor(self.store, session_id, self._environ)
        report = await redacting.masked(self.store, session_id, mask)
        if session.share is not None and settings.remote is not None:
            await self.unshare(session_id)  # A host may have only one share of a session.
        remote = await self.remote_shares.create(settings.remote, session_id) if settings.remote is not None else None
        link = await share.share(
            self.store,
            session_id,
            base=settings.url or base or await self.server_address() or LOCAL,
            include=chosen,
            expires_ms=int(expires_s * 1000) if expires_s is not None else None,
            masks=mask.used,
            report=report,
            remote=remote,
        )
        if remote is not None:
            await self.remote_shares.send(session_id)
        return link

    async def server_address(self) -> str | None:
        """The address of a server of this store that runs on this machine; None if there is none."""
        from turnkeeper.sessions.cluster import server_here

        return await server_here(self.store)

    async def unshare(self, session_id: str, *, forget: bool = False) -> Session:
        """Withdraw the link to a session. Nothing of it stays.

        A link on another host is removed there first; ``forget`` leaves it there if the host is gone.
        """
        from turnkeeper.sessions import share

        if not forget:
            await self._end_remote(session_id)
        return await share.unshare(self.store, session_id)

    async def open_share(self, share_id: str, secret: str) -> "SharedSession":
        """What a link shows. Raises NotFound if there is no such link, it has expired, or the secret is wrong."""
        from turnkeeper.interop.shared_session import SharedSession
        from turnkeeper.sessions import share

        _, hosted = await share.opened(self.store, share_id, secret)
        return SharedSession(self.store, self._environ, hosted)

    async def shared(self, share_id: str, secret: str) -> "Sequence[JsonObject]":
        """What a link shows, as a list of ``{"type", "data"}``: the session, messages, parts. Raises NotFound."""
        view = await (await self.open_share(share_id, secret)).view()
        return [{"type": one.type, "data": one.data} for one in view.items]

    async def share_settings(self, directory: Path) -> "ShareSettings":
        """Whether sessions of a directory may be shared, and where. Raises Invalid if the settings are wrong."""
        from turnkeeper.core.sharing import share_settings
        from turnkeeper.workspace.project import identify

        return share_settings(await self._config(await identify(directory)), self._environ)
