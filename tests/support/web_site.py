"""A small web site on loopback: pages by their paths, and who asked for them."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from anyio.abc import SocketStream
from loopback import Request, accepting, head, read_request


@dataclass
class Page:
    """What is answered. A page without content and with a location redirects."""

    content: bytes = b""
    kind: str = "text/html"
    status: str = "200 OK"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Site:
    """Where it is, and what was asked."""

    url: str
    requests: list[Request] = field(default_factory=list)


def redirect(location: str, status: str = "302 Found") -> Page:
    return Page(status=status, headers={"location": location})


@asynccontextmanager
async def site(pages: Mapping[str, Page]) -> AsyncIterator[Site]:
    """A site with these pages; any other path is not found."""
    requests: list[Request] = []

    async def handle(stream: SocketStream) -> None:
        request = await read_request(stream)
        requests.append(request)
        page = pages.get(request.line.split(" ")[1], Page(status="404 Not Found"))
        rows = {"connection": "close", "content-length": str(len(page.content)), **page.headers}
        named = {name.replace("-", "_"): value for name, value in rows.items()}
        begun = head(page.status, page.kind, **named).replace(b"transfer-encoding: chunked\r\n", b"")
        await stream.send(begun + page.content)

    async with accepting(handle) as url:
        yield Site(url.removesuffix("/v1"), requests)
