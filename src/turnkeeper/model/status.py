"""Status: what a session is doing, as told to clients, and which process does it."""

from typing import TypeAlias

from turnkeeper.model.value import JsonObject, Value


class Idle(Value, tag_field="type", tag="idle"):
    """Nothing to do."""


class Busy(Value, tag_field="type", tag="busy"):
    """A drain is running."""


class Retrying(Value, tag_field="type", tag="retry"):
    """An attempt failed; the next one starts at ``next``."""

    attempt: int
    message: str
    action: JsonObject | None = None
    next: int


Status: TypeAlias = Idle | Busy | Retrying


class Owner(Value):
    """The process that runs a session: enough to tell whether it is still alive (workspace/owner.py).

    Older logs have neither ``machine`` nor ``boot`` nor ``namespace``.
    """

    host: str
    pid: int
    started: str
    runtime: str = ""
    """Tells two runtimes in one process apart."""
    machine: str = ""
    boot: str = ""
    """Which start of the machine's kernel the process belongs to."""
    namespace: str = ""
    """The set of process numbers in which ``pid`` is valid; a container has its own."""


IDLE = Idle()
BUSY = Busy()
