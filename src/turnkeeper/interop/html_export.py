"""Export a session as one page of HTML without scripts, with its secrets masked unless the caller says otherwise."""

from collections.abc import AsyncIterator, Mapping

from anyio import to_thread

from turnkeeper.core.redaction import Redactor
from turnkeeper.interop import export, redacted, redacting
from turnkeeper.interop.page.articles import Article, article
from turnkeeper.interop.page.document import page
from turnkeeper.interop.shown import shown
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.store.damaged import DamagedNames
from turnkeeper.store.store import Store

RAW = "Not redacted: this page holds the session as it is, with every secret that is in it."


async def chunks(
    store: Store, session_id: str, environ: Mapping[str, str] | None, *, damaged: DamagedNames | None = None
) -> AsyncIterator[bytes]:
    """The page of a session in pieces, redacted if an environment is given.

    Raises NotFound and DamagedDocument, as the export in JSON does.
    """
    redactor = await redacting.redactor(store, session_id, environ) if environ is not None else None
    session = await export.verified(store, session_id, damaged)
    info = export.session_json(session)
    info = redacted.session(redactor, info) if redactor is not None else info
    articles: list[Article] = []
    async for number, message in shown(store, session, damaged):
        made = await to_thread.run_sync(_article, redactor, message, number)
        articles += [made] if made is not None else []
    state = await store.queries.state(session_id)
    masked = f"{redactor.report().count:,} places masked" if redactor is not None else "not redacted"
    about = [str(session.slug), f"{len(articles):,} messages", masked]
    footer = [f"Made by Turnkeeper from the log of a session, up to event {state.seq} with the hash {state.head}."]
    warning = RAW if redactor is None else None
    for piece in page(str(info["title"]), about, articles, footer, warning=warning):
        yield piece.encode("utf-8", "replace")


def _article(redactor: Redactor | None, message: MessageWithParts, number: int) -> Article | None:
    json = export.message_json(message)
    if redactor is not None:
        json = redacted.message(redactor, json, f"message {number}")
    return article(json, f"message-{number}")
