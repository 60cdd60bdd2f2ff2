"""Logs in Postgres: statements that read and write the tables ``log`` and ``entry``."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

import msgspec

from turnkeeper.store.engine import check_append
from turnkeeper.store.engines.jobs import Append
from turnkeeper.store.engines.postgres.connection import Connection, Cursor


class LogHead(msgspec.Struct):
    """A log as it is under the lock of a transaction, and as the jobs of the transaction leave it."""

    id: int
    length: int
    fence: int
    last: bytes | None
    """The hash of the newest entry."""
    is_changed: bool = False
    added: list[bytes] = msgspec.field(default_factory=list)

    def take(self, name: str, job: Append) -> None:
        """Add the entries of a job. Raises as Engine.append, and then has changed nothing."""
        is_last = job.last is None or digest(job.last) == self.last
        check_append(name, job.after, job.fence, length=self.length, current=self.fence, is_last=is_last)
        if job.fence is not None and job.fence > self.fence:
            self.fence, self.is_changed = job.fence, True
        if job.entries:
            self.length += len(job.entries)
            self.last, self.is_changed = digest(job.entries[-1]), True
            self.added.extend(job.entries)


def create(connection: Connection, names: Iterable[str]) -> None:
    """Create logs that do not exist yet."""
    connection.execute(
        "INSERT INTO log (name) SELECT unnest(%s::text[]) ON CONFLICT (name) DO NOTHING", (sorted(names),)
    )


def lock(connection: Connection, names: Iterable[str]) -> Cursor:
    """Lock logs against other writers; ``heads`` reads where they end."""
    return connection.execute(
        "SELECT name, id, length, fence, last FROM log WHERE name = ANY (%s::text[]) ORDER BY name FOR UPDATE",
        (sorted(names),),
        binary=True,
    )


def heads(locked: Cursor) -> dict[str, LogHead]:
    """Where the locked logs end. A log that does not exist is left out."""
    return {name: LogHead(*head) for name, *head in locked.fetchall()}


def write(connection: Connection, heads: Iterable[LogHead]) -> None:
    """Write the entries that were added to logs, and where the logs now end."""
    changed = [head for head in heads if head.is_changed]
    if not changed:
        return
    connection.execute(
        "UPDATE log SET length = new.length, fence = new.fence, last = new.last"
        " FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[]) AS new (id, length, fence, last)"
        " WHERE log.id = new.id",
        (
            [head.id for head in changed],
            [head.length for head in changed],
            [head.fence for head in changed],
            [head.last for head in changed],
        ),
    )
    rows = [
        (head.id, seq, body)
        for head in changed
        for seq, body in enumerate(head.added, head.length - len(head.added) + 1)
    ]
    if rows:
        connection.execute(
            "INSERT INTO entry (log, seq, body) SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::bytea[])",
            ([log for log, _, _ in rows], [seq for _, seq, _ in rows], [body for _, _, body in rows]),
        )


def remove(connection: Connection, heads: Mapping[str, LogHead]) -> None:
    """Remove logs with all their entries."""
    ids = [head.id for head in heads.values()]
    connection.execute("DELETE FROM entry WHERE log = ANY (%s::bigint[])", (ids,))
    connection.execute("DELETE FROM log WHERE id = ANY (%s::bigint[])", (ids,))


def read(connection: Connection, name: str, after: int, limit: int | None) -> list[bytes]:
    """The entries of a log after number ``after``, from one snapshot; a lost one between others is empty."""
    rows = connection.execute(
        "SELECT entry.seq, entry.body FROM log JOIN entry ON entry.log = log.id"
        " WHERE log.name = %s AND entry.seq > %s ORDER BY entry.seq LIMIT %s",
        (name, after, limit),
        binary=True,
    )
    found: list[bytes] = []
    for seq, body in rows.fetchall():
        found.extend(b"" for _ in range(after + len(found) + 1, seq))
        found.append(body)
    return found if limit is None else found[:limit]


def length(connection: Connection, name: str) -> int:
    """The number of entries of a log."""
    return _number(connection.execute("SELECT length FROM log WHERE name = %s", (name,)).fetchone())


def fence(connection: Connection, name: str) -> int:
    """The fence that a log was last written with."""
    return _number(connection.execute("SELECT fence FROM log WHERE name = %s", (name,)).fetchone())


def logs(connection: Connection, after: str, limit: int | None) -> list[str]:
    """Names of logs with entries, in order, after the name ``after``."""
    rows = connection.execute(
        "SELECT name FROM log WHERE name > %s AND length > 0 ORDER BY name LIMIT %s", (after, limit)
    )
    return [name for (name,) in rows.fetchall()]


def problems(connection: Connection, limit: int) -> list[str]:
    """Logs whose entries are not those that the log has counted."""
    rows = connection.execute(
        "SELECT log.name, log.length, count(entry.seq), coalesce(max(entry.seq), 0)"
        " FROM log LEFT JOIN entry ON entry.log = log.id GROUP BY log.id"
        " HAVING log.length <> count(entry.seq) OR log.length <> coalesce(max(entry.seq), 0)"
        " ORDER BY log.name LIMIT %s",
        (limit,),
    )
    return [
        f"log {name!r} should have {length} entries; it has {count}, the last of which is number {last}"
        for name, length, count, last in rows.fetchall()
    ]


def digest(body: bytes) -> bytes:
    """The hash by which the newest entry of a log is known."""
    return sha256(body).digest()


def _number(row: Sequence[int] | None) -> int:
    return row[0] if row is not None else 0
