"""The interface of job queues: an engine that several hosts share may carry jobs from one process to another.

A job is a short note under a **lock**, such as the name of a log. Of the jobs with one lock at most one is taken at a
time. Jobs that wait under one lock in one queue with the same note are one job.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, runtime_checkable


class Job(NamedTuple):
    """A job that waits or was taken."""

    id: int
    queue: str
    lock: str
    note: str
    at: int
    """When it was asked for, by the clock of who asked, in milliseconds."""
    is_taken: bool


class JobWorker(Protocol):
    """A process that takes jobs, as long as it is open."""

    async def take(self) -> Job | None:
        """The oldest job of the queues whose lock is free, or None. It is this worker's until it is finished."""
        ...

    async def finish(self, job: Job) -> None:
        """Remove a job that was taken. If that fails, ``keep_up`` returns the job to its queue."""
        ...

    def drop(self, job: Job) -> None:
        """Give up a job that was taken; ``keep_up`` returns it to its queue."""
        ...

    async def put_back(self, job: Job, queue: str, *, delay_s: float) -> None:
        """Return a job that was taken to its queue; it can be taken again after ``delay_s`` seconds."""
        ...

    async def keep_up(self) -> None:
        """Say that this worker lives, and return the jobs of dead workers to their queues. Call it at intervals."""
        ...


class JobQueue(Protocol):
    """Jobs of a store."""

    async def put(self, queue: str, lock: str, note: str, at: int) -> None:
        """Add a job. Durable once it returns."""
        ...

    async def jobs(self, lock: str | None = None) -> Sequence[Job]:
        """The jobs that wait or were taken, oldest first; those with a lock, or all."""
        ...

    async def withdraw(self, lock: str) -> None:
        """Remove the jobs with a lock that were not taken."""
        ...

    async def move(self, job: Job, queue: str) -> None:
        """Move a job that waits to another queue."""
        ...

    async def free(self, locks: Sequence[str]) -> None:
        """Return the jobs with these locks that were taken to their queues: the process that took them is dead."""
        ...

    def worker(
        self, queues: Sequence[str], *, silence_s: float, heard: Callable[[], None]
    ) -> AbstractAsyncContextManager[JobWorker]:
        """A worker on queues. One that is silent for ``silence_s`` counts as dead.

        ``heard`` is called on this event loop when a job was added. Calls may be lost, so poll as well.
        """
        ...


@runtime_checkable
class WithJobs(Protocol):
    """An optional ability of engines: a queue of jobs."""

    job_queue: JobQueue
