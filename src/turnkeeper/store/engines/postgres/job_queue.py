"""Jobs in a Postgres store: Procrastinate's tables, locks and notifications, over the connections of the store.

Its worker and its connection pool are not used, see docs/adr/0112: a job is never retried in place. One whose worker
died is marked as failed, and a new job takes its place; so a job has one owner for ever.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import psycopg
from psycopg import errors

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.postgres.connection import Connection, Database, disconnect
from turnkeeper.store.engines.postgres.listener import Listener
from turnkeeper.store.engines.postgres.read import PostgresReader
from turnkeeper.store.job_queue import Job

if TYPE_CHECKING:
    from datetime import datetime

    from procrastinate.jobs import Job as StoredJob
    from procrastinate.manager import JobManager

TASK: Final = "turnkeeper"
KEPT_HOURS: Final = 24
"""How long failed jobs, and workers that are gone, stay in the tables for people to see."""
TIDIED_BEATS: Final = 300
LEAVE_S: Final = 5.0
"""Seconds in which a worker that leaves returns what it has not finished; others do so after its silence."""
FINISHED_BEFORE: Final = "P0001"
"""The code with which Procrastinate refuses to finish a job that was finished."""


class PostgresJobs:
    """The jobs of a store."""

    def __init__(self, database: Database, reader: PostgresReader, listener: Listener) -> None:
        self._database, self._reader, self._listener = database, reader, listener
        self._opened: JobManager | None = None

    async def put(self, queue: str, lock: str, note: str, at: int) -> None:
        """See JobQueue.put."""
        await self._defer(await self.manager(), Job(0, queue, lock, note, at, is_taken=False))

    async def jobs(self, lock: str | None = None) -> Sequence[Job]:
        """See JobQueue.jobs. Reads the table without Procrastinate, which a report need not import."""
        return await self._reader.read(lambda connection: _jobs(connection, lock))

    async def withdraw(self, lock: str) -> None:
        """See JobQueue.withdraw."""
        for job in await self.jobs(lock):
            await self._cancel(job)

    async def move(self, job: Job, queue: str) -> None:
        """See JobQueue.move. For a moment there are two jobs, never none."""
        await self._defer(await self.manager(), job._replace(queue=queue))
        await self._cancel(job)

    async def free(self, locks: Sequence[str]) -> None:
        """See JobQueue.free."""
        wanted = frozenset(locks)
        for job in await self.jobs():
            if job.is_taken and job.lock in wanted:
                await self.replace(job)

    @asynccontextmanager
    async def worker(
        self, queues: Sequence[str], *, silence_s: float, heard: Callable[[], None]
    ) -> AsyncIterator["PostgresJobWorker"]:
        """See JobQueue.worker."""
        from procrastinate.manager import get_channel_for_queues

        manager = await self.manager()
        worker = PostgresJobWorker(self, manager, queues, silence_s)
        end = self._listener.notice(get_channel_for_queues(queues), heard)
        try:
            yield worker
        finally:
            end()
            with anyio.move_on_after(LEAVE_S, shield=True), suppress(StoreUnavailable):
                await worker.leave()

    async def manager(self) -> "JobManager":
        """Procrastinate, once its tables are there."""
        if self._opened is None:
            from procrastinate.manager import JobManager

            from turnkeeper.store.engines.postgres.procrastinate_tables import StoreConnector, prepare

            await asyncio.to_thread(self._prepare, prepare)
            self._opened = JobManager(StoreConnector(self._reader.read))
        return self._opened

    def _prepare(self, prepare: Callable[[Database, Connection], None]) -> None:
        """On a connection of its own: to migrate may take longer than a read."""
        try:
            connection = self._database.connect()
            try:
                prepare(self._database, connection)
            finally:
                disconnect(connection)
        except psycopg.Error as error:
            raise self._database.unavailable(error) from error

    async def replace(self, job: Job) -> None:
        """Mark a job that was taken as failed, and put a new one in its place; first the new one, so none is lost."""
        manager = await self.manager()
        await self._defer(manager, job)
        await finished(manager, job.id, is_done=False)

    async def put_later(self, job: Job, delay_s: float) -> None:
        """Add a job that can be taken after some seconds, by the clock of the database."""
        due = await self._reader.read(lambda connection: _time(connection, delay_s)) if delay_s else None
        await self._defer(await self.manager(), job, due)

    async def _defer(self, manager: "JobManager", job: Job, due: "datetime | None" = None) -> None:
        from procrastinate.exceptions import AlreadyEnqueued
        from procrastinate.jobs import Job as StoredJob

        with suppress(AlreadyEnqueued):
            await manager.defer_job_async(
                StoredJob(
                    id=None,
                    queue=job.queue,
                    lock=job.lock,
                    queueing_lock=f"{job.queue}/{job.lock}/{job.note}",
                    task_name=TASK,
                    task_kwargs={"note": job.note, "at": job.at},
                    scheduled_at=due,
                )
            )

    async def _cancel(self, job: Job) -> None:
        if not job.is_taken:
            await (await self.manager()).cancel_job_by_id_async(job.id, delete_job=True)


class PostgresJobWorker:
    """A worker that Procrastinate knows by its number."""

    def __init__(self, jobs: PostgresJobs, manager: "JobManager", queues: Sequence[str], silence_s: float) -> None:
        self._jobs, self._manager, self._queues, self._silence_s = jobs, manager, queues, silence_s
        self._number: int | None = None
        self._held: set[int] = set()
        self._taking = anyio.Lock()
        self._beats = 0

    async def take(self) -> Job | None:
        """See JobWorker.take."""
        from procrastinate.exceptions import UniqueViolation

        async with self._taking:
            number = self._number = self._number or await self._manager.register_worker()
            try:
                found = await self._manager.fetch_job(queues=self._queues, worker_id=number)
            except UniqueViolation:
                return None  # Another worker took a job with the same lock in this moment.
            except StoreUnavailable as error:
                if isinstance(error.__cause__, errors.ForeignKeyViolation):
                    self._number = None  # Others removed this worker, which was silent for very long.
                    return None
                raise
            if found is None:
                return None
            job = _job(found)
            self._held.add(job.id)
            return job

    def drop(self, job: Job) -> None:
        """See JobWorker.drop."""
        self._held.discard(job.id)

    async def finish(self, job: Job) -> None:
        """See JobWorker.finish."""
        self.drop(job)
        await finished(self._manager, job.id, is_done=True)

    async def put_back(self, job: Job, queue: str, *, delay_s: float) -> None:
        """See JobWorker.put_back."""
        self.drop(job)
        await self._jobs.put_later(job._replace(queue=queue), delay_s)
        await finished(self._manager, job.id, is_done=True)

    async def keep_up(self) -> None:
        """See JobWorker.keep_up."""
        if self._number is not None:
            await self._manager.update_heartbeat(self._number)
        for found in await self._manager.get_stalled_jobs(seconds_since_heartbeat=self._silence_s):
            await self._jobs.replace(_job(found))
        async with self._taking:
            # Taken, but the answer was lost; or finished, and that was lost.
            for found in await self._own():
                if found.id not in self._held:
                    await self._jobs.replace(_job(found))
        if self._beats % TIDIED_BEATS == 0:
            await self._manager.delete_old_jobs(KEPT_HOURS, include_failed=True, include_cancelled=True)
            await self._manager.prune_stalled_workers(KEPT_HOURS * 3600)
        self._beats += 1

    async def leave(self) -> None:
        """Return what was not finished, and take no more."""
        for found in await self._own():
            await self._jobs.replace(_job(found))
        if self._number is not None:
            await self._manager.unregister_worker(self._number)

    async def _own(self) -> "Sequence[StoredJob]":
        if self._number is None:
            return ()
        return list(await self._manager.list_jobs_async(status="doing", worker_id=self._number))


async def finished(manager: "JobManager", job_id: int, *, is_done: bool) -> None:
    """Remove a job that is done, or mark it as failed. One that others have replaced stays as it is."""
    from procrastinate.jobs import Status

    try:
        status = Status.SUCCEEDED if is_done else Status.FAILED
        await manager.finish_job_by_id_async(job_id, status, delete_job=is_done)
    except StoreUnavailable as error:
        if getattr(error.__cause__, "sqlstate", None) != FINISHED_BEFORE:
            raise


def _job(found: "StoredJob") -> Job:
    assert found.id is not None, "it was read"
    return _read((found.id, found.queue, found.lock or "", found.task_kwargs, found.status))


def _jobs(connection: Connection, lock: str | None) -> list[Job]:
    try:
        rows = connection.execute(
            "SELECT id, queue_name, lock, args, status::text FROM procrastinate_jobs"
            " WHERE status IN ('todo', 'doing') AND (%(lock)s::text IS NULL OR lock = %(lock)s) ORDER BY id",
            {"lock": lock},
        )
    except errors.UndefinedTable:
        return []  # No process has added a job yet.
    return [_read(row) for row in rows]


def _read(row: tuple[Any, ...]) -> Job:
    number, queue, lock, details, status = row
    return Job(number, queue, lock or "", str(details.get("note", "")), int(details.get("at", 0)), status == "doing")


def _time(connection: Connection, delay_s: float) -> "datetime":
    due: datetime
    [(due,)] = connection.execute("SELECT now() + make_interval(secs => %s)", (delay_s,)).fetchall()
    return due
