"""Language server commands: the configured and built-in servers, with their command lines and files."""

import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from turnkeeper.core import flags
from turnkeeper.model.config import LspConfig

log = logging.getLogger(__name__)


class ServerCommand(NamedTuple):
    """The command line of a language server, and the extensions of its files."""

    name: str
    command: tuple[str, ...]
    extensions: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    initialization: bytes = b"{}"
    """Its initialization options as JSON."""

    def serves(self, path: Path) -> bool:
        """Whether the server is for this kind of file."""
        return path.suffix.lower() in self.extensions


PYTHON: Final = (".py", ".pyi")
_SCRIPTS: Final = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")
C: Final = (".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx")
BUILT_IN: Final[tuple[ServerCommand, ...]] = (
    ServerCommand("pyright", ("pyright-langserver", "--stdio"), PYTHON),
    ServerCommand("pylsp", ("pylsp",), PYTHON),
    ServerCommand("typescript", ("typescript-language-server", "--stdio"), _SCRIPTS),
    ServerCommand("gopls", ("gopls",), (".go",)),
    ServerCommand("rust-analyzer", ("rust-analyzer",), (".rs",)),
    ServerCommand("clangd", ("clangd",), C),
)
"""Servers that are used if they are installed. Of several for a kind of file the first one is used."""


TY: Final = ServerCommand("ty", ("ty", "server"), PYTHON)
"""The Python server that comes first if a variable enables it."""


def configured(config: bool | Mapping[str, LspConfig] | None, environ: Mapping[str, str]) -> tuple[ServerCommand, ...]:
    """The servers that a configuration asks for and that are installed."""
    if not config and not isinstance(config, Mapping):
        return ()
    own: Mapping[str, LspConfig] = config if isinstance(config, Mapping) else {}
    known = {server.name: server for server in (TY, *BUILT_IN)}
    wanted = [_changed(known.get(name), name, given) for name, given in own.items() if not given.disabled]
    found = [server for server in wanted if server is not None and program_of(server, environ)]
    for server in (TY, *BUILT_IN) if flags.LSP_TY.is_on(environ) else BUILT_IN:
        covered = {extension for one in found for extension in one.extensions}
        if server.name not in own and not covered & set(server.extensions) and program_of(server, environ):
            found.append(server)
    return tuple(found)


def _changed(known: ServerCommand | None, name: str, given: LspConfig) -> ServerCommand | None:
    command = given.command or (known.command if known is not None else ())
    extensions = given.extensions or (known.extensions if known is not None else ())
    if not command or not extensions:
        log.warning("the language server %r needs a command and extensions; it is not used", name)
        return None
    options = msgspec.json.encode(given.initialization)
    return ServerCommand(name, command, extensions, tuple(sorted(given.env.items())), options)


def program_of(server: ServerCommand, environ: Mapping[str, str]) -> str | None:
    """The path of a server's program, if it is installed."""
    return shutil.which(server.command[0], path=environ.get("PATH"))
