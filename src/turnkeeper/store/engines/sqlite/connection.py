"""The file of a SQLite store: opens connections, sets their busy timeout, and translates their errors."""

import itertools
import os
import resource
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import apsw

from turnkeeper.store.engine import StoreDamaged, StoreFull, StoreUnavailable
from turnkeeper.store.engines.sqlite import wal, words
from turnkeeper.store.engines.sqlite.schema import SCHEMA, ForeignStore, Layout, migrate, schema_of, small_kinds

BUSY_TIMEOUT_S = 10.0
"""Seconds that a call waits for the lock of another process."""
BUSY_PAUSE_S = 0.001
"""Short, like a transaction. SQLite's own pauses grow to 100 ms, so that other processes would always be first."""
PAGE_BYTES = 2048
"""A commit changes a few bytes in many pages. Half the usual page size writes a third less, and reads as fast."""
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
    """The path of the store and how it is opened."""

    def __init__(
        self, path: Path, layout: Layout, *, busy_timeout_s: float, vfs: str | None, crash: Callable[[str], None]
    ) -> None:
        self.path, self.crash = path, crash
        self._layout, self._busy_timeout_s, self._vfs = layout, busy_timeout_s, vfs
        self._read_only: Callable[[Path, str | None], apsw.Connection] | None = None
        self._is_full = False
        """Whether the disk was full when the store was opened."""
        self.small_kinds: frozenset[str] = frozenset()
        """Kinds of documents in the table ``small_document``, as the store records them."""
        self.has_leftovers = False
        """Whether the word index had texts of removed sessions when the store was opened."""

    def create(self) -> None:
        """Create the file, for its owner only, if it does not exist, and bring it to the newest schema."""
        try:
            _make_directories(self.path.parent)
            with suppress(FileExistsError):
                # SQLite would let everyone read it; its companions (-wal, -shm) take this file's mode.
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            connection = self._open()
            try:
                schema_of(connection)  # Before any pragma is set: a foreign database must not be changed.
                self._retry_busy(lambda: wal.keep_lost(connection, self.path))
                self._configure(connection)
                migrate(connection, self._layout, self.crash)
                self.small_kinds = small_kinds(connection)
                self.has_leftovers = words.leftovers(connection) > 0
            finally:
                self.disconnect(connection)
        except (apsw.CantOpenError, apsw.ReadOnlyError, apsw.FullError, apsw.IOError) as error:
            self._is_full = self._is_out_of_room(error)
            if (isinstance(error, apsw.IOError) and not self._is_full) or not self._is_readable():
                raise self.unavailable(error) from error
        except (apsw.Error, ForeignStore, OSError) as error:
            raise self.unavailable(error) from error

    def _is_out_of_room(self, error: apsw.Error) -> bool:
        """Whether the disk is full. SQLite reports a failed write to the index of its log as an I/O error."""
        if isinstance(error, apsw.IOError):
            with suppress(OSError):
                room = os.statvfs(self.path.parent)
                return room.f_bavail == 0
        return isinstance(error, apsw.FullError)

    def _is_readable(self) -> bool:
        """Find a way to read a store that cannot be written, such as one on a read-only medium or a full disk."""
        for way in _READ_ONLY:
            self._read_only = way
            try:
                connection = self._open()
                try:
                    if schema_of(connection) == SCHEMA:  # This program cannot read an older one.
                        self.small_kinds = small_kinds(connection)
                        return True
                finally:
                    self.disconnect(connection)
            except (apsw.Error, ForeignStore):
                continue
        self._read_only = None
        return False

    def connect(self, *, waits: bool = True) -> apsw.Connection:
        """A connection whose commits are on disk when they return. ``waits``: whether it waits for locks."""
        connection = self._open()
        try:
            self._configure(connection)
        except BaseException:
            self.disconnect(connection)
            raise
        if not waits:
            connection.set_busy_handler(None)
        return connection

    def disconnect(self, connection: apsw.Connection) -> None:
        """Close a connection and roll back its transaction."""
        # The last one to close copies the write-ahead log into the file. If that fails, the next one to open does.
        with suppress(apsw.Error):
            connection.close(force=True)

    def _open(self) -> apsw.Connection:
        if self._read_only is None:
            connection = apsw.Connection(str(self.path), vfs=self._vfs)
        else:
            connection = self._read_only(self.path, self._vfs)
        connection.set_busy_handler(BusyWait(self._busy_timeout_s).wait)
        return connection

    def _configure(self, connection: apsw.Connection) -> None:
        connection.pragma("cache_size", -CACHE_KIB)
        if self._read_only is not None:
            return
        connection.pragma("page_size", PAGE_BYTES)  # Of a new file; an existing one keeps its own.
        self._retry_busy(lambda: connection.pragma("journal_mode", "wal"))
        connection.pragma("synchronous", "full")
        connection.pragma("fullfsync", True)  # On macOS a plain fsync leaves data in the cache of the drive.
        connection.pragma("journal_size_limit", WAL_KEPT_BYTES)

    def _retry_busy(self, action: Callable[[], object]) -> None:
        """For what SQLite refuses without a call of the busy handler: a switch to a write-ahead log, and a look at
        one while another process copies or recovers it.
        """
        BusyWait(self._busy_timeout_s).retry(action)

    def unavailable(self, error: Exception) -> StoreUnavailable:
        """The exception for an error of SQLite, with advice."""
        if self._is_full and isinstance(error, apsw.ReadOnlyError | apsw.FullError | apsw.IOError):
            said = "the disk was full when it was opened, so it can only be read; make room and start again"
            return StoreFull(f"the store {str(self.path)!r}: {said} ({error})")
        advice = next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")
        if isinstance(error, apsw.IOError) and resource.getrlimit(resource.RLIMIT_FSIZE)[0] != resource.RLIM_INFINITY:
            advice += "; if a file may not become larger, raise `ulimit -f`"  # SQLite does not say which error it was.
        said = f"{advice} ({error})" if advice else str(error)
        kind = next((kind for known, kind in _KINDS if isinstance(error, known)), StoreUnavailable)
        refusal = kind(f"the store {str(self.path)!r}: {said}")
        refusal.__cause__ = error
        return refusal

    def closed(self) -> StoreUnavailable:
        """The exception for a call to a closed store."""
        return StoreUnavailable(f"the store {str(self.path)!r} was closed; open it again")

    def bytes_on_disk(self) -> int:
        """The size of the file with its -wal and -shm files."""
        names = [wal.companion(self.path, ending) for ending in ("", "-wal", "-shm")]
        return sum(name.stat().st_size for name in names if name.exists())


