"""jobs: list, read and end the commands that run in the background of a session."""

from typing import Annotated, Final

import anyio
from msgspec import Meta

from turnkeeper.core.limits import JOB_WAIT_MAX_S, KILL_GRACE_S
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace.jobs import Job


class JobsArguments(Value):
    """The action and the job."""

    action: Annotated[str, Meta(description='What to do: "list", "read" or "end".', pattern="^(list|read|end)$")]
    id: Annotated[str | None, Meta(description="The job to read or end, as `bash` or `list` named it.")] = None
    wait: Annotated[int, Meta(description="Milliseconds that `read` waits for news. Default: 0.", ge=0)] | None = None


async def execute(arguments: JobsArguments, context: ToolContext) -> ToolOutput:
    """Carry out the action."""
    await context.ask(
        "jobs", [arguments.action], always=["*"], metadata={"action": arguments.action, "id": arguments.id}
    )
    if arguments.action == "list":
        return _listed(context)
    if arguments.id is None:
        raise ToolFailure(f'"{arguments.action}" needs the id of a job; "list" names them.')
    if context.jobs is None:
        raise NotFound(f"there is no job {arguments.id!r}")
    job = context.jobs.find(context.session_id, arguments.id)
    if arguments.action == "end":
        job.end()
        with anyio.move_on_after(2 * KILL_GRACE_S):
            await job.done.wait()
    elif arguments.wait and job.output.end == job.read_until and not job.done.is_set():
        with anyio.move_on_after(min(arguments.wait / 1000, JOB_WAIT_MAX_S)):
            await job.news.wait()
    return _read(job)


def _listed(context: ToolContext) -> ToolOutput:
    jobs = context.jobs.of(context.session_id) if context.jobs is not None else []
    lines = [f"{job.id}: {job.state}: {job.command}" for job in jobs]
    metadata = {"jobs": [{"id": job.id, "command": job.command, "state": job.state} for job in jobs]}
    return ToolOutput(title=f"{len(jobs)} jobs", output="\n".join(lines) or "There are no jobs.", metadata=metadata)


def _read(job: Job) -> ToolOutput:
    """The output of the job since the last read, and its state."""
    printed, lost = job.output.since(job.read_until)
    is_first = job.read_until == 0
    job.read_until = job.output.end
    missing = f"[{lost} earlier bytes are not kept here{f', see {job.file}' if job.file else ''}]\n" if lost else ""
    nothing = "(no output)" if is_first else "(nothing new)"
    output = f"{missing}{printed.rstrip() or nothing}\n[{job.id}: {job.state}]"
    metadata = {"job": job.id, "state": job.state, "exit": job.exit_code}
    return ToolOutput(title=f"{job.id}: {job.command}", output=output, metadata=metadata, lost_bytes=lost)


JOBS: Final = Tool(
    name="jobs",
    description=text("jobs"),
    parameters=JobsArguments,
    execute=execute,
    permission="jobs",
)
