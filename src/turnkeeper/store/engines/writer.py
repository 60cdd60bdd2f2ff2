"""The writer of an SQL store: a thread that commits the waiting jobs in one transaction (group commit).

A commit of a hundred jobs waits for the disk as long as a commit of one. So the thread takes all jobs that queued up
during the last commit, writes them in one transaction, and answers each after the commit.
"""

import asyncio
import logging
import threading
from collections.abc import Iterable, Sequence
from queue import Empty, SimpleQueue
from typing import Final, Protocol

from turnkeeper.store.engine import EngineError, StoreUnavailable
from turnkeeper.store.engines.jobs import Call, Job, answer

GROUP_JOBS_MAX: Final = 256
"""Jobs in one transaction; more would delay the answer to the first."""

log = logging.getLogger(__name__)


class JobConnection(Protocol):
    """The one connection that writes. Used by the writer's thread only."""

    def transactions(self, group: Sequence[Call]) -> Iterable[Sequence[Call]]:
        """The calls of each transaction, in order."""
        ...

    def write(self, jobs: Sequence[Job]) -> list[EngineError | None]:
        """Write the jobs in one transaction, durable when this returns. Returns the refusal of each job, or None.

        Any other error is raised and concerns all jobs; then call ``roll_back``.
        """
        ...

    def failure(self, error: Exception) -> Exception:
        """The exception that callers get for an error."""
        ...

    def concerns_all(self, error: Exception) -> bool:
        """Whether an error has nothing to do with a single job: trying each alone would only multiply the wait."""
        ...

    def seconds_until_upkeep(self) -> float | None:
        """Seconds until upkeep is due; None if none is."""
        ...

    def upkeep(self) -> None:
        """Do the upkeep that is due."""
        ...

    def finish(self) -> None:
        """Complete the work that must precede the closing of the store."""
        ...

    def roll_back(self) -> None:
        """Leave no transaction open."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Writer:
    """Accepts jobs from any event loop and answers each once it is durable or refused."""

    def __init__(self, connection: JobConnection, engine: str, store: str) -> None:
        self._connection, self._store = connection, f"the store {store!r}"
        self._queue: SimpleQueue[Call | None] = SimpleQueue()  # Each job has a waiting caller, which bounds the queue.
        self._lock = threading.Lock()  # No job is queued behind the None that ends the thread.
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name=f"{engine}-writer", daemon=True)
        self._thread.start()

    async def submit(self, job: Job) -> None:
        """Write a job; returns once it is durable. A cancelled job is done completely or not at all."""
        done = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._is_closed:
                raise StoreUnavailable(f"{self._store} was closed; open it again")
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
                for calls in self._connection.transactions(group):
                    answer(calls, self._commit([job for job, _ in calls]))
                group = []
                self._connection.upkeep()
            self._connection.finish()
        except BaseException as error:
            # The thread ends here, so every waiting or later caller must get an error.
            log.exception("the writer of %s ended", self._store)
            self._connection.roll_back()  # First, so that the store is not left locked.
            self._refuse_all(group, error)
        finally:
            self._connection.close()

    def _next_group(self) -> tuple[list[Call], bool]:
        """Wait for a job or until upkeep is due, and take the waiting jobs; False after the last job."""
        group: list[Call] = []
        try:
            call = self._queue.get(timeout=self._connection.seconds_until_upkeep())
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
            if len(jobs) == 1 or self._connection.concerns_all(error):
                return [self._connection.failure(error) for _ in jobs]
        return [failure for job in jobs for failure in self._commit([job])]

    def _refuse_all(self, group: list[Call], error: BaseException) -> None:
        """Fail every waiting job, because the writer has ended."""
        self.close()
        while not self._queue.empty():
            if (call := self._queue.get()) is not None:
                group.append(call)
        reason = f"{self._store}: its writer ended ({error!r}); open it again"
        answer(group, [StoreUnavailable(reason) for _ in group])
