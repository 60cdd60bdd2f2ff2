"""The choices of a directory for a prompt: models, agents and files; on a store or on a server."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import anyio

from turnkeeper.model.refusal import Refusal

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.client.values import AgentSummary
    from turnkeeper.model.agent import Agent

FILES_MAX: Final = 20_000
"""How many files completion looks at."""
PARSED_BYTES_MAX: Final = 256 * 1024
"""How large a file is whose symbols are completed: it is parsed between two keys."""
FILES_FRESH_S: Final = 3.0
FILES_TIMEOUT_S: Final = 2.0
"""How long a list of files may take. Until it is there, the one before is used."""


@dataclass(frozen=True)
class Choices:
    """Models and agents with what each is about."""

    models: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)
    """The agents that can answer the user."""
    mentionable: Mapping[str, str] = field(default_factory=dict)
    """The agents that a prompt can mention, to have them work in a Child Session."""
    windows: Mapping[str, int] = field(default_factory=dict)
    """The context window of each model, in tokens; 0 if it is unknown."""


async def load(tk: "Turnkeeper | Client", directory: Path | None) -> Choices:
    """The current choices of a directory. Raises Invalid if its configuration is wrong."""
    from turnkeeper.api import Turnkeeper

    if not isinstance(tk, Turnkeeper):
        providers = (await tk.providers(directory=directory)).providers
        served = {f"{one.id}/{id}": model for one in providers for id, model in one.models.items()}
        windows = {name: model.limit.context for name, model in served.items()}
        return _choices(
            {name: model.name for name, model in served.items()}, windows, await tk.agents(directory=directory)
        )
    from turnkeeper.providers import choice
    from turnkeeper.workspace import auth
    from turnkeeper.workspace.project import identify

    directories = tk.runtime.directories
    found = directories.config(await identify(directory or Path.cwd()))
    usable = choice.available(found.catalog, auth.credentials(directories.environ(found.config)))
    models = {f"{one.id}/{id}": model for one in usable for id, model in one.models.items()}
    windows = {name: model.limits.context for name, model in models.items()}
    return _choices({name: model.name for name, model in models.items()}, windows, found.agents.values())


def _choices(
    models: Mapping[str, str], windows: Mapping[str, int], agents: "Iterable[Agent | AgentSummary]"
) -> Choices:
    shown = [one for one in agents if not one.hidden]
    return Choices(
        models=models,
        windows=windows,
        agents={one.name: one.description or "" for one in shown if one.mode != "subagent"},
        mentionable={one.name: one.description or "" for one in shown if one.mode != "primary"},
    )


class ProjectFiles:
    """The files of a directory, without ignored ones, as ripgrep lists them. None: the directory is not here."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._looked = -FILES_FRESH_S
        self._parsed: tuple[str, int] | None = None
        self._symbols: list[str] = []
        self.names: list[str] = []
        """The first files, by name, at the last look."""

    def is_of(self, directory: Path | None) -> bool:
        """Whether these are the files of a directory."""
        return self._directory == directory

    def symbols(self, file: str) -> list[str]:
        """The names of the symbols of a file, as far as our own parsers know them."""
        from turnkeeper.workspace.symbols import parsed_file

        if self._directory is None:
            return []
        path = self._directory / file
        try:
            version = file, path.stat().st_mtime_ns
        except (OSError, ValueError):
            return []
        if version != self._parsed:
            names = [one.name for one in parsed_file(path, PARSED_BYTES_MAX)]
            self._symbols, self._parsed = list(dict.fromkeys(names)), version
        return self._symbols

    async def look(self) -> None:
        """Look at the names, unless that was a moment ago."""
        if self._directory is not None and time.monotonic() - self._looked >= FILES_FRESH_S:
            from turnkeeper.workspace import ripgrep

            with anyio.move_on_after(FILES_TIMEOUT_S):
                try:
                    self.names = await ripgrep.list_files(self._directory, lambda name: True, FILES_MAX)
                except Refusal:
                    self.names = []
            self._looked = time.monotonic()
