"""The keys of documents: the seeds' tree, the state of each session, and the indexes.

Secondary indexes are keys too, written with their documents, so that lists and pages are range scans.
"""

from functools import lru_cache
from hashlib import sha1

from turnkeeper.core.titles import base_of_fork, number_of_fork
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.store.engine import InvalidKey, Key, path

SHOWN_CHARS_MAX = 80
"""Characters of an invalid id in an error message."""


def checked(given: str) -> str:
    """An id of a caller that is a valid key segment. Raises Invalid."""
    try:
        return path((given,))
    except InvalidKey as error:
        shown = repr(given)[:SHOWN_CHARS_MAX]
        raise Invalid(f"{shown} is not an id; an id is text that is not empty and holds no '/' and no NUL") from error


def under(kind: str, name: str) -> Key:
    """Prefix of the documents of one kind of a session or message. Raises Invalid for an invalid id."""
    return (kind, checked(name))


def session(project_id: str, session_id: str) -> Key:
    """The session."""
    return ("session", project_id, session_id)


def state(session_id: str) -> Key:
    """The state document: seq and hash of the log, and fields of the view without another document."""
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
    """Index key of a message by its seq; the document is the message's id."""
    return ("order", session_id, f"{seq:012d}")


def todo(session_id: str) -> Key:
    """The task list."""
    return ("todo", checked(session_id))


def diff(session_id: str) -> Key:
    """The file changes of a session."""
    return ("session_diff", checked(session_id))


def share(session_id: str) -> Key:
    """The public link."""
    return ("share", session_id)


def hosted(session_id: str) -> Key:
    """What is stored of the public link."""
    return ("hosted", checked(session_id))


def epoch(session_id: str) -> Key:
    """The Context Epoch."""
    return ("epoch", session_id)


def restore(session_id: str) -> Key:
    """The files of a revert."""
    return ("restore", session_id)


def asks(session_id: str) -> Key:
    """The requests to the user that are open."""
    return ("ask", checked(session_id))


def inbox(session_id: str, message_id: str) -> Key:
    """An admitted prompt."""
    return ("inbox", session_id, message_id)


def receipt(message_id: str) -> Key:
    """The admission of a prompt, by message id in any session, to detect a repeated prompt."""
    return ("receipt", message_id)


def project(project_id: str) -> Key:
    """A project."""
    return ("project", project_id)


def blob(name: str) -> Key:
    """A long string, under its hash."""
    return ("blob", name)


def blob_user(name: str, session_id: str) -> Key:
    """Index key: a session refers to a blob."""
    return ("blobuser", name, session_id)


def blob_used(session_id: str, name: str) -> Key:
    """Index key: the blobs of a session, which its removal reads."""
    return ("blobused", session_id, name)


def busy(session_id: str) -> Key:
    """Index key: a session is running. Recovery finds the sessions of dead processes by it."""
    return ("busy", session_id)


def heartbeat(runtime: str) -> Key:
    """The key of the newest heartbeat of a runtime that runs sessions."""
    return ("heartbeat", runtime)


def stop_request(session_id: str) -> Key:
    """The key of a request to the owner of a session to stop it."""
    return ("stop", session_id)


def wake(session_id: str, token: str) -> Key:
    """The key of one request to the workers to run a session."""
    return ("wake", session_id, token)


def ledger(session_id: str, seq: int) -> Key:
    """One row of the ledger, by the seq of its event."""
    return ("ledger", session_id, f"{seq:012d}")


def text(session_id: str, *place: str) -> Key:
    """Key of a text in the search index: the title, or a part of a message."""
    return ("text", session_id, *place)


LISTED, UNLISTED = "listed", "unlisted"
"""The two lists of a scope: root sessions that are not archived, and all other sessions."""


def recent(scope: Key, which: str) -> Key:
    """Prefix of a list in the order of activity."""
    return ("recent", *scope, which)


ADOPTED: Key = ("meta", "adopted")
ADOPTED_MARK = b"{}"
"""The document under ADOPTED: logs were made for the sessions of an older tree."""

STORE: Key = ("store", "-")
"""The scope of all sessions."""


def in_project(project_id: str) -> Key:
    """The scope of a project's sessions."""
    return ("project", checked(project_id))


@lru_cache(maxsize=1024)
def in_directory(directory: str) -> Key:
    """The scope of a directory's sessions: the hash of the path, which has slashes."""
    return ("directory", sha1(directory.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest())


def below(parent_id: str) -> Key:
    """The scope of a session's children."""
    return ("parent", checked(parent_id))


def stamp(milliseconds: int | float) -> str:
    """A time as a key segment, padded so that keys are in the order of time."""
    return f"{max(0, int(milliseconds)):015d}"


def activity(owner: Session) -> list[Key]:
    """The keys of a session in the lists, one for each scope."""
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
    """Prefix of the fork numbers in use for a title."""
    return ("fork", project_id, sha1(base.encode("utf-8", "replace"), usedforsecurity=False).hexdigest())


def places(owner: Session) -> list[Key]:
    """All index keys of a session."""
    found = activity(owner)
    if number := number_of_fork(owner.title):
        found.append((*forks(owner.project_id, base_of_fork(owner.title)), f"{number:015d}", owner.id))
    return found


ONE_EACH = ("state", "todo", "session_diff", "share", "epoch", "busy", "ask", "restore", "hosted")
"""Kinds with at most one document for each session, under its id."""

MANY_EACH = ("message", "order", "inbox", "blobused", "ledger")
"""Kinds with any number of documents for each session, below its id."""


OWN = (*ONE_EACH, *MANY_EACH, "text")
"""Kinds of all documents of a session, except its parts, its blobs and its list keys."""
