"""Call: one request as a handler sees it: decoded, with the directory it is about and the service it came to."""

from collections.abc import Mapping
from typing import Generic, TypeAlias, TypeVar
from urllib.parse import unquote

import msgspec

from turnkeeper.api import Turnkeeper
from turnkeeper.server.asgi import Scope
from turnkeeper.server.errors import checked_directory
from turnkeeper.server.service import Service
from turnkeeper.workspace.project import ProjectPlace, identify

Q = TypeVar("Q")
B = TypeVar("B")


class HttpRequest(msgspec.Struct, Generic[Q, B], frozen=True):
    """One request. ``query`` and ``body`` are of the types that the route names."""

    service: Service
    scope: Scope
    headers: Mapping[str, str]
    """By name, in lower case; of one that came twice, the last."""
    words: Mapping[str, str]
    """The query as it came; of a key that came twice, the last."""
    params: Mapping[str, str]
    """What stands in the path: ``{"sessionID": "ses_..."}``."""
    query: Q
    body: B

    @property
    def turnkeeper(self) -> Turnkeeper:
        """The open store."""
        return self.service.turnkeeper

    @property
    def session_id(self) -> str:
        """The session that the path names."""
        return self.params["sessionID"]

    @property
    def directory(self) -> str:
        """The directory that the request names, else the one the server was started in. Not resolved.

        Raises Malformed for what no directory can be called.
        """
        header = self.headers.get("x-opencode-directory")
        named = self.words.get("location[directory]" if self.is_second else "directory")
        return checked_directory(named or (unquote(header) if header else str(self.service.directory)), "Query")

    @property
    def is_second(self) -> bool:
        """Whether it speaks the second generation of the API, which has other error spellings."""
        path: str = self.scope["path"]
        return path.startswith("/api/")

    async def place(self) -> ProjectPlace:
        """The place the request is about: its session's own directory first, then what it names."""
        if "sessionID" in self.params:
            return await identify((await self.turnkeeper.get(self.session_id)).directory)
        return await identify(self.directory)


PlainRequest: TypeAlias = HttpRequest[None, None]
"""A request with neither query nor body."""
