"""The directory of one store: makes writes, finishes an unfinished write, and lets readers see complete writes."""

import errno
import os
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from itertools import count
from typing import TypeVar

from msgspec.structs import replace

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import EngineError, StoreDamaged, StoreFull, StoreUnavailable
from turnkeeper.store.engines.files import earlier
from turnkeeper.store.engines.files.disk import Disk, NotAFile, read, size_of
from turnkeeper.store.engines.files.documents import FileDocuments, Listings, Staged
from turnkeeper.store.engines.files.lock import PAUSE_S, Counter, StoreLock
from turnkeeper.store.engines.files.logs import Logs
from turnkeeper.store.engines.files.names import MARKER, OWN_DIRECTORY
from turnkeeper.store.engines.files.record import Write, decoded, encoded, is_cut_short
from turnkeeper.store.engines.files.words import FileWords

FORM = 2
"""The newest layout number of a tree in the seeds' file ``migration``. The engine itself does not use it."""

PATIENCE_S = 0.05
"""Seconds that a reader waits for a write to be placed before it takes the lock."""

ATTEMPTS_MAX = 100
"""Reads without the lock before a reader takes the lock."""

ASIDE_NAME_MAX = 60
"""Characters, of which each may take four bytes of a file name."""

T = TypeVar("T")


