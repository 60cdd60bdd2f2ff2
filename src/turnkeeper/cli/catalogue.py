"""The catalogue that holds where a command is given: the configuration of the directory, and the models it knows."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnkeeper.model.config import Config
    from turnkeeper.providers.catalog import Catalog


async def here(environ: Mapping[str, str]) -> "tuple[Config, Catalog]":
    """The configuration that holds here, and its catalogue. Raises Invalid if a file makes no sense."""
    from turnkeeper.providers.catalog import Catalog
    from turnkeeper.workspace.config import load
    from turnkeeper.workspace.project import identify

    place = await identify(Path.cwd())
    config = load(place.directory, place.worktree, environ).config
    newer = refreshed(environ)
    return config, Catalog(config, refreshed=newer if newer.exists() else None)


def refreshed(environ: Mapping[str, str]) -> Path:
    """Where a catalogue that was fetched is kept; the runtime looks there too."""
    from turnkeeper.workspace import paths

    return paths.cache(environ) / "models.json"
