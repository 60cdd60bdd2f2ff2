"""Delegation: the interface of the task tool to Child Sessions. The runtime gives one to each call."""

from typing import Literal, Protocol

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.value import Value


class Assignment(Value):
    """The work that a call delegates, and its agent. ``task_id`` names a Child Session that continues with it."""

    agent: str
    description: str
    prompt: str
    task_id: str | None = None
    background: bool = False


class Delegated(Value):
    """The Child Session that works for a call. ``background``: the call does not wait for it."""

    session_id: str
    parent_session_id: str
    model: ModelChoice
    background: bool = False


class TaskResult(Value):
    """The result of a task. ``stopped``: the Child Session was interrupted, or its process died."""

    state: Literal["running", "completed", "failed", "rejected", "stopped"]
    text: str


class Delegation(Protocol):
    """Hands the work of one call to a Child Session."""

    async def is_begun(self) -> bool:
        """Whether an earlier run of the call has delegated its work: then nothing is asked again."""
        ...

    async def check(self, wanted: Assignment) -> None:
        """Raise a Refusal if no agent can take the assignment."""
        ...

    async def depth_limit(self) -> str | None:
        """The reason why the session may start no Child Session, if the nesting limit is reached; else None."""
        ...

    async def begin(self, wanted: Assignment) -> Delegated:
        """Make the Child Session and admit its prompt, durably; the same ones if the call has begun before."""
        ...

    async def result(self, work: Delegated) -> TaskResult:
        """Run the Child Session until it rests; in the background, make sure that it runs."""
        ...
