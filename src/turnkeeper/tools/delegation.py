"""Delegation: how the task tool reaches Child Sessions. The runtime lends each call one; tools never see the store."""

from typing import Literal, Protocol

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.value import Value


class Assignment(Value):
    """What a call wants to have done, and by which agent. ``task_id`` names a Child Session that goes on with it."""

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
    """What came of a task. ``stopped``: the Child Session was interrupted, or its process died."""

    state: Literal["running", "completed", "failed", "rejected", "stopped"]
    text: str


class Delegation(Protocol):
    """Hands the work of one call to a Child Session."""

    async def is_begun(self) -> bool:
        """Whether an earlier run of the call has handed its work on: then nothing is asked again."""
        ...

    async def check(self, wanted: Assignment) -> None:
        """Raise a Refusal if the assignment cannot be given to anyone."""
        ...

    async def depth_limit(self) -> str | None:
        """Why the session may start no Child Session, if it is as deep as they may nest; else None."""
        ...

    async def begin(self, wanted: Assignment) -> Delegated:
        """Make the Child Session and admit its prompt, durably; the same ones if the call has begun before."""
        ...

    async def result(self, work: Delegated) -> TaskResult:
        """Run the Child Session until it rests; in the background, see to it that it runs."""
        ...
