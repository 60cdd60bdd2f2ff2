"""The connection that writes to a SQLite store, and what it knows of what it wrote. Used by one thread at a time."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import apsw

from turnkeeper.store.engines.sqlite_batch import Append, Batch, Head, Removal
from turnkeeper.store.engines.sqlite_file import StoreFile
from turnkeeper.store.engines.sqlite_pack import RUN, pack
from turnkeeper.store.engines.sqlite_words import FRESH_MAX, leftovers, waiting, work_off

CHECKPOINT_PAGES = 2000
CHECKPOINT_TIMES = 3
"""A write-ahead log that is so many times as long is folded into the file without waiting for a rest."""
REST_S = 0.2
"""When nothing has been written for so long, nobody is in the middle of something."""
WORK_S = 1.0
"""Who writes is not disturbed for so long. A turn is shorter; a store that is never at rest is tidied all the same."""
PAUSE_TIMES_AT_REST = 4
"""After a piece of tidying there is none for so many times as long: who reads meanwhile hardly notices."""
PAUSE_TIMES_AT_WORK = 40
"""The same while somebody writes. Without any tidying a store that is never at rest would grow without end."""
PAUSE_TIMES_TO_PACK = 15
"""The same while somebody writes and a log is to be packed: what is packed late has made the file larger before."""
REMOVAL_S = 1.0
"""How long closing a store may go on taking removed texts out of the word index."""
HEADS_MAX = 10_000
"""Logs whose length and fence are remembered from one transaction to the next."""

Job = Append | Removal


class Hand:
    """Writes jobs, and puts in order what they leave, when it is told to."""

    def __init__(
        self,
        file: StoreFile,
        checkpoint_pages: int = CHECKPOINT_PAGES,
        clock: Callable[[], float] = time.monotonic,
        rest_s: float = REST_S,
    ) -> None:
        self._file, self._clock, self._rest_s = file, clock, rest_s
        self._checkpoint_pages = checkpoint_pages
        self._connection: apsw.Connection | None = None
        self._patience = file.patience()
        self._wal_pages = 0
        self._heads: dict[str, Head] = {}
        self._heads_version = 0  # What was committed last, by us or by others, when we looked.
        self._long: dict[str, None] = {}  # Logs of which something is to be packed, in the order they were seen.
        self._fresh = 0  # What waits for the index of words.
        self._has_removed = False
        self._written_at = self._tidied_at = self._tidied_s = 0.0
        self._busy_since: float | None = None  # Since when there was no rest; None if there was one just now.

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection; to make one takes a while."""
        return self._connection is not None

    @property
    def is_untidy(self) -> bool:
        """Whether something is to be put in order."""
        return self._is_overfull(1) or bool(self._long) or self._fresh >= FRESH_MAX

    def _is_overfull(self, times: int) -> bool:
        return self._wal_pages >= self._checkpoint_pages * times

    def write(self, jobs: Sequence[Job]) -> list[Exception | None]:
        """Do the jobs in one transaction that is on disk when this returns; for each, why it was not, if it was not.

        Raises whatever stops all of them; then call ``roll_back``.
        """
        connection, crash = self._connect(), self._file.crash
        connection.execute("BEGIN IMMEDIATE")
        crash("sqlite.begin")
        batch = Batch(connection, self._known_heads(connection))
        answers: list[Exception | None] = [batch.add(job) for job in jobs]
        batch.write()
        crash("sqlite.before-commit")
        connection.execute("COMMIT")
        crash("sqlite.after-commit")
        self._heads_version = connection.data_version()
        self._note_time()
        self._note_untidy(jobs)
        return answers

    def write_at_once(self, job: Job) -> Exception | None:
        """Do one job without waiting for a lock. Raises BusyError if another process holds it."""
        self._patience.is_at_end = True
        try:
            [answer] = self.write([job])
        finally:
            self._patience.is_at_end = False
        return answer

    def until_tidying(self) -> float | None:
        """How many seconds from now there is something to be put in order; None if nothing is."""
        if not self.is_untidy or not self.is_connected:
            return None
        at_rest = max(self._written_at + self._rest_s, self._tidied_at + PAUSE_TIMES_AT_REST * self._tidied_s)
        pause_times = PAUSE_TIMES_TO_PACK if self._long else PAUSE_TIMES_AT_WORK
        at_work = max((self._busy_since or 0.0) + WORK_S, self._tidied_at + pause_times * self._tidied_s)
        return max(0.0, min(at_rest, at_work) - self._clock())

    def tidy(self, *, is_idle: bool) -> None:
        """If ``is_idle`` and it is time, fold the write-ahead log into the file, index words, or pack a log, a little.

        Work left undone is found again later.
        """
        if self._is_overfull(CHECKPOINT_TIMES):
            self._checkpoint()
        if not is_idle or self.until_tidying() != 0 or self._connection is None:
            return
        begun = self._clock()
        if begun >= self._written_at + self._rest_s:
            self._busy_since = None
        try:
            if self._is_overfull(1):
                self._checkpoint()
            else:
                self._tidy_some(self._connection)
        except apsw.Error:
            # Nothing is lost: all of it is there, only not in its shortest form. Later appends find it again.
            self.roll_back()
            self._long, self._fresh = {}, 0
        self._tidied_at = self._clock()
        self._tidied_s = self._tidied_at - begun

    def finish_removals(self) -> None:
        """Before the store is closed, take out of the word index what removed sessions left there.

        A short command would otherwise leave it to a long one. The time is bounded, and another process is not waited
        for; the next command that closes the store goes on.
        """
        if not self._has_removed and not self._file.has_leftovers:
            return
        deadline = self._clock() + REMOVAL_S
        self._patience.is_at_end = True
        try:
            connection = self._connect()
            while leftovers(connection) and self._clock() < deadline:
                with self._tidying(connection):
                    work_off(connection)
        except apsw.Error:
            self.roll_back()
        finally:
            self._patience.is_at_end = False

    def roll_back(self) -> None:
        """Leave no transaction open; a connection that cannot even do that is replaced."""
        self._heads = {}
        if self._connection is None or not self._connection.in_transaction:
            return
        try:
            self._connection.execute("ROLLBACK")
        except apsw.Error:
            self.let_go()

    def let_go(self) -> None:
        """Close the connection; the next job makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._file.disconnect(connection)

    def _note_time(self) -> None:
        now = self._clock()
        if self._busy_since is None or now >= max(self._written_at, self._tidied_at) + self._rest_s:
            self._busy_since = now
        self._written_at = now

    def _note_untidy(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            if isinstance(job, Removal):
                self._fresh += FRESH_MAX  # Its texts are taken out soon.
                self._has_removed = True
                continue
            self._fresh += len(job.texts)
            # A log that was removed in the same group has no head any more.
            if job.log is not None and (head := self._heads.get(job.log)) is not None and head.is_long:
                self._long[job.log] = None

    def _tidy_some(self, connection: apsw.Connection) -> None:
        log = next(iter(self._long), None)
        with self._tidying(connection):
            if log is None:
                self._fresh = work_off(connection)
            elif not self._packed(connection, log):
                del self._long[log]

    @contextmanager
    def _tidying(self, connection: apsw.Connection) -> Iterator[None]:
        """A transaction in which a piece of tidying is done."""
        connection.execute("BEGIN IMMEDIATE")
        self._file.crash("sqlite.begin-tidying")
        yield
        self._file.crash("sqlite.before-tidied")
        connection.execute("COMMIT")
        self._heads_version = connection.data_version()

    def _packed(self, connection: apsw.Connection, log: str) -> bool:
        head = Batch(connection, self._known_heads(connection)).head(log)
        if not head.is_long or not pack(connection, head.id, head.length):
            return False
        head.packed += RUN
        return True

    def _known_heads(self, connection: apsw.Connection) -> dict[str, Head]:
        """What was learned about logs before, unless another process has written since."""
        if connection.data_version() != self._heads_version or len(self._heads) > HEADS_MAX:
            self._heads = {}
        return self._heads

    def _connect(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._file.connect()
            self._connection.set_busy_handler(self._patience.wait)
            # Checkpoints are made after the answers, not inside a commit that somebody waits for.
            self._connection.set_wal_hook(self._note_wal)
            # Who writes little and often goes finds here what others before it left.
            self._fresh = waiting(self._connection)
        return self._connection

    def _note_wal(self, connection: apsw.Connection, schema: str, pages: int) -> int:
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def _checkpoint(self) -> None:
        if self._connection is None:
            return
        self._file.crash("sqlite.before-checkpoint")
        self._wal_pages = 0  # If all goes well. If not, the next transaction says how long it is.
        try:
            self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except apsw.Error:
            # Nothing is lost: the log beside the file holds everything.
            return
        self._file.crash("sqlite.after-checkpoint")
