"""Creation of links: their address, and the automatic links of new sessions."""

from pathlib import Path

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session, Share
from turnkeeper.server.request import AnyRequest


async def shared_by_itself(call: AnyRequest, made: Session) -> Session:
    """A new session, with its link if the settings share every root session."""
    try:
        settings = await call.turnkeeper.share_settings(Path(made.directory))
    except Invalid:  # The first prompt reports invalid settings. They share nothing.
        return made
    return await shared(call, made.id) if settings.mode == "auto" and made.parent_id is None else made


async def shared(call: AnyRequest, session_id: str) -> Session:
    """Share a session. Only the address in this result has the secret of the link."""
    link = await call.turnkeeper.share(session_id, base=base(call))
    return (await call.turnkeeper.get(session_id)).but(share=Share(url=link.url))


def base(call: AnyRequest) -> str:
    """The address under which the client has reached this server."""
    return f"http://{call.headers.get('host') or call.service.options.hostname}"
