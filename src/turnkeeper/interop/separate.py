"""A separate session for the additions of a source to a session that was continued here."""

from dataclasses import replace
from hashlib import sha256
from itertools import count

from turnkeeper.core import slug
from turnkeeper.core.fork import Copier
from turnkeeper.interop.imported import KEY, imported_from, program_of
from turnkeeper.interop.normalise import Incoming, IncomingMessage
from turnkeeper.interop.raw import derived_id, derived_session_id
from turnkeeper.model.session import Origin


def separate_session(incoming: Incoming) -> Incoming:
    """The history of the source under new ids, which are derived from those of the source."""
    session = incoming.session
    new = derived_session_id(session.id, "aside")
    copied = [_copy(one, new) for one in incoming.messages]
    names = {one.info.id: other.info.id for one, other in zip(incoming.messages, copied, strict=True)}
    title = f"{session.title} (continued in {program_of(session) or 'its source'})"
    own = session.but(
        id=new,
        slug=slug.slug(sha256(new.encode()).digest()),
        origin=Origin(session_id=session.id),
        title=title,
        metadata={**(session.metadata or {}), KEY: {**imported_from(session), "title": title}},
    )
    gone = frozenset(_name(one, new) for one in incoming.gone)
    return replace(incoming, session=own, messages=[_linked(one, names) for one in copied], gone=gone)


def _name(message_id: str, session_id: str) -> str:
    return derived_id("msg", 0, 0, session_id, message_id)


def _copy(message: IncomingMessage, session_id: str) -> IncomingMessage:
    name, numbers = _name(message.info.id, session_id), count()
    copier = Copier(session_id, lambda: name, lambda: derived_id("prt", 0, next(numbers), name))
    made = copier.copy(message.info, message.parts)
    return message.but(info=made.message, parts=made.parts)


def _linked(message: IncomingMessage, names: dict[str, str]) -> IncomingMessage:
    parent = getattr(message.info, "parent_id", None)
    return message if parent is None else message.but(info=message.info.but(parent_id=names.get(parent, parent)))
