"""Services of tools that edit files: formatters, language servers, and the files that a session has read."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec
from anyio import to_thread

from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.config import Config
from turnkeeper.model.skill import Skill
from turnkeeper.text.symbols import Symbol
from turnkeeper.tools.reads import SessionReads
from turnkeeper.tools.services import ToolServices
from turnkeeper.workspace import lsp_commands, symbols
from turnkeeper.workspace.after_edit import Confine, Diagnostic
from turnkeeper.workspace.formatters import Formatters
from turnkeeper.workspace.formatters import configured as configured_formatters
from turnkeeper.workspace.lsp import LanguageServers
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.secret_files import SecretFiles
from turnkeeper.workspace.temporary import TemporaryDirectories


class FileServices(msgspec.Struct, frozen=True):
    """Makes the services of each session from the ones that all sessions share."""

    servers: LanguageServers
    temporary: TemporaryDirectories
    secrets: SecretFiles

    def of(
        self,
        config: Config,
        place: ProjectPlace,
        environ: Mapping[str, str],
        skills: tuple[Skill, ...],
        reads: SessionReads,
    ) -> ToolServices:
        """The services of a session in a place with this configuration."""
        root = place.top
        commands = lsp_commands.configured(config.lsp, environ)
        formatters = Formatters(configured_formatters(config.formatter, environ), place.directory, environ)

        async def prepare(path: Path, confine: Confine) -> None:
            if any(command.serves(path) for command in commands):
                lasting, text = partial(self._lasting, root, confine), await to_thread.run_sync(symbols.source, path)
                if text is not None:
                    await self.servers.prepare(commands, root, environ, path, text, lasting)

        async def diagnose(path: Path, before: str | None, after: str, confine: Confine) -> tuple[Diagnostic, ...]:
            lasting = partial(self._lasting, root, confine)
            return await self.servers.diagnose(commands, root, environ, path, before, after, lasting)

        async def find_symbols(path: Path, confine: Confine) -> tuple[Symbol, ...]:
            lasting, text = partial(self._lasting, root, confine), await to_thread.run_sync(symbols.source, path)
            told = await self.servers.symbols(commands, root, environ, path, text, lasting) if text is not None else ()
            return told or await symbols.own_symbols(path)

        return ToolServices(
            reads=reads,
            format=formatters.format,
            prepare=prepare,
            diagnose=diagnose,
            symbols=find_symbols,
            fetches_private=config.webfetch.private is True,
            skills=skills,
            secrets=self.secrets,
        )

    def _lasting(self, root: Path, confine: Confine) -> Confinement | None:
        """How a language server is confined. Its temporary files are not those of one session, which it outlives."""
        confined = confine()
        if confined is None or confined.temporary is None:
            return confined
        temporary = self.temporary.directory(f"language servers of {root}")
        return confined.also([temporary]).but(temporary=temporary)
