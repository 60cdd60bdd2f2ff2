"""Connections to a SQLite store's file: how they are opened, how long they wait, how their errors read."""

import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import apsw

from turnkeeper.store.engine import StoreDamaged, StoreFull, StoreUnavailable
from turnkeeper.store.engines import sqlite_wal, sqlite_words
from turnkeeper.store.engines.sqlite_schema import MIGRATIONS, ForeignStore, migrate, schema

BUSY_TIMEOUT_S = 10.0
"""How long one call waits for another process before it gives up."""
BUSY_PAUSE_S = 0.001
"""Short, because a group is: SQLite's own pauses grow to 100 ms, and a neighbour would always be first."""
PAGE_BYTES = 2048
"""A commit writes the pages it touches, whole, and touches many for a few bytes each: half the usual size writes a
third less, and reads as fast."""
CACHE_KIB = 16_384
WAL_KEPT_BYTES = 64 * 1024 * 1024

_ADVICE: tuple[tuple[type[apsw.Error], str], ...] = (
    (apsw.FullError, "the disk is full; make room and try again"),
    (apsw.BusyError, "another process holds it locked; try again, or end that process"),
    (apsw.LockedError, "another process holds it locked; try again, or end that process"),
    (apsw.ReadOnlyError, "it may not be written to; check the permissions of the file and its directory"),
    (apsw.PermissionsError, "it may not be opened; check the permissions of the file and its directory"),
    (apsw.CantOpenError, "it cannot be opened; check that its directory exists and may be written to"),
    (apsw.NotADBError, "it is not a SQLite database; name another place for the store"),
    (apsw.CorruptError, "it is damaged; run `turnkeeper doctor` and restore a copy"),
    (apsw.IOError, "the disk reported an error; check it and try again"),
)

_KINDS: tuple[tuple[type[apsw.Error], type[StoreUnavailable]], ...] = (
    (apsw.FullError, StoreFull),
    (apsw.NotADBError, StoreDamaged),
    (apsw.CorruptError, StoreDamaged),
)


