"""The writer of a SQLite store: a thread that commits the waiting jobs in one transaction (group commit).

A commit of a hundred jobs waits for the disk as long as a commit of one. So the thread takes all jobs that queued up
while the disk was busy, writes them in one transaction, and answers each after the commit.
"""

import asyncio
import logging
import threading
from collections.abc import Sequence
from queue import Empty, SimpleQueue

import apsw

from turnkeeper.store.engine import EngineError, LogConflict, StoreUnavailable
from turnkeeper.store.engines.jobs import Append, Call, Job, Removal, answer
from turnkeeper.store.engines.sqlite import entries, words
from turnkeeper.store.engines.sqlite.connection import StoreFile
from turnkeeper.store.engines.sqlite.documents import Documents
from turnkeeper.store.engines.sqlite.tidy import Tidying

GROUP_JOBS_MAX = 256
"""Jobs in one transaction; more would delay the answer to the first."""

log = logging.getLogger(__name__)


class WriteConnection:
    """The one connection that writes. Used by the writer's thread only."""

    def __init__(self, file: StoreFile, tidying: Tidying) -> None:
        self._file, self._tidying = file, tidying
        self._documents = Documents(file.small_kinds)
        self._connection: apsw.Connection | None = None

    def write(self, jobs: Sequence[Job]) -> list[EngineError | None]:
        """Write the jobs in one transaction, on disk when this returns. Returns the refusal of each job, or None.

        Any other error is raised and concerns all jobs; then call ``roll_back``.
        """
        connection, crash = self._connect(), self._file.crash
        connection.execute("BEGIN IMMEDIATE")
        crash("sqlite.begin")
        refusals: list[EngineError | None] = []
        for job in jobs:
            try:
                # Each job is checked before it is written, so a refused job writes nothing.
                if isinstance(job, Append):
                    self._append(connection, job)
                else:
                    self._remove(connection, job)
                refusals.append(None)
            except EngineError as refusal:
                refusals.append(refusal)
        crash("sqlite.before-commit")
        connection.execute("COMMIT")
        crash("sqlite.after-commit")
        return refusals

    def _append(self, connection: apsw.Connection, job: Append) -> None:
        if job.log is not None and entries.append(connection, job.log, job.after, job.entries, job.fence, job.last):
            self._tidying.note_long_log(job.log)
        self._documents.write(connection, job.documents)
        if job.texts:
            words.enqueue(connection, job.texts)
            self._tidying.note_words(len(job.texts))

    def _remove(self, connection: apsw.Connection, job: Removal) -> None:
        for name, known in job.logs.items():
            if (actual := entries.LogHead(connection, name).length) > known:
                raise LogConflict(name, known, actual)
        for name in job.logs:
            entries.remove(connection, name)
        self._documents.remove_below(connection, job.paths)
        words.enqueue_removal(connection, job.paths)
        self._tidying.note_words(words.QUEUE_MIN)
        # All are checked before one is removed, so that their order does not matter.
        empty = [key for key, path in job.orphans if self._documents.is_empty(connection, path)]
        self._documents.write(connection, [(key, None) for key in empty])

    def seconds_until_tidying(self) -> float | None:
        """Seconds until the next piece of tidying; None if there is nothing to tidy."""
        return self._tidying.due_in() if self._connection is not None else None

    def tidy(self) -> None:
        """Do one piece of tidying if it is due."""
        if self._connection is not None and self._tidying.due_in() == 0:
            try:
                self._tidying.do_one(self._connection)
            except apsw.Error:
                self._tidying.forget()
                self.roll_back()

    def finish_removals(self) -> None:
        """Before the store is closed, remove texts of removed sessions from the word index.

        Otherwise a short command would leave them there. The time is bounded, and locks are not waited for.
        """
        if self._connection is None and not self._file.has_leftovers:
            return
        try:
            connection = self._connect()
            connection.set_busy_handler(None)
            self._tidying.finish_removals(connection)
        except apsw.Error:
            self.roll_back()

    def roll_back(self) -> None:
        """Leave no transaction open; a connection that cannot roll back is replaced."""
        if self._connection is None or not self._connection.in_transaction:
            return
        try:
            self._connection.execute("ROLLBACK")
        except apsw.Error:
            self.close()

    def close(self) -> None:
        """Close the connection; the next write makes another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._file.disconnect(connection)

    def _connect(self) -> apsw.Connection:
        if self._connection is None:
            self._connection = self._file.connect()
            self._tidying.watch(self._connection)
        return self._connection


class Writer:
    """Accepts jobs from any event loop and answers each once it is on disk or refused."""

    def __init__(self, file: StoreFile, tidying: Tidying) -> None:
        self._file = file
        self._connection = WriteConnection(file, tidying)
        self._queue: SimpleQueue[Call | None] = SimpleQueue()  # Each job has a waiting caller, which bounds the queue.
        self._lock = threading.Lock()  # No job is queued behind the None that ends the thread.
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="sqlite-writer", daemon=True)
        self._thread.start()

    async def submit(self, job: Job) -> None:
        """Write a job; returns once it is durable. A cancelled job is done completely or not at all."""
        done = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._is_closed:
                raise self._file.closed()
            self._queue.put((job, done))
        await done

    def close(self) -> None:
        """Refuse new jobs; accepted jobs are finished."""
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                self._queue.put(None)

    def join(self) -> None:
        """Block until the accepted jobs are done and the connection is closed."""
        self._thread.join()

    # What follows runs on the writer's thread.

    def _run(self) -> None:
        group: list[Call] = []
        is_open = True
        try:
            while is_open:
                group, is_open = self._next_group()
                if group:
                    answer(group, self._commit([job for job, _ in group]))
                group = []
                self._connection.tidy()
            self._connection.finish_removals()
        except BaseException as error:
            # The thread ends here, so every waiting or later caller must get an error.
            log.exception("the writer of %s ended", self._file.path)
            self._connection.roll_back()  # First, so that the store is not left locked.
            self._refuse_all(group, error)
        finally:
            self._connection.close()

    def _next_group(self) -> tuple[list[Call], bool]:
        """Wait for a job or until tidying is due, and take all waiting jobs; False after the last job."""
        group: list[Call] = []
        try:
            call = self._queue.get(timeout=self._connection.seconds_until_tidying())
            while call is not None:
                if not call[1].cancelled():  # A job whose caller was cancelled is not written.
                    group.append(call)
                if len(group) == GROUP_JOBS_MAX:
                    break
                call = self._queue.get_nowait()
        except Empty:
            return group, True
        return group, call is not None

    def _commit(self, jobs: list[Job]) -> list[Exception | None]:
        """Write the jobs in one transaction; if that fails, each in its own, so that only the faulty one fails."""
        try:
            return [*self._connection.write(jobs)]
        except Exception as error:
            # After any error the callers must be answered, and the next group written.
            self._connection.roll_back()
            # A lock blocks all jobs; trying each alone would multiply the wait.
            if len(jobs) == 1 or isinstance(error, apsw.BusyError):
                return [self._file.unavailable(error) if isinstance(error, apsw.Error) else error for _ in jobs]
        return [failure for job in jobs for failure in self._commit([job])]

    def _refuse_all(self, group: list[Call], error: BaseException) -> None:
        """Fail every waiting job, because the writer has ended."""
        self.close()
        while not self._queue.empty():
            if (call := self._queue.get()) is not None:
                group.append(call)
        reason = f"the store {str(self._file.path)!r}: its writer ended ({error!r}); open it again"
        answer(group, [StoreUnavailable(reason) for _ in group])
