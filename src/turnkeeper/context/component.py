"""Context Component: the interface of one fact of the System Context.

A component of a plugin::

    async def load(sampling: Sampling) -> Sample:
        load = os.getloadavg()[0]
        return Loaded(baseline=f"Load: {load:.0f}", update=f"The load is now {load:.0f}.")

    with tk.context(ContextComponent("acme/load", load)):
        ...
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.context import Absent, Loaded, Sample, Unavailable
from turnkeeper.model.mcp import McpInstructions
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.skill import Skill
from turnkeeper.workspace.project import ProjectPlace

__all__ = ["Absent", "ContextComponent", "Family", "Loaded", "Sample", "Sampling", "Unavailable"]


class Sampling(msgspec.Struct, frozen=True):
    """The inputs of components: the time, the directory, the model and the agent of the next turn."""

    place: ProjectPlace
    model: ModelInfo
    agent: Agent
    now: Callable[[], datetime]
    """The local time of the user."""
    environ: Mapping[str, str]
    home: Path
    instructions: tuple[str, ...] = ()
    """The ``instructions`` of the configuration: paths, patterns and URLs."""
    nested: tuple[str, ...] = ()
    """Instruction files next to files that the model read, in the order of their discovery."""
    skills: tuple[Skill, ...] = ()
    """The skills of the directory; none if the model has no tool to load one."""
    rules: Ruleset = ()
    """The rules of the next turn."""
    served: tuple[McpInstructions, ...] = ()
    """The instructions of the MCP servers that the agent may use."""
    begins: bool = True
    """Whether an epoch begins. Only then the baseline is used."""


class ContextComponent(msgspec.Struct, frozen=True):
    """One independently loaded fact under a stable, namespaced key.

    ``load`` returns a Loaded sample with both of its texts, Absent if there is no fact, or Unavailable if it cannot be
    loaded now. Its timeout is ``limits.COMPONENT_LOAD_S``.
    """

    key: str
    load: Callable[[Sampling], Awaitable[Sample]]
    waits: bool | Literal["begins"] = True
    """Whether loading may wait, or only when an epoch begins. Otherwise it runs without a task and a timeout."""

    def may_wait(self, sampling: Sampling) -> bool:
        """Whether loading may wait in this sampling."""
        return sampling.begins if self.waits == "begins" else self.waits


class Family(msgspec.Struct, frozen=True):
    """Components that are found at each sampling, such as those of instruction files. Their keys begin with ``key``."""

    key: str
    find: Callable[[Sampling], Awaitable[Sequence[ContextComponent]]]