class Tree:
    """The tree of one store on disk."""

    def __init__(self, directory: str, disk: Disk | None = None) -> None:
        self.directory, self.disk = directory, disk or Disk()
        self.own = f"{directory}/{OWN_DIRECTORY}"
        self.aside, self._marker = f"{self.own}/aside", f"{directory}/{MARKER}"
        self._journal, self._staging = f"{self.own}/journal", f"{self.own}/staging"
        self.documents = FileDocuments(directory, self._staging, self.disk)
        self.logs = Logs(directory, self.own, self.disk, self._set_aside)
        self.words = FileWords(f"{self.own}/words", self.disk)
        self._lock = StoreLock(f"{self.own}/lock/writers.lock")
        self._counter = Counter(f"{self.own}/version", self.disk)
        self._listed = -1, Listings(directory)

    def open(self) -> None:
        """Create the store if it does not exist, and finish a write that a kill or a power cut left unfinished."""
        for folder in (f"{self.own}/lock", self._staging, self.logs.indexes, self.logs.directory):
            self.disk.make_directory(folder)
        with self._lock.held():
            if size_of(self._journal) is None:
                self.disk.write(self._journal, b"")
                self.disk.sync([self._journal, self.own, self.directory, os.path.dirname(self.directory)])
            self._settle()
            earlier.take_over(self.own, self.logs, self.disk)
            for left in os.listdir(self._staging):
                self.disk.unlink(f"{self._staging}/{left}")

    def form(self) -> int | None:
        """The layout number in the file ``migration``; None without the file."""
        marker = read(self._marker)
        number = re.match(rb"\s*(\d+)", marker or b"")
        return None if marker is None else int(number[1]) if number else 0

    def set_form(self, number: int) -> None:
        """Write the layout number to the file ``migration``."""
        with self._lock.held():
            self._replace(self._marker, b"%d" % number)

    def version(self) -> int:
        """A number that grows with each write."""
        return self._counter.load() // 2

    def read(self, question: Callable[[Listings], T]) -> T:
        """The result of a read function during which no write was placed."""
        for _ in range(ATTEMPTS_MAX):
            number = self._settled()
            try:
                answer = question(self._listings(number))
            except Exception:  # Files that change while they are read may raise anything.
                if self._counter.load() == number:
                    raise
            else:
                if self._counter.load() == number:
                    return answer
        with self._lock.held():
            self._settle()
            return question(self.listings())

    def listings(self) -> Listings:
        """The current directory listings. Only for the holder of the lock."""
        return self._listings(self._counter.load())

    def write(self, decide: Callable[[], Write], done: "Future[None]") -> None:
        """Make the write that ``decide`` returns under the lock. ``done`` is resolved once the write is durable.

        If ``decide`` raises, nothing is written and ``done`` gets the exception.
        """
        if not done.set_running_or_notify_cancel():
            return
        try:
            with self._lock.held():
                self._settle()
                write = decide()
                is_placed = self._commit(write)
                done.set_result(None)
                if is_placed:
                    with suppress(OSError):  # The record stays, and the next holder of the lock finishes the write.
                        self._finish([write])
        except Exception as error:  # The waiting caller must get an answer in any case.
            done.set_exception(unavailable(error) if isinstance(error, OSError) else error)

    def _commit(self, write: Write) -> bool:
        """Make a write durable; returns whether it is in place too. If it raises, nothing is written."""
        staged = self.documents.stage(write.documents)
        crash_point("files.staged")
        try:
            self.disk.write(self._journal, encoded(self.version(), write))
            crash_point("files.intent-written")
            self.disk.sync([self._journal])
            crash_point("files.intent-synced")
            self._counter.begin()
        except OSError:
            # If this fails too, the write may be made later. A refused caller reads the log again.
            with suppress(OSError):
                self.disk.truncate(self._journal, 0)
                self.disk.sync([self._journal])
            raise
        try:
            self._place(write, staged)
        except (OSError, EngineError):
            return False  # It is durable: the next reader or writer places it again.
        return True

    def _place(self, write: Write, staged: list[Staged]) -> None:
        """Change the files that readers read."""
        crash_point("files.place-begun")
        for log in write.removed_logs:
            self.logs.remove(log)
        if write.log is not None and (write.entries or write.fence is not None):
            self.logs.place(write.log, write.after, write.entries, write.fence)
            crash_point("files.log-placed")
        self.documents.place(staged)
        self.words.add(write.removed_texts, write.texts)
        self._counter.end()
        crash_point("files.placed")

    def _finish(self, writes: Iterable[Write]) -> None:
        """Sync the files of writes, then empty the journal. Raises OSError."""
        targets = {self.words.file, self.logs.directory, self.logs.indexes, self.own, self._counter.file}
        for write in writes:
            targets.update(file for place, _ in write.documents for file in self.documents.files(place))
            targets.update(self.logs.files(write.log) if write.log is not None else ())
        try:
            self.disk.sync(targets)
        except OSError:
            # Data that was not synced may be lost although a later sync succeeds, so the write is placed again.
            self._counter.begin()
            raise
        crash_point("files.synced")
        if self.words.is_due():
            self._replace(self.words.file, self.words.rewritten())
        self.disk.truncate(self._journal, 0)
        crash_point("files.emptied")

    def _settle(self) -> None:
        """Make the write in the journal again. A damaged journal is set aside, and no file is changed."""
        data, is_placing = read(self._journal) or b"", bool(self._counter.load() % 2)
        if not data:
            if is_placing:
                self._counter.end()
            return
        writes, end = decoded(data)
        placed, was_placing = earlier.placed(self.own)
        # The record of a write that was being placed was complete once, so an incomplete one is damage. Making only the
        # writes before a damaged record would replace newer documents by older ones.
        is_damaged = is_placing or was_placing or not is_cut_short(data, end)
        if placed > end or (end < len(data) and is_damaged):
            self._give_up(data)
            return
        for number, write in enumerate(writes):
            is_log_gone = any(write.log in later.removed_logs for later in writes[number + 1 :])
            staged = self.documents.stage(write.documents)
            self._counter.begin()
            try:
                self._place(replace(write, log=None) if is_log_gone else write, staged)
            except StoreUnavailable:  # A log has other lines in place of the entries.
                self._give_up(data)
                return
        self._finish(writes)

    def _give_up(self, data: bytes) -> None:
        """Set the journal aside, where ``inspect`` reports it, and leave the files unchanged."""
        self._set_aside("journal", data)
        self.disk.truncate(self._journal, 0)
        self._counter.end()

    def _set_aside(self, name: str, data: bytes) -> None:
        """Write bytes to a new file in the directory ``aside``."""
        self.disk.make_directory(self.aside)
        held = os.listdir(self.aside)
        number = next(number for number in count(1) if not any(one.startswith(f"{number}.") for one in held))
        file = f"{self.aside}/{number}.{name[:ASIDE_NAME_MAX]}"
        self.disk.write(file, data)
        self.disk.sync([file, self.aside, self.own])

    def _replace(self, target: str, body: bytes) -> None:
        temporary = f"{self._staging}/{os.path.basename(target)}"
        self.disk.write(temporary, body)
        self.disk.sync([temporary])
        self.disk.rename(temporary, target)
        self.disk.sync([os.path.dirname(target)])

    def _settled(self) -> int:
        """The counter, once every file is in place. The write of a dead writer is finished first."""
        deadline = time.monotonic() + PATIENCE_S
        while (number := self._counter.load()) % 2:
            if time.monotonic() < deadline:
                time.sleep(PAUSE_S)
            else:
                with self._lock.held():
                    self._settle()
        return number

    def _listings(self, number: int) -> Listings:
        """The listings at this value of the counter, cached until the next write."""
        listed, listings = self._listed
        if listed != number:
            listings = Listings(self.directory)
            self._listed = number, listings
        return listings


def unavailable(error: OSError) -> StoreUnavailable:
    """The exception for a failure of the disk."""
    said = StoreUnavailable(f"the disk failed: {error}")
    if isinstance(error, NotAFile) or error.errno == errno.EIO:
        said = StoreDamaged(str(said))
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        said = StoreFull(f"the disk is full; make room and try again ({error})")
    elif error.errno == errno.EFBIG:
        said = StoreFull(f"a file of the store may not become larger; raise `ulimit -f` and try again ({error})")
    said.__cause__ = error
    return said
