"""A disk for SQLite that counts its calls and fails when told to: an apsw VFS over the real one."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

import apsw


class FaultyDisk(apsw.VFS):
    """Passes every call on, except those that were asked to fail."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.calls: Counter[str] = Counter()
        """How often each kind of call was made: ``write``, ``sync``, ``truncate``, ``lock``."""
        self.faults = 0
        """How many calls failed on purpose."""
        self._lock = threading.Lock()
        self._kinds: tuple[str, ...] = ()
        self._first, self._last = 0, -1
        self._error: type[apsw.Error] = apsw.IOError
        super().__init__(name, "")

    def fail(self, kinds: tuple[str, ...], first: int, count: int, error: type[apsw.Error]) -> None:
        """Of the calls of these kinds made from now on, fail ``count`` in a row, beginning with number ``first``."""
        with self._lock:
            self._kinds, self._first, self._last, self._error = kinds, first, first + count - 1, error

    def heal(self) -> None:
        """Fail no more."""
        self.fail((), 0, 0, apsw.IOError)

    def note(self, kind: str, file: str) -> None:
        """Count a call and fail it if it is its turn."""
        with self._lock:
            self.calls[kind] += 1
            if file.endswith("-wal"):
                self.calls[f"wal {kind}"] += 1
            if kind not in self._kinds:
                return
            self._first, self._last = self._first - 1, self._last - 1
            if self._first <= 0 <= self._last:
                self.faults += 1
                raise self._error(f"{kind} of {file} fails on purpose")

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802
        return _FaultyFile(self, name, flags)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, disk: FaultyDisk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("", name, flags)

    def excepthook(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """SQLite ignores some failures, for instance while it closes; that is meant, and nothing is printed."""
        return True

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.note("write", self._name)
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:  # noqa: N802
        self._disk.note("sync", self._name)
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        self._disk.note("truncate", self._name)
        super().xTruncate(size)

    def xLock(self, level: int) -> None:  # noqa: N802
        self._disk.note("lock", self._name)
        super().xLock(level)


@contextmanager
def faulty_disk(name: str) -> Iterator[FaultyDisk]:
    """A disk known to SQLite under this name for a while."""
    disk = FaultyDisk(name)
    try:
        yield disk
    finally:
        disk.unregister()
