"""Context Component: the seam to one fact of the System Context. One file, one key, one load.

A component of your own::

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
from turnkeeper.workspace.project import ProjectPlace

__all__ = ["Absent", "ContextComponent", "Family", "Loaded", "Sample", "Sampling", "Unavailable"]


class Sampling(msgspec.Struct, frozen=True):
    """What components may look at: the moment, the place and the circumstances of the turn that is about to begin."""

    place: ProjectPlace
    model: ModelInfo
    agent: Agent
    now: Callable[[], datetime]
    """The local time of the user."""
    environ: Mapping[str, str]
    home: Path
    instructions: tuple[str, ...] = ()
    """Paths, patterns and addresses from the configuration."""
    nested: tuple[str, ...] = ()
    """Instruction files that were met while reading, in the order they were discovered."""
    begins: bool = True
    """Whether an epoch begins: only then is a baseline written."""


class ContextComponent(msgspec.Struct, frozen=True):
    """One independently loaded fact under a stable, namespaced key.

    ``load`` takes one coherent sample and gives both renderings of it (Loaded), says that there is nothing (Absent),
    or that it cannot be had now (Unavailable). It may wait, but not for long: see ``limits.COMPONENT_LOAD_S``.
    """

    key: str
    load: Callable[[Sampling], Awaitable[Sample]]
    waits: bool | Literal["begins"] = True
    """Whether loading may wait for something, or only when an epoch begins. Else it needs neither task nor limit."""

    def may_wait(self, sampling: Sampling) -> bool:
        """Whether loading may wait for something now."""
        return sampling.begins if self.waits == "begins" else self.waits


class Family(msgspec.Struct, frozen=True):
    """Components whose number is known only when one looks, as there are many instruction files.

    ``key`` is how all their keys begin.
    """

    key: str
    find: Callable[[Sampling], Awaitable[Sequence[ContextComponent]]]
