"""The web page and its files."""

from turnkeeper.model.refusal import NotFound
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.response import HttpResponse
from turnkeeper.server.route import route
from turnkeeper.server.site import INDEX, Site
from turnkeeper.server.table import REST


async def index(call: PlainRequest) -> HttpResponse:
    """The web page."""
    return call.service.part(Site).response(INDEX, call.headers.get("if-none-match"))


async def session_page(call: PlainRequest) -> HttpResponse:
    """The web page, at the address of a session: `/s/ID`."""
    return await index(call)


async def file(call: PlainRequest) -> HttpResponse:
    """A file of the web page."""
    return call.service.part(Site).response(call.params[REST], call.headers.get("if-none-match"))


_HTML = "text/html"

ROUTES = (
    route("GET", "/", "turnkeeper.page", index, answer=str, media=_HTML),
    route("GET", "/s/*", "turnkeeper.page.session", session_page, answer=str, media=_HTML),
    route("GET", "/web/*", "turnkeeper.page.file", file, NotFound, answer=str, media=_HTML),
)
