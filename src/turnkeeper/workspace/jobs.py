"""Jobs: commands that run in the background of a session, with their newest output, until they end or are ended."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final, TypeAlias

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus

from turnkeeper.core.limits import (
    JOB_FILE_BYTES_MAX,
    JOB_OUTPUT_BYTES_MAX,
    JOBS_KEPT_MAX,
    JOBS_RUNNING_MAX,
    KILL_GRACE_S,
)
from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.refusal import Busy, NotFound
from turnkeeper.workspace.children import RunningProcess, started
from turnkeeper.workspace.guarded import Guarded
from turnkeeper.workspace.shell import arguments_of

_LOOK_AGAIN_S: Final = 0.02


class NewestOutput:
    """Buffer of the newest bytes of an output, which keeps their positions in the whole output."""

    def __init__(self, bytes_max: int = JOB_OUTPUT_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._kept = bytearray()
        self._dropped = 0

    @property
    def end(self) -> int:
        """Size of the whole output in bytes."""
        return self._dropped + len(self._kept)

    def add(self, piece: bytes) -> None:
        """Append the next piece of output."""
        self._kept += piece
        over = len(self._kept) - self._bytes_max
        # Letting it grow to twice its size makes the cost of cutting independent of how small the pieces are.
        if over > self._bytes_max:
            del self._kept[:over]
            self._dropped += over

    def since(self, place: int) -> tuple[str, int]:
        """The text from a position on, and the number of its bytes that were dropped."""
        lost = max(self._dropped - place, 0)
        return self._kept[max(place - self._dropped, 0) :].decode("utf-8", "replace"), lost


class Job:
    """One command in the background. ``exit_code`` is None while it runs, and if it was ended before it was done."""

    def __init__(self, id: str, command: str, log: FileIO | None = None) -> None:
        self.id, self.command = id, command
        self.output = NewestOutput()
        self.read_until = 0
        """The position in the output up to which the model has read."""
        self._log = log
        self.file = Path(os.fsdecode(log.name)) if log is not None and not isinstance(log.name, int) else None
        """The path of the file with the output from its beginning, up to a maximum size."""
        self.process_id: int | None = None
        self.exit_code: int | None = None
        self.is_ended = False
        """Whether the job was ordered to end."""
        self.done = anyio.Event()
        self.news = anyio.Event()
        """Set with the next output, and when the job is done; then replaced."""
        self._scope = anyio.CancelScope()

    @property
    def state(self) -> str:
        """State of the job, as text for the model."""
        if not self.done.is_set():
            return "ending" if self.is_ended else f"running as process {self.process_id}"
        return "was ended" if self.exit_code is None else f"done, exit code {self.exit_code}"

    def end(self) -> None:
        """Order the job and all its processes to end. Does not wait."""
        self.is_ended = self.is_ended or not self.done.is_set()
        self._scope.cancel()

    async def run(
        self,
        directory: Path,
        environ: Mapping[str, str],
        confined: Confinement | None,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the command to its end. Raises OSError if it cannot be started."""
        arguments, given = arguments_of(self.command, environ)
        try:
            with self._scope:
                async with started(arguments, directory, given, confined=confined, is_of_model=True) as running:
                    self.process_id = running.id
                    task_status.started()
                    await self._follow(running)
        finally:
            if self._log is not None:
                self._log.close()
            self.done.set()
            self.news.set()

    async def _follow(self, running: RunningProcess) -> None:
        """Read the output until no process has it open and the command's own process has ended."""
        while piece := await running.read():
            self.output.add(piece)
            self._keep(piece)
            self.news.set()
            self.news = anyio.Event()
        exit_code = await running.wait()
        # Background processes whose output goes elsewhere belong to the job, and end before it counts as done.
        await running.end()
        self.exit_code = exit_code

    def _keep(self, piece: bytes) -> None:
        if self._log is not None and self.output.end <= JOB_FILE_BYTES_MAX:
            with suppress(OSError):  # The newest output is in memory.
                self._log.write(piece)


