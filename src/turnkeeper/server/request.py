"""HttpRequest: a decoded request, with the directory it names and the service that handles it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec

from turnkeeper.api import Turnkeeper
from turnkeeper.server.asgi import Scope
from turnkeeper.server.errors import checked_directory
from turnkeeper.server.service import Service
from turnkeeper.workspace.project import ProjectPlace, identify

if TYPE_CHECKING:
    from turnkeeper.run.directories import Directories

Q = TypeVar("Q")
B = TypeVar("B")


class HttpRequest(msgspec.Struct, Generic[Q, B], frozen=True):
    """A decoded request. ``query`` and ``body`` have the types that the route names."""

    service: Service
    scope: Scope
    headers: Mapping[str, str]
    """By lower-case name; of a repeated header, the last value."""
    raw_query: Mapping[str, str]
    """The query before decoding; of a repeated key, the last value."""
    params: Mapping[str, str]
    """Values of the path's variables: ``{"sessionID": "ses_..."}``."""
    query: Q
    body: B

    @property
    def turnkeeper(self) -> Turnkeeper:
        """The open store."""
        return self.service.turnkeeper

    @property
    def directories(self) -> "Directories":
        """The directories of the runtime: their settings, agents, tools and MCP servers."""
        return self.turnkeeper.runtime.directories

    @property
    def session_id(self) -> str:
        """The session in the path."""
        return self.params["sessionID"]

    @property
    def directory(self) -> str:
        """The directory that the request names, by default the directory the server was started in. Not resolved.

        Raises Malformed for a name that no directory can have.
        """
        header = self.headers.get("x-opencode-directory")
        named = self.raw_query.get("location[directory]" if self.is_second else "directory")
        return checked_directory(named or (unquote(header) if header else str(self.service.directory)), "Query")

    @property
    def is_second(self) -> bool:
        """Whether this is a request to the second generation of the API."""
        path: str = self.scope["path"]
        return path.startswith("/api/")

    async def place(self) -> ProjectPlace:
        """The project and directory of the session in the path, or else of the directory that the request names."""
        if "sessionID" in self.params:
            return await identify((await self.turnkeeper.get(self.session_id)).directory)
        return await identify(self.directory)


AnyRequest: TypeAlias = HttpRequest[Any, Any]
"""A request of any route, for functions that read neither its query nor its body."""

PlainRequest: TypeAlias = HttpRequest[None, None]
"""A request with neither query nor body."""
