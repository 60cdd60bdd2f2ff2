"""opencode's SQLite database as a source. Neither the database nor the files next to it are changed.

SQLite creates or changes the files ``-wal`` and ``-shm`` when it opens a database in WAL mode. So a database that a
process writes is copied with its write-ahead log, and the copy is opened. Any other is opened as immutable, which takes
no lock and creates no file.
"""

import heapq
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import apsw

from turnkeeper.interop.opencode_row import (
    JSON_COLUMNS,
    arrival,
    message_info,
    part_body,
    project_info,
    session_info,
)
from turnkeeper.interop.opencode_v2 import Translation
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, Unreadable, parse_optional
from turnkeeper.interop.report import Finding
from turnkeeper.interop.shapes import age, created
from turnkeeper.model.refusal import Conflict, Invalid

COPIES_MAX = 20
"""How often a database is copied again because a process wrote to it during the copy."""

_NEIGHBOURS = ("-wal", "-journal")


class Moved(Exception):
    """Another process wrote to the database while it was read in place."""


class OpencodeDatabase:
    """A database file. Use ``open_database``."""

    def __init__(self, path: Path, *, is_copied: bool) -> None:
        self.name = str(path)
        self._path = path.resolve()
        self._folder = TemporaryDirectory(prefix="turnkeeper-") if is_copied else None
        self._print = _footprint(self._path)
        try:
            self._connection = self._open()
            self._columns = {
                table: tuple(str(row[1]) for row in self._connection.execute(f'PRAGMA table_info("{table}")'))
                for table in self._tables()
            }
        except BaseException:
            self._clean()
            raise
        self._worktrees: dict[str, str] = {}

    def names(self) -> Sequence[str]:
        """The ids of the sessions, by time of creation. Raises Invalid, or Moved."""
        with self._refusing_damage():
            return [str(row["id"]) for row in self._rows("session", order=("time_created", "id"), only=("id",))]

    def projects(self) -> Iterable[RawObject]:
        """The projects of the sessions. Raises Invalid, or Moved."""
        with self._refusing_damage():
            found = [project_info(row) for row in self._rows("project")]
        self._worktrees = {project["id"]: project["worktree"] for project in found}
        return found

    def skipped(self) -> Iterable[Finding]:
        """Messages whose session does not exist. Raises Invalid, or Moved."""
        for table in ("message", "session_message"):
            if "session_id" in self._columns.get(table, ()):
                lost = f"SELECT id FROM {table} WHERE session_id NOT IN (SELECT id FROM session)"
                with self._refusing_damage():
                    for (message_id,) in self._connection.execute(lost):
                        yield Finding(reason="its session is not there", place=table, message_id=str(message_id))

    def read(self, name: str) -> Iterable[RawSession]:
        """A session with its history. Raises Unreadable, or Moved."""
        try:
            session = self._session(name)
        except (apsw.Error, UnicodeDecodeError) as error:
            self.check()
            raise Unreadable(f"cannot be read: {error}") from error
        self.check()
        return [session]

    @contextmanager
    def _refusing_damage(self) -> Iterator[None]:
        """Raise Invalid for a database that cannot be read, or Moved if that is because a process wrote to it."""
        try:
            yield
        except (apsw.Error, UnicodeDecodeError) as error:
            self.check()
            raise Invalid(f"{self.name} cannot be read: {error}") from error

    def check(self) -> None:
        """Raise Moved if a database that is read in place has changed since it was opened."""
        if self._folder is None and _footprint(self._path) != self._print:
            raise Moved

    def close(self) -> None:
        """Close the database and delete its copy."""
        self._connection.close()
        self._clean()

    def _clean(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()

    def _open(self) -> apsw.Connection:
        path, query = self._path, "?immutable=1"
        if self._folder is not None:
            path, query = _copied(self._path, Path(self._folder.name)), ""
        flags = apsw.SQLITE_OPEN_URI | (apsw.SQLITE_OPEN_READWRITE if self._folder else apsw.SQLITE_OPEN_READONLY)
        return apsw.Connection(f"file:{quote(str(path))}{query}", flags=flags)

    def _tables(self) -> list[str]:
        try:
            found = list(self._connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"))
        except apsw.Error as error:
            raise Invalid(f"{self.name} is not an SQLite database that can be read: {error}") from error
        tables = [str(name) for (name,) in found]
        if "session" not in tables:
            raise Invalid(f"{self.name} is not a database of opencode: it has no table 'session'")
        return tables

    def _rows(
        self, table: str, owner: str | None = None, *, order: Sequence[str] = (), only: Sequence[str] = ()
    ) -> list[RawObject]:
        """The rows of a table, of all sessions or of one, with the columns that exist; none without the table."""
        key = "id" if table == "session" else "session_id"
        columns = self._columns.get(table, ())
        if not columns or (owner is not None and key not in columns):
            return []
        wanted = only or columns
        names = ", ".join(f'CAST("{name}" AS BLOB)' if name in JSON_COLUMNS else f'"{name}"' for name in wanted)
        condition = f'WHERE "{key}" = ?' if owner is not None else ""
        ordered = ", ".join(name for name in order if name in columns) or "rowid"
        query = f'SELECT {names} FROM "{table}" {condition} ORDER BY {ordered}'
        found = self._connection.execute(query, () if owner is None else (owner,))
        return [dict(zip(wanted, map(_text, wanted, row), strict=True)) for row in found]

    def _session(self, name: str) -> RawSession:
        [row] = self._rows("session", name)
        session = RawSession(session_info(row), [], place=f"session {name}")
        for share in self._rows("session_share", name):
            secret = {key: share[key] for key in ("id", "secret", "url") if isinstance(share.get(key), str)}
            session.info["share"] = {**session.info.get("share", {}), **secret}
        session.todos = self._rows("todo", name, order=("position",)) if "todo" in self._columns else None
        session.diffs = self._diffs(name)
        first, second = self._messages(name, session), self._second(name, session)
        session.messages.extend(heapq.merge(first, second, key=lambda message: created(message.info)))
        session.skipped.extend(
            Finding(
                reason="a prompt that opencode has not promoted yet", session_id=name, message_id=str(pending["id"])
            )
            for pending in self._rows("session_input", name)
            if pending.get("promoted_seq") is None
        )
        return session

    def _messages(self, name: str, session: RawSession) -> list[RawMessage]:
        """The messages of the first generation, by time."""
        parts: dict[str, list[RawObject]] = {}
        for part in self._readable("part", name, session, part_body):
            parts.setdefault(part["messageID"], []).append(part)
        found = []
        for info in self._readable("message", name, session, message_info):
            own = parts.pop(info["id"], [])
            found.append(RawMessage(info, [*sorted(own, key=partial(arrival, near=created(info)))]))
        for message_id, lost in parts.items():
            where = {"session_id": name, "message_id": message_id}
            session.skipped.extend(
                Finding(reason="its message is not there", part_id=one["id"], **where) for one in lost
            )
        return sorted(found, key=lambda message: age(message.info))

    def _second(self, name: str, session: RawSession) -> list[RawMessage]:
        """The messages of the second generation, by sequence number."""
        rows = list(self._readable("session_message", name, session, _second_info, order=("seq",)))
        directory = str(session.info.get("directory") or "/")
        agents = [row["agent"] for row in rows if isinstance(row.get("agent"), str)]
        translation = Translation(
            directory,
            self._worktrees.get(str(session.info.get("projectID")), directory),
            agent=agents[0] if agents else session.info.get("agent") or "build",
        )
        found: list[RawMessage] = []
        for row in rows:
            made = list(translation.of(row))
            found.extend(made)
            if not made:
                reason = f"a message of the unknown type {row.get('type')!r}"
                session.skipped.append(Finding(reason=reason, session_id=name, message_id=row["id"]))
        return found

    def _readable(
        self,
        table: str,
        name: str,
        session: RawSession,
        read: Callable[[RawObject], RawObject],
        order: Sequence[str] = (),
    ) -> Iterator[RawObject]:
        """The rows of a session as JSON. Rows that cannot be read are added to ``unreadable``."""
        for row in self._rows(table, name, order=order):
            try:
                yield read(row)
            except Unreadable as error:
                place = f"{table} {row.get('id')}"
                session.unreadable.append(Finding(reason=str(error), place=place, session_id=name))

    def _diffs(self, name: str) -> object:
        """The changed files of the session, which opencode keeps in a file next to the database."""
        return parse_optional(self._path.parent / "storage" / "session_diff" / f"{name}.json")


def open_database(path: Path, *, is_written: bool = False) -> OpencodeDatabase:
    """Open a database for reading, as a copy if another process writes it. Raises Invalid if it is not opencode's."""
    if not path.is_file():
        raise Invalid(f"{path} is not a file")
    has_log = any(_neighbour(path.resolve(), end).exists() for end in _NEIGHBOURS)
    return OpencodeDatabase(path, is_copied=is_written or has_log)


def _neighbour(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _footprint(path: Path) -> tuple[object, ...]:
    """A value that changes with every write to the database file and every restart of its write-ahead log."""
    database = path.stat()
    log = _neighbour(path, "-wal")
    try:
        with log.open("rb") as file:
            # The header has random numbers that change when the log restarts.
            head = file.read(32)
    except FileNotFoundError:
        head = b""
    return database.st_mtime_ns, database.st_size, database.st_ino, head


def _copied(path: Path, folder: Path) -> Path:
    """Copy the database consistently. Only the log may grow meanwhile: SQLite ignores an incomplete end of it."""
    target = folder / "opencode.db"
    for _ in range(COPIES_MAX):
        before = _footprint(path)
        for end in ("", *_NEIGHBOURS):
            _neighbour(target, end).unlink(missing_ok=True)
            try:
                shutil.copyfile(_neighbour(path, end), _neighbour(target, end))
            except FileNotFoundError:
                if not end:
                    raise
        if _footprint(path) == before:
            return target
    raise Conflict(f"{path} is being written without pause; stop opencode and try again")


def _text(name: str, value: object) -> object:
    """The value of a column: bytes are decoded as text, except in JSON columns, which are selected as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) and name not in JSON_COLUMNS else value


def _second_info(row: RawObject) -> RawObject:
    return {**message_info(row), "type": row.get("type")}
