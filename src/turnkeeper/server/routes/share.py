"""Links to sessions: made and withdrawn, and what they show: a page, its data, and a stream of changes."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Final

import msgspec

from turnkeeper.core.sharing import EXPIRES_S, EXPIRES_S_MAX
from turnkeeper.interop.page.document import style
from turnkeeper.interop.shared_session import SharedSession
from turnkeeper.model.redaction import RedactionReport
from turnkeeper.model.refusal import Forbidden, NotFound
from turnkeeper.model.session import Session
from turnkeeper.model.share import ShareItem, ShareLink
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.asgi import Application
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.response import HttpResponse, Pairs, json
from turnkeeper.server.route import route
from turnkeeper.server.routes.event import hub
from turnkeeper.server.share.live import Shares, frames
from turnkeeper.server.share.making import base, shared
from turnkeeper.server.streams.stream import Tail

SECRET: Final = "x-share-secret"
"""The header with the secret of a link. It never stands in an address, which logs and histories keep."""

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types turnkeeper-share"
)
PRIVATE: Final[Pairs] = (
    (b"cache-control", b"no-store"),
    (b"x-robots-tag", b"noindex, nofollow"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class ShareBody(Value):
    """What a link shall show, and how many seconds it lasts; null: until it is withdrawn."""

    include: tuple[ShareItem, ...] | None = None
    expires: Annotated[float, msgspec.Meta(gt=0, le=EXPIRES_S_MAX)] | None = EXPIRES_S


async def share(call: PlainRequest) -> Session:
    """Share a session: a public, read-only link with secrets masked. Only this answer has the secret of the link."""
    return public(await shared(call, call.session_id))


async def unshare(call: PlainRequest) -> Session:
    """Withdraw the link to a session."""
    return public(await call.turnkeeper.unshare(call.session_id))


async def share_chosen(call: HttpRequest[None, ShareBody]) -> ShareLink:
    """Share a session, with a choice of what the link shows and for how long, and a report of what is masked."""
    given = call.body
    return await call.turnkeeper.share(call.session_id, include=given.include, expires_s=given.expires, base=base(call))


async def redactions(call: PlainRequest) -> RedactionReport:
    """What a link to a session would mask: counts by kind and place."""
    return await call.turnkeeper.redactions(call.session_id)


async def page(call: PlainRequest) -> HttpResponse:
    """The page of a link. It is the same for every link: what it shows is loaded by its script."""
    headers = ((b"content-type", b"text/html; charset=utf-8"), (b"content-security-policy", POLICY.encode()), *PRIVATE)
    return HttpResponse(200, _asset("page.html"), headers)


async def script(call: PlainRequest) -> HttpResponse:
    """The script of the page of a link."""
    return HttpResponse(200, _asset("page.js"), ((b"content-type", b"text/javascript; charset=utf-8"), *PRIVATE))


async def style_sheet(call: PlainRequest) -> HttpResponse:
    """The style sheet of the page of a link."""
    return HttpResponse(200, style().encode(), ((b"content-type", b"text/css; charset=utf-8"), *PRIVATE))


async def data(call: PlainRequest) -> HttpResponse:
    """What a link shows, as a list of {"type", "data"}. Its secret is in the header x-share-secret."""
    view = await (await _opened(call)).view()
    return json([{"type": one.type, "data": one.data} for one in view.items], headers=PRIVATE)


async def stream(call: PlainRequest) -> Application:
    """What a link shows, and what changes in it, as a stream for the page."""
    shared, ours = await _opened(call), call.service.part(hub)
    return Tail(ours, lambda: frames(call.turnkeeper.store, shared, ours.settings.sleep), PRIVATE)


async def _opened(call: PlainRequest) -> SharedSession:
    return await call.service.part(Shares).open(call.params["shareID"], call.headers.get(SECRET, ""))


@cache
def _asset(name: str) -> bytes:
    return files("turnkeeper.server.share").joinpath(name).read_bytes()


ROUTES = (
    route("POST", "/session/{sessionID}/share", "session.share", share, NotFound, Forbidden),
    route("DELETE", "/session/{sessionID}/share", "session.unshare", unshare, NotFound),
    route("POST", "/tk/session/{sessionID}/share", "turnkeeper.share", share_chosen, NotFound, Forbidden),
    route("GET", "/tk/session/{sessionID}/redactions", "turnkeeper.redactions", redactions, NotFound),
    route("GET", "/share/page.js", "share.script", script, media="text/javascript"),
    route("GET", "/share/page.css", "share.style", style_sheet, media="text/css"),
    route("GET", "/share/{shareID}", "share.page", page, media="text/html"),
    route("GET", "/share/{shareID}/data", "share.data", data, NotFound, answer=list[JsonObject]),
    route("GET", "/share/{shareID}/stream", "share.stream", stream, NotFound, media="text/event-stream"),
)
