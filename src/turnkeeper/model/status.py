"""Status: whether a session is idle, busy or waits to retry, and which process runs it."""

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

# In ``turnkeeper`` the name Busy is that of a refusal, so there the classes have these names.
StatusIdle: TypeAlias = Idle
StatusBusy: TypeAlias = Busy
StatusRetrying: TypeAlias = Retrying


class Owner(Value):
    """The process that runs a session; the fields show whether it is still alive (workspace/owner.py).

    Older logs have neither ``machine`` nor ``boot`` nor ``namespace`` nor ``lease_s``.
    """

    host: str
    pid: int
    started: str
    runtime: str = ""
    """The id of the runtime in the process, which may have several."""
    machine: str = ""
    boot: str = ""
    """The boot id of the machine's kernel."""
    namespace: str = ""
    """The process id namespace of ``pid``; a container has its own."""
    lease_s: float = 0
    """The silence in seconds after which others may take the session; 0 for never (core/lease.py)."""


IDLE = Idle()
BUSY = Busy()
