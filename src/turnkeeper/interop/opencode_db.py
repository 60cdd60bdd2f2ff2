"""opencode's SQLite database as a source. It is only read, and nothing beside it is made or changed.

A database in WAL mode cannot be opened in place without SQLite making or changing its neighbours (``-wal``,
``-shm``). So one that somebody is writing is copied, with its log, and the copy is opened; one at rest is opened in
place as immutable, which takes no lock and makes no file.
"""

import heapq
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, Unreadable, parse_file
from turnkeeper.interop.report import Finding
from turnkeeper.interop.shapes import age, created
from turnkeeper.model.refusal import Conflict, Invalid

COPIES_MAX = 20
"""How often a database is copied again because somebody wrote to it meanwhile."""

_NEIGHBOURS = ("-wal", "-journal")


class Moved(Exception):
    """Somebody wrote to the database while it was read in place."""


class OpencodeDatabase:
    """One database file. Use ``open_database``."""

    def __init__(self, path: Path, *, is_copied: bool) -> None:
        self.name = str(path)
        self._path = path.resolve()
        self._folder = TemporaryDirectory(prefix="turnkeeper-") if is_copied else None
        self._print = _footprint(self._path)
        try:
            self._connection = self._open()
            self._columns = {name: self._columns_of(name) for name in self._tables()}
        except BaseException:
            self._clean()
            raise
        self._worktrees: dict[str, str] = {}

    def names(self) -> Sequence[str]:
        """The ids of the sessions, in the order they were created."""
        return [str(row["id"]) for row in self._rows("session", order=("time_created", "id"), only=("id",))]

    def projects(self) -> Iterable[RawObject]:
        """The projects of the sessions."""
        found = [project_info(row) for row in self._rows("project")]
        self._worktrees = {project["id"]: project["worktree"] for project in found}
        return found

    def skipped(self) -> Iterable[Finding]:
        """Messages whose session is gone."""
        for table in ("message", "session_message"):
            if "session_id" in self._columns.get(table, ()):
                lost = f"SELECT id FROM {table} WHERE session_id NOT IN (SELECT id FROM session)"
                for (message_id,) in self._connection.execute(lost):
                    yield Finding(reason="its session is not there", place=table, message_id=str(message_id))

    def read(self, name: str) -> Iterable[RawSession]:
        """One session with its history. Raises Unreadable, or Moved."""
        try:
            session = self._session(name)
        except (apsw.Error, UnicodeDecodeError) as error:
            self.check()
            raise Unreadable(f"cannot be read: {error}") from error
        self.check()
        return [session]

    def check(self) -> None:
        """Raise Moved if what is read in place is no longer what was opened."""
        if self._folder is None and _footprint(self._path) != self._print:
            raise Moved

    def close(self) -> None:
        """Let go of the database, and of its copy."""
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

    def _columns_of(self, table: str) -> tuple[str, ...]:
        return tuple(str(row[1]) for row in self._connection.execute(f'PRAGMA table_info("{table}")'))

    def _rows(
        self, table: str, owner: str | None = None, *, order: Sequence[str] = (), only: Sequence[str] = ()
    ) -> list[RawObject]:
        """Rows as objects, of all or of one session, whatever columns this version has; none without the table."""
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
        """The messages of the first generation, in the order of their times."""
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
        """The messages of the second generation, in the order of their own sequence."""
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
        """The rows of a session as JSON; a broken one is reported and does not stop the others."""
        for row in self._rows(table, name, order=order):
            try:
                yield read(row)
            except Unreadable as error:
                place = f"{table} {row.get('id')}"
                session.unreadable.append(Finding(reason=str(error), place=place, session_id=name))

    def _diffs(self, name: str) -> object:
        """What the session changed on disk, which opencode keeps in a file beside the database."""
        file = self._path.parent / "storage" / "session_diff" / f"{name}.json"
        try:
            return parse_file(file)
        except (OSError, ValueError, Unreadable):
            return None


def open_database(path: Path) -> OpencodeDatabase:
    """Open a database for reading. Raises Invalid if it is none, or not of opencode."""
    if not path.is_file():
        raise Invalid(f"{path} is not a file")
    return OpencodeDatabase(path, is_copied=any(_neighbour(path.resolve(), end).exists() for end in _NEIGHBOURS))


def open_copy(path: Path) -> OpencodeDatabase:
    """Open a copy of a database, because the original is being written."""
    return OpencodeDatabase(path, is_copied=True)


def _neighbour(path: Path, end: str) -> Path:
    return path.with_name(path.name + end)


def _footprint(path: Path) -> tuple[object, ...]:
    """Changes whenever somebody writes to the database itself or begins a new log beside it."""
    database = path.stat()
    log = _neighbour(path, "-wal")
    try:
        with log.open("rb") as file:
            # The header holds random numbers that change when the log starts again from its beginning.
            head = file.read(32)
    except FileNotFoundError:
        head = b""
    return database.st_mtime_ns, database.st_size, database.st_ino, head


def _copied(path: Path, folder: Path) -> Path:
    """A consistent copy: the log may grow meanwhile, for SQLite drops an unfinished end; nothing else may change."""
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
    """A column that should hold text and holds bytes is read as text; JSON is asked for as bytes and stays so."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) and name not in JSON_COLUMNS else value


def _second_info(row: RawObject) -> RawObject:
    return {**message_info(row), "type": row.get("type")}