SessionDirectory: TypeAlias = Callable[[str], str]
"""Gives each session a directory for files that need not be kept. Raises OSError if there can be none."""


class Jobs:
    """The background jobs of all sessions of this process, and what finished commands left running."""

    def __init__(self, group: TaskGroup, directory: SessionDirectory | None = None) -> None:
        self._group, self._directory = group, directory
        self._jobs: dict[str, list[Job]] = {}
        self._left: dict[str, list[Guarded]] = {}
        self._count = 0

    async def start(
        self,
        session_id: str,
        command: str,
        directory: Path,
        environ: Mapping[str, str],
        confined: Confinement | None = None,
    ) -> Job:
        """Start a job. Raises Busy if the session has too many, and OSError if the command cannot be started."""
        known = self._jobs.setdefault(session_id, [])
        running = [job for job in known if not job.done.is_set()]
        if len(running) >= JOBS_RUNNING_MAX:
            raise Busy(f"{len(running)} jobs are running, which is the most there may be; end one of them first")
        self._count += 1
        id = f"job{self._count}"
        job = Job(id, command, await to_thread.run_sync(self._log, session_id, id))
        known.append(job)
        _forget_oldest(known)
        try:
            await self._group.start(job.run, directory, environ, confined)
        except OSError:
            known.remove(job)
            raise
        return job

    def of(self, session_id: str) -> list[Job]:
        """The jobs of a session, oldest first; of the jobs that are done, only the newest ones."""
        return list(self._jobs.get(session_id, ()))

    def find(self, session_id: str, id: str) -> Job:
        """The job of a session with this id. Raises NotFound, which lists the jobs."""
        known = self.of(session_id)
        for job in known:
            if job.id == id:
                return job
        names = ", ".join(job.id for job in known) or "none"
        raise NotFound(f"there is no job {id!r}; the jobs are: {names}")

    def keep(self, session_id: str, left: Guarded) -> None:
        """Register the background processes of a finished command: they end with the session's jobs."""
        for one in self._left.setdefault(session_id, []):
            one.hear()
        self._left[session_id] = [*(one for one in self._left[session_id] if one.is_alive), left]

    def end_session(self, session_id: str) -> None:
        """Order all jobs and background processes of a session to end. Does not wait."""
        for job in self.of(session_id):
            job.end()
        for one in self._left.get(session_id, ()):
            one.end(KILL_GRACE_S)

    async def forget(self, session_id: str) -> None:
        """End the jobs of a session that is about to be removed, and forget them."""
        self.end_session(session_id)
        await _wait_for(self._jobs.pop(session_id, []), self._left.pop(session_id, []))

    async def aclose(self) -> None:
        """End all jobs and background processes, and wait for their end."""
        for session_id in {*self._jobs, *self._left}:
            self.end_session(session_id)
        await _wait_for(
            [job for known in self._jobs.values() for job in known],
            [one for kept in self._left.values() for one in kept],
        )

    def _log(self, session_id: str, id: str) -> FileIO | None:
        """A new file for an output. An existing file is not used, because a command may have made it a link."""
        if self._directory is None:
            return None
        with suppress(OSError):
            path = os.path.join(self._directory(session_id), f"{id}-{os.getpid()}.log")
            return FileIO(path, "x", opener=lambda name, flags: os.open(name, flags, 0o600))
        return None


def _forget_oldest(known: list[Job]) -> None:
    done = [job for job in known if job.done.is_set()]
    for job in done[: max(len(done) - JOBS_KEPT_MAX, 0)]:
        known.remove(job)


async def _wait_for(jobs: list[Job], left: list[Guarded]) -> None:
    with anyio.move_on_after(2 * KILL_GRACE_S):
        for job in jobs:
            await job.done.wait()
        for one in left:
            while one.is_alive:
                await anyio.sleep(_LOOK_AGAIN_S)
                one.hear()
