"""Context Epoch: the span of one Baseline System Context, and the checkpoint that detects changes."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from turnkeeper.model.value import Value

EpochReason: TypeAlias = Literal["start", "compaction", "model", "move", "revert"]


class ComponentText(Value):
    """The text of one component in the baseline, with its key."""

    key: str
    text: str


class Epoch(Value):
    """The baseline, in order and reused word for word; ``checkpoint`` has the last admitted hash of each component.

    ``seq`` is the seq of the event that began the epoch: requests leave out system messages before it. ``initial`` is
    the checkpoint at that event. ``is_over``: a revert went back to before it, so the next turn begins another.
    """

    number: int
    reason: EpochReason
    provider_id: str
    model_id: str
    directory: str = ""
    baseline: tuple[ComponentText, ...]
    checkpoint: Mapping[str, str]
    seq: int = 0
    initial: Mapping[str, str] | None = None
    is_over: bool = False


class Loaded(Value):
    """The loaded value of a component: its text in a baseline, and its text in an update."""

    baseline: str
    update: str


class Absent(Value):
    """A component that does not exist. ``removal`` is the update text if it existed before."""

    removal: str = ""


class Unavailable(Value):
    """A component that cannot be loaded now. Its last admitted value stays valid, and no update is sent."""

    reason: str = ""


Sample: TypeAlias = Loaded | Absent | Unavailable


class Mark(Value):
    """A place in a request: the number of bytes before it, and their hash."""

    bytes: int
    hash: str


class Prefix(Value):
    """The pieces of a request, their size and hash, and how many bytes repeat the previous request.

    Messages for one request only are at its end. ``passing`` counts their bytes; no other field includes them.
    """

    pieces: int
    bytes: int
    hash: str
    reused: int = 0
    """Bytes of the previous request that the provider can reuse."""
    cause: str | None = None
    """The reason why the previous request cannot be reused completely; None if it can."""
    note: str | None = None
    """The reason why the provider may reuse less than ``reused``."""
    before: int = 0
    """The size of the previous request with its passing messages; 0 if there was none."""
    passing: int = 0
    epoch: int = 0
    at: int = 0
    model: str = ""
    choice: str = ""
    tools: Mark | None = None
    """The mark after the tools, which are the first piece."""
    system: Mark | None = None
    """The mark after the baseline."""
    changes: tuple[str, ...] = ()
    """The changes of plugins in the request, each as ``plugin: what``."""
    servers: dict[str, str] = {}
    """A hash of the tools of each MCP server in the request, by its name."""
    plugins: dict[str, str] = {}
    """A hash of the tools that each plugin brought to the request, by its name."""
