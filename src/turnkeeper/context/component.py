"""Context Component: the seam to one fact of the System Context. One file, one key, one load."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.context import Sample
from turnkeeper.workspace.project import ProjectPlace


@dataclass(frozen=True)
class Sampling:
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


@dataclass(frozen=True)
class ContextComponent:
    """One independently loaded fact under a stable, namespaced key.

    ``load`` takes one coherent sample and gives both renderings of it, or says that it cannot be had now.
    """

    key: str
    load: Callable[[Sampling], Awaitable[Sample]]