def _beside_writers(path: Path, vfs: str | None) -> apsw.Connection:
    """Open a store that another user may be writing: the index of its write-ahead log exists."""
    return apsw.Connection(_uri(path), flags=_READ_FLAGS, vfs=vfs)


def _with_own_index(path: Path, vfs: str | None) -> apsw.Connection:
    """Open a store with a write-ahead log that no process writes: without locks, with the index in memory."""
    connection = apsw.Connection(_uri(path), flags=_READ_FLAGS, vfs=vfs or "unix-none")
    connection.pragma("locking_mode", "exclusive")
    return connection


def _immutable(path: Path, vfs: str | None) -> apsw.Connection:
    """Open a store without a write-ahead log."""
    log = wal.companion(path)
    if log.exists() and log.stat().st_size:
        raise apsw.CantOpenError("the write-ahead log would be ignored")
    return apsw.Connection(_uri(path) + "&immutable=1", flags=_READ_FLAGS, vfs=vfs)


_READ_FLAGS = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
_READ_ONLY = (_beside_writers, _with_own_index, _immutable)
"""Ways to open a store that cannot be written; the first that works is used."""


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}?mode=ro"


def _make_directories(directory: Path) -> None:
    """Make missing directories, and sync each new name so that it survives a power cut."""
    if directory.is_dir():
        return
    _make_directories(directory.parent)
    directory.mkdir(exist_ok=True, mode=0o700)
    handle = os.open(directory.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class BusyWait:
    """Waits for a lock in short pauses, up to a timeout."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._deadline = 0.0

    def wait(self, tries: int) -> bool:
        """Pause before the next try; False after the timeout."""
        if tries == 0:
            self._deadline = time.monotonic() + self._timeout_s
        time.sleep(BUSY_PAUSE_S)
        return time.monotonic() < self._deadline

    def retry(self, action: Callable[[], object]) -> None:
        """Repeat an action until no lock refuses it; raises apsw.BusyError once the time is over."""
        for tries in itertools.count():
            try:
                action()
                return
            except apsw.BusyError:
                if not self.wait(tries):
                    raise
