"""Search with words around them: what a hit in titles and messages is, for the command line, MCP and the web page."""

from turnkeeper.core.recall import snippet, words_of
from turnkeeper.core.search_text import searchable
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import Value
from turnkeeper.store.damaged import DamagedDocument, DamagedNames
from turnkeeper.store.queries import SearchHit
from turnkeeper.store.store import Store


class Found(Value):
    """A search hit with its words. Without a message it is the title of a session.

    ``kind`` is title, text, reasoning, subtask, or the name of a tool.
    """

    session_id: str
    slug: str
    title: str
    directory: str
    message_id: str | None = None
    part_id: str | None = None
    seq: int | None = None
    role: str
    kind: str
    snippet: str


async def search(
    store: Store, query: str, *, session_id: str | None = None, limit: int = 50, damaged: DamagedNames
) -> list[Found]:
    """The messages and titles that contain all of these words, newest first.

    What cannot be read is left out, and ``damaged`` gets its name. Raises Invalid if the query has no word.
    """
    words = words_of(query)
    if session_id is not None:
        await store.queries.state(session_id)
    found: list[Found] = []
    for hit in await store.queries.search(query, session_id=session_id, limit=limit):
        try:
            found.append(await _found(store, hit, words))
        except NotFound:  # Removed since it was found.
            continue
        except DamagedDocument as error:
            damaged.append(error.name)
    return found


async def _found(store: Store, hit: SearchHit, words: tuple[str, ...]) -> Found:
    session = await store.queries.session(hit.session_id)
    here = Found(
        session_id=session.id,
        slug=session.slug,
        title=session.title,
        directory=session.directory,
        role="title",
        kind="title",
        snippet=session.title,
    )
    if hit.message_id is None or hit.part_id is None:
        return here
    info = await store.queries.info(hit.session_id, hit.message_id)
    part = await store.queries.part(hit.message_id, hit.part_id)
    return here.but(
        message_id=info.id,
        part_id=part.id,
        seq=info.seq,
        role=str(type(info).__struct_config__.tag),
        kind=part.tool if isinstance(part, ToolPart) else str(type(part).__struct_config__.tag),
        snippet=snippet(searchable(part) or "", words),
    )
