"""Peer: the process at the other end of a connection. Models' commands may not answer their own requests."""

from typing import TYPE_CHECKING

from anyio import to_thread

from turnkeeper.workspace.guarded import OF_MODELS

if TYPE_CHECKING:
    from turnkeeper.workspace.socket_owner import Address, Owner


class Peer:
    """The client of one connection. Nothing is looked up unless a command of a model runs, or just ran."""

    def __init__(self, client: "Address", server: "Address") -> None:
        self._client, self._server = client, server
        self._owner: Owner = "unknown"

    async def owner(self) -> "Owner":
        """The kind of process at the other end of the connection. Cached: a connection stays with its process."""
        if self._owner == "unknown":
            guards = OF_MODELS.guards()
            if guards is None:
                self._owner = "other"
            else:
                from turnkeeper.workspace.socket_owner import owner

                self._owner = await to_thread.run_sync(owner, self._client, self._server, guards)
        return self._owner
