"""Wakes as jobs of a queue that the store's engine carries: a session is the lock, and its label is the queue."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

import anyio

from turnkeeper.core.labels import HostLabels
from turnkeeper.core.limits import WAKE_ELSEWHERE_S, WAKE_LOOK_S
from turnkeeper.mint import Mint
from turnkeeper.run.wakes import Admits, StoredWakes, Taken, Waiting, Wakes
from turnkeeper.store.engine import EngineError
from turnkeeper.store.job_queue import Job, JobQueue, JobWorker, WithJobs
from turnkeeper.store.store import Store

UNLABELLED: Final = "any"
RESUME: Final = "resume"
RELABELLED_AT_ONCE: Final = 100

LabelOf = Callable[[str], Awaitable[str | None]]
"""The label of a session; None if it has none, or does not exist."""


def queue_of(label: str | None) -> str:
    """The queue of the sessions with a label."""
    return UNLABELLED if label is None else f"label:{label}"


def queues_of(host: HostLabels) -> list[str]:
    """The queues that a host takes wakes from."""
    return [*([] if host.only else [UNLABELLED]), *map(queue_of, host.labels)]


def new_wakes(store: Store, label_of: LabelOf) -> Wakes:
    """The wakes of a store: jobs, if its engine has a queue of them."""
    if isinstance(store.engine, WithJobs):
        return JobWakes(store.engine.job_queue, store.mint, label_of)
    return StoredWakes(store.engine, store.mint)


class JobWakes:
    """Wakes as jobs."""

    def __init__(self, jobs: JobQueue, mint: Mint, label_of: LabelOf) -> None:
        self._jobs, self._mint, self._label_of = jobs, mint, label_of

    async def post(self, session_id: str, *, resume: bool = False) -> None:
        """See Wakes.post."""
        queue = queue_of(await self._label_of(session_id))
        await self._jobs.put(queue, session_id, RESUME if resume else "", self._mint.now())

    async def waiting(self, session_id: str | None = None) -> Mapping[str, Waiting]:
        """See Wakes.waiting."""
        found: dict[str, Waiting] = {}
        for job in await self._jobs.jobs(session_id):
            known = found.get(job.lock, Waiting(job.at, resume=False, wakes=0))
            found[job.lock] = Waiting(min(known.at, job.at), known.resume or job.note == RESUME, known.wakes + 1)
        return found

    async def withdraw(self, session_id: str) -> None:
        """See Wakes.withdraw."""
        await self._jobs.withdraw(session_id)

    async def owner_died(self, session_ids: Sequence[str]) -> None:
        """See Wakes.owner_died."""
        await self._jobs.free(session_ids)

    @asynccontextmanager
    async def receiver(self, labels: HostLabels, silence_s: float) -> AsyncIterator["_JobReceiver"]:
        """See Wakes.receiver."""
        heard = _Heard()
        async with self._jobs.worker(queues_of(labels), silence_s=silence_s, heard=heard.set) as worker:
            yield _JobReceiver(self._jobs, worker, heard, self._label_of)


class _Heard:
    """Set when there may be another job, and until the next look."""

    def __init__(self) -> None:
        self._event = anyio.Event()

    def set(self) -> None:
        self._event.set()

    def clear(self) -> None:
        self._event = anyio.Event()

    async def wait(self) -> None:
        await self._event.wait()


class _JobReceiver:
    """Takes jobs as soon as it hears of them, and looks now and then too."""

    def __init__(self, jobs: JobQueue, worker: JobWorker, heard: _Heard, label_of: LabelOf) -> None:
        self._jobs, self._worker, self._heard, self._label_of = jobs, worker, heard, label_of
        self._checked = 0

    async def take(self, limit: int, working: Collection[str], admits: Admits) -> Sequence[Taken]:
        """See Receiver.take. A job whose session may not be run here is put back, for other hosts."""
        self._heard.clear()
        taken: list[Taken] = []
        try:
            while len(taken) < limit and (job := await self._worker.take()) is not None:
                found = Taken(job.lock, job.note == RESUME, (job,))
                if await self._admitted(job, admits):
                    taken.append(found)
                else:
                    await self.put_back(found)
        except EngineError:
            if not taken:
                raise
        return taken

    async def _admitted(self, job: Job, admits: Admits) -> bool:
        try:
            return await admits(job.lock)
        except EngineError:
            self._worker.drop(job)
            raise

    async def done(self, taken: Taken) -> None:
        """See Receiver.done."""
        for job in taken.marks:
            if isinstance(job, Job):
                await self._worker.finish(job)

    async def put_back(self, taken: Taken) -> None:
        """See Receiver.put_back. Delayed, or this worker would take it again and again."""
        for job in taken.marks:
            if isinstance(job, Job):
                await self._worker.put_back(job, await self._queue(job), delay_s=WAKE_ELSEWHERE_S)

    async def changed(self) -> None:
        """See Receiver.changed."""
        with anyio.move_on_after(WAKE_LOOK_S):
            await self._heard.wait()

    async def keep_up(self) -> None:
        """See Receiver.keep_up. Sessions that were given another label since they were woken change the queue."""
        await self._worker.keep_up()
        await self._follow_labels()
        self._heard.set()

    async def _follow_labels(self) -> None:
        """Look at the next waiting jobs: a bounded number each time, and from the first again after the last."""
        jobs = [job for job in await self._jobs.jobs() if not job.is_taken and job.id > self._checked]
        looked = jobs[:RELABELLED_AT_ONCE]
        for job in looked:
            if (queue := await self._queue(job)) != job.queue:
                await self._jobs.move(job, queue)
        self._checked = looked[-1].id if len(looked) < len(jobs) else 0

    async def _queue(self, job: Job) -> str:
        return queue_of(await self._label_of(job.lock))