class StoreFile:
    """Where the store lies and how it is opened."""

    def __init__(self, path: Path, *, busy_timeout_s: float, vfs: str | None, crash: Callable[[str], None]) -> None:
        self.path, self.crash = path, crash
        self._busy_timeout_s, self._vfs = busy_timeout_s, vfs
        self._read_only: Callable[[Path, str | None], apsw.Connection] | None = None
        self.has_leftovers = False
        """Whether texts of removed sessions were in the search index when the store was opened."""

    def create(self) -> None:
        """Make the file if it is not there, for its owner only, and bring it to the newest schema."""
        try:
            _make_directories(self.path.parent)
            with suppress(FileExistsError):
                # SQLite would let everyone read it; its companions (-wal, -shm) take this file's mode.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = self._open()
            try:
                schema(connection)  # Before anything is set: another program's database is left as it is.
                sqlite_wal.keep_lost(connection, self.path)
                self._configure(connection)
                migrate(connection, self.crash)
                self.has_leftovers = sqlite_words.leftovers(connection) > 0
            finally:
                self.disconnect(connection)
        except (apsw.CantOpenError, apsw.ReadOnlyError) as error:
            if not self._is_readable():
                raise self.unavailable(error) from error
        except (apsw.Error, ForeignStore, OSError) as error:
            raise self.unavailable(error) from error

    def _is_readable(self) -> bool:
        """Find a way to read a store that cannot be written, such as one on a read-only medium."""
        for way in _READ_ONLY:
            self._read_only = way
            try:
                connection = self._open()
                try:
                    # An older schema is one that this program cannot read.
                    if schema(connection) == len(MIGRATIONS):
                        return True
                finally:
                    self.disconnect(connection)
            except (apsw.Error, ForeignStore):
                continue
        self._read_only = None
        return False

    def connect(self, *, patient: bool = True) -> apsw.Connection:
        """A connection whose commits are on disk when they return. One that is not ``patient`` waits for no lock."""
        connection = self._open()
        try:
            self._configure(connection)
        except BaseException:
            self.disconnect(connection)
            raise
        if not patient:
            connection.set_busy_handler(None)
        return connection

    def patience(self) -> "Patience":
        """How a connection waits for a lock that another one holds."""
        return Patience(self._busy_timeout_s)

    def disconnect(self, connection: apsw.Connection) -> None:
        """Let a connection go. What it leaves unfinished is undone; what was committed is on disk already."""
        # The last one to go folds the write-ahead log into the file. If the disk refuses, the next one to open does.
        with suppress(apsw.Error):
            connection.close(force=True)

    def _open(self) -> apsw.Connection:
        if self._read_only is None:
            connection = apsw.Connection(str(self.path), vfs=self._vfs)
        else:
            connection = self._read_only(self.path, self._vfs)
        connection.set_busy_handler(self.patience().wait)
        return connection

    def _configure(self, connection: apsw.Connection) -> None:
        connection.pragma("cache_size", -CACHE_KIB)
        if self._read_only is not None:
            return
        connection.pragma("page_size", PAGE_BYTES)  # Of a new file; one that is there keeps its own.
        self._begin_wal(connection)
        connection.pragma("synchronous", "full")
        connection.pragma("journal_size_limit", WAL_KEPT_BYTES)

    def _begin_wal(self, connection: apsw.Connection) -> None:
        """Write ahead. Of two that turn a new file to it in one moment SQLite refuses one without any patience."""
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                connection.pragma("journal_mode", "wal")
                return
            except apsw.BusyError:
                if time.monotonic() >= deadline:
                    raise
            time.sleep(BUSY_PAUSE_S)

    def unavailable(self, error: Exception) -> StoreUnavailable:
        """What went wrong, in words that say what to do."""
        advice = next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")
        said = f"{advice} ({error})" if advice else str(error)
        kind = next((kind for known, kind in _KINDS if isinstance(error, known)), StoreUnavailable)
        refusal = kind(f"the store {str(self.path)!r}: {said}")
        refusal.__cause__ = error
        return refusal

    def bytes_on_disk(self) -> int:
        """The size of the file and its companions."""
        names = [self.path, *(self.path.with_name(self.path.name + ending) for ending in ("-wal", "-shm"))]
        return sum(name.stat().st_size for name in names if name.exists())


def _beside_writers(path: Path, vfs: str | None) -> apsw.Connection:
    """Read a store that another user may be writing: the index of its write-ahead log is there."""
    return apsw.Connection(_uri(path), flags=_READ_FLAGS, vfs=vfs)


def _with_own_index(path: Path, vfs: str | None) -> apsw.Connection:
    """Read a store with a write-ahead log that nobody writes: no file is locked, and the index is in memory."""
    connection = apsw.Connection(_uri(path), flags=_READ_FLAGS, vfs=vfs or "unix-none")
    connection.pragma("locking_mode", "exclusive")
    return connection


def _immutable(path: Path, vfs: str | None) -> apsw.Connection:
    """Read a store that consists of its file alone."""
    wal = sqlite_wal.companion(path)
    if wal.exists() and wal.stat().st_size:
        raise apsw.CantOpenError("the write-ahead log would be ignored")
    return apsw.Connection(_uri(path) + "&immutable=1", flags=_READ_FLAGS, vfs=vfs)


_READ_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_READ_ONLY = (_beside_writers, _with_own_index, _immutable)
"""How a store that cannot be written is read; the first way that works is used."""


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}?mode=ro"


def _make_directories(directory: Path) -> None:
    """Make what is missing, and have each new name on disk: a power cut must not take the store's directory."""
    if directory.is_dir():
        return
    _make_directories(directory.parent)
    directory.mkdir(exist_ok=True, mode=0o700)
    handle = os.open(directory.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Patience:
    """Waits for a lock in short pauses, up to a bound."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._deadline = 0.0
        self.is_at_end = False
        """While this is so, nothing is waited for."""

    def wait(self, tries: int) -> bool:
        """A pause before the next try; False if there is to be none."""
        if self.is_at_end:
            return False
        if tries == 0:
            self._deadline = time.monotonic() + self._timeout_s
        time.sleep(BUSY_PAUSE_S)
        return time.monotonic() < self._deadline
