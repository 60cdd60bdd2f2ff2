"""Snapshot objects: a snapshot with all its files, and the difference of two, as values."""

from hashlib import sha256

from turnkeeper.model.session import Summary
from turnkeeper.model.value import Value
from turnkeeper.workspace.shadow_repository import ShadowRepository


class SnapshotTime(Value):
    """The time of a snapshot, in milliseconds."""

    created: int


class Snapshot(Value):
    """A snapshot of a project's files. Its id is the hash of their tree; ``files`` reads them when they are wanted."""

    id: str
    session_id: str
    message_id: str
    time: SnapshotTime


class SnapshotFile(Value):
    """A file of a snapshot."""

    path: str
    content: str | None = None
    """The text of the file; None for a file that is not UTF-8 text."""
    hash: str
    """The SHA-256 of the content."""


async def create(shadow: ShadowRepository, *, session_id: str, message_id: str, now: int) -> Snapshot | None:
    """Take a snapshot of the files now; None if that is not possible."""
    tree = await shadow.capture(session_id)
    if tree is None:
        return None
    return Snapshot(id=tree, session_id=session_id, message_id=message_id, time=SnapshotTime(created=now))


async def files(shadow: ShadowRepository, snapshot: Snapshot) -> tuple[SnapshotFile, ...]:
    """The files of a snapshot, in the order of their names; those whose names are not UTF-8 are left out."""
    found = await shadow.files(snapshot.id)
    contents = await shadow.read([entry.blob for entry in found.values()])
    return tuple(
        SnapshotFile(path=name, content=_text(contents[entry.blob]), hash=sha256(contents[entry.blob]).hexdigest())
        for name, entry in sorted(found.items())
        if name.isascii() or name.encode("utf-8", "replace").decode("utf-8") == name
    )


async def diff(shadow: ShadowRepository, before: Snapshot, after: Snapshot) -> Summary:
    """The differences of two snapshots: the counts of changed lines and files, and the diffs."""
    found = await shadow.diff(before.id, after.id)
    return Summary(
        additions=sum(one.additions for one in found),
        deletions=sum(one.deletions for one in found),
        files=len(found),
        diffs=found,
    )


def _text(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None
