"""Event streams: of a directory, of all directories, of the second generation, and of one session."""

from pathlib import Path

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.asgi import Application
from turnkeeper.server.errors import Malformed
from turnkeeper.server.request import HttpRequest
from turnkeeper.server.route import route
from turnkeeper.server.service import Service
from turnkeeper.server.streams.channel import StreamFilter, StreamFormat
from turnkeeper.server.streams.hub import Hub
from turnkeeper.server.streams.stream import Stream, Tail
from turnkeeper.server.v2.replay import tail
from turnkeeper.text.number import number_in
from turnkeeper.workspace import files


class StreamQuery(Value):
    """``ids=true`` adds an ``id:`` line to each event. A client that reconnects sends the last id it received, in
    ``after`` or in the header ``Last-Event-ID``, and receives the events since.
    """

    ids: bool = False
    after: str | None = None


class TailQuery(Value):
    """The number of the last event that the client has; ``ids=true`` adds the numbers as ``id:`` lines."""

    after: str | None = None
    ids: bool = False


def hub(service: Service) -> Hub:
    """The hub of a server: ``service.part(hub)``."""
    return Hub(service.turnkeeper, str(service.directory))


def _stream(call: HttpRequest[StreamQuery, None], format: StreamFormat, directory: str | None) -> Application:
    ours = call.service.part(hub)
    since = call.query.after or call.headers.get("last-event-id")
    wants_ids = format != "second" and (call.query.ids or since is not None)
    filter = StreamFilter(format, directory, ours.id_prefix if wants_ids else None)
    return Stream(ours, filter, since=since if wants_ids else None)


async def local(call: HttpRequest[StreamQuery, None]) -> Application:
    """Stream the events of a directory."""
    # Not ``call.place()``: it runs git, and a client that prompts meanwhile would miss the first events.
    return _stream(call, "local", str(files.real(Path(call.directory))))


async def all_directories(call: HttpRequest[StreamQuery, None]) -> Application:
    """Stream the events of all directories."""
    return _stream(call, "global", None)


async def second(call: HttpRequest[StreamQuery, None]) -> Application:
    """Stream the events of all directories, in the shapes of the second generation."""
    return _stream(call, "second", None)


async def session(call: HttpRequest[TailQuery, None]) -> Application:
    """Stream the durable events of a session after an event number, then each new one."""
    given = call.query.after or call.headers.get("last-event-id") or "0"
    if (after := number_in(given)) is None:
        raise Malformed(f"after is the number of an event, not {given!r:.80}", "Query")
    await call.turnkeeper.get(call.session_id)
    wants_ids = call.query.ids or "last-event-id" in call.headers
    return Tail(call.service.part(hub), lambda: tail(call.turnkeeper.store, call.session_id, after, ids=wants_ids))


ROUTES = (
    route("GET", "/event", "event.subscribe", local, media="text/event-stream"),
    route("GET", "/global/event", "global.event", all_directories, media="text/event-stream"),
    route("GET", "/api/event", "v2.event.subscribe", second, media="text/event-stream"),
    route("GET", "/api/session/{sessionID}/event", "v2.session.events", session, NotFound, media="text/event-stream"),
)
