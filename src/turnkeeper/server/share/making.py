"""Make links: where they lead, and those that new sessions get by themselves."""

from pathlib import Path

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session, Share
from turnkeeper.server.request import AnyRequest


async def shared_by_itself(call: AnyRequest, made: Session) -> Session:
    """A new session; with its link, if the settings say that each root session is shared."""
    try:
        settings = await call.turnkeeper.share_settings(Path(made.directory))
    except Invalid:  # Wrong settings are told with the first prompt. They share nothing.
        return made
    return await shared(call, made.id) if settings.mode == "auto" and made.parent_id is None else made


async def shared(call: AnyRequest, session_id: str) -> Session:
    """Share a session. Its address has the secret of the link, which is told here and nowhere else."""
    link = await call.turnkeeper.share(session_id, base=base(call))
    return (await call.turnkeeper.get(session_id)).but(share=Share(url=link.url))


def base(call: AnyRequest) -> str:
    """The address under which the client has reached this server."""
    return f"http://{call.headers.get('host') or call.service.options.hostname}"
