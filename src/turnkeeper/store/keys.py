"""The keys under which documents stand: the seeds' tree, the state of each session, and the indexes.

Secondary indexes are keys too, written with the documents they point at, so a list or a page never scans.
"""

from functools import lru_cache
from hashlib import sha1

from turnkeeper.core.titles import base_of_fork, number_of_fork
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.store.engine import InvalidKey, Key, path

SHOWN_CHARS_MAX = 80
"""How much of a wrong id a refusal shows."""


def checked(given: str) -> str:
    """An id or a project that a caller named, if it can be a segment of a key. Raises Invalid."""
    try:
        return path((given,))
    except InvalidKey as error:
        shown = repr(given)[:SHOWN_CHARS_MAX]
        raise Invalid(f"{shown} is not an id; an id is text that is not empty and holds no '/' and no NUL") from error


def under(kind: str, name: str) -> Key:
    """Prefix of the documents of one kind that a session or a message has. Raises Invalid for what is no id."""
    return (kind, checked(name))


def session(project_id: str, session_id: str) -> Key:
    """The session as the wire writes it."""
    return ("session", project_id, session_id)


def state(session_id: str) -> Key:
    """Where the log stands (seq, hash) and what else a view needs that no other document holds."""
    return ("state", checked(session_id))


def message(session_id: str, message_id: str) -> Key:
    """One message."""
    return ("message", checked(session_id), checked(message_id))


def part(message_id: str, part_id: str) -> Key:
    """One part."""
    return ("part", checked(message_id), checked(part_id))


def extension(message_id: str, part_id: str, offset: int) -> Key:
    """Text added to an open part, below the part itself."""
    return ("part", message_id, part_id, f"{offset:010d}")


def order(session_id: str, seq: int) -> Key:
    """The place of a message in the history; the document is the message's id."""
    return ("order", session_id, f"{seq:012d}")


def todo(session_id: str) -> Key:
    """The task list."""
    return ("todo", checked(session_id))


def diff(session_id: str) -> Key:
    """What the session changed on disk, file by file."""
    return ("session_diff", checked(session_id))


def share(session_id: str) -> Key:
    """The public link."""
    return ("share", session_id)


def epoch(session_id: str) -> Key:
    """The Context Epoch."""
    return ("epoch", session_id)


def asks(session_id: str) -> Key:
    """The requests to the user that are open."""
    return ("ask", checked(session_id))


def inbox(session_id: str, message_id: str) -> Key:
    """An admitted prompt."""
    return ("inbox", session_id, message_id)


def receipt(message_id: str) -> Key:
    """What was admitted under a message id, in whichever session: how the same prompt sent twice is known."""
    return ("receipt", message_id)


def project(project_id: str) -> Key:
    """A project."""
    return ("project", project_id)


def blob(name: str) -> Key:
    """A long string, under its hash."""
    return ("blob", name)


def blob_user(name: str, session_id: str) -> Key:
    """That a session's log refers to a blob."""
    return ("blobuser", name, session_id)


def blob_used(session_id: str, name: str) -> Key:
    """The same the other way round, so that removing a session finds its blobs without a search."""
    return ("blobused", session_id, name)


def busy(session_id: str) -> Key:
    """That a session is being run, so that those left by dead processes are found at once."""
    return ("busy", session_id)


def ledger(session_id: str, seq: int) -> Key:
    """One row of the ledger: what one attempt cost, under the place of its event."""
    return ("ledger", session_id, f"{seq:012d}")


def text(session_id: str, *place: str) -> Key:
    """Where searchable text of a session stands: the title, or a part of a message."""
    return ("text", session_id, *place)


LISTED, UNLISTED = "listed", "unlisted"
"""The two lists of a scope: of roots that are not archived, and of all other sessions."""


def recent(scope: Key, which: str) -> Key:
    """Prefix of a list in the order of activity."""
    return ("recent", *scope, which)


ADOPTED: Key = ("meta", "adopted")
"""That the sessions of an older tree have their logs ..."""

ADOPTED_MARK = b"{}"
"""... and what stands there."""

STORE: Key = ("store", "-")
"""The scope of all sessions."""


def in_project(project_id: str) -> Key:
    """The scope of a project's sessions."""
    return ("project", checked(project_id))


@lru_cache(maxsize=1024)
def in_directory(directory: str) -> Key:
    """The scope of a directory's sessions. A path holds slashes, so its hash stands for it."""
    return (
        "directory",
        sha1(directory.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest(),
    )


def below(parent_id: str) -> Key:
    """The scope of a session's children."""
    return ("parent", checked(parent_id))


def stamp(milliseconds: int | float) -> str:
    """A time as a key segment: padded, so that the order of keys is the order of time."""
    return f"{max(0, int(milliseconds)):015d}"


def activity(owner: Session) -> list[Key]:
    """Every place where a session stands in the lists: in one of each scope."""
    parent_id, time = owner.parent_id, owner.time
    which = LISTED if parent_id is None and time.archived is None else UNLISTED
    place = (stamp(time.updated), owner.id)
    return [one + place for one in _lists(owner.project_id, owner.directory, parent_id, which)]


@lru_cache(maxsize=1024)
def _lists(project_id: str, directory: str, parent_id: str | None, which: str) -> tuple[Key, ...]:
    scopes = [STORE, in_project(project_id), in_directory(directory)]
    if parent_id is not None:
        scopes.append(below(parent_id))
    return tuple(recent(scope, which) for scope in scopes)


def forks(project_id: str, base: str) -> Key:
    """Prefix of the fork numbers in use behind a title."""
    return ("fork", project_id, sha1(base.encode("utf-8", "replace"), usedforsecurity=False).hexdigest())


def places(owner: Session) -> list[Key]:
    """Every place where a session stands in an index."""
    found = activity(owner)
    if number := number_of_fork(owner.title):
        found.append((*forks(owner.project_id, base_of_fork(owner.title)), f"{number:015d}", owner.id))
    return found


ONE_EACH = ("state", "todo", "session_diff", "share", "epoch", "busy", "ask")
"""Kinds of which a session has at most one document, under its id."""

MANY_EACH = ("message", "order", "inbox", "blobused", "ledger")
"""Kinds of which a session has any number, below its id."""


OWN = (*ONE_EACH, *MANY_EACH, "text")
"""Kinds below which a session's id holds all that is its own, but for its parts, its blobs and where it is listed."""
