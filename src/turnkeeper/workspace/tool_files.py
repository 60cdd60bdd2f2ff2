"""Tool files: the Python files of tools and plugins, and whether they may be loaded.

They run in this process, with everything that it may do, and a model's commands can write those of a project. So such a
file is trusted by its content: ``turnkeeper trust`` records its hash, and a file that is new or changed since is not
loaded. The variable that trusts every project trusts the files that are older than this process's use of them.
"""

import ast
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from turnkeeper.core import flags
from turnkeeper.core.limits import CUSTOM_TOOL_BYTES_MAX
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files, paths
from turnkeeper.workspace.trust import FilesAtStart, TrustedDirectories

FOLDERS: Final = ("tool", "tools")
PLUGIN_FOLDERS: Final = ("plugin", "plugins")
PLUGIN_ENDINGS: Final = (".py", ".js", ".ts", ".mjs", ".mts", ".cjs", ".cts")
"""Endings of plugins. Those of opencode are not loaded, and their tools may be named in rules."""
FILES_MAX: Final = 200
"""Maximum number of files that are used in one folder."""


def found_in(
    directories: Sequence[Path], folders: Sequence[str] = FOLDERS, endings: tuple[str, ...] = (".py",)
) -> Iterator[Path]:
    """The files of tools, or those in other ``folders``, in directories of settings.

    A folder that may not be listed is there in place of its files: to read it says why they are missing.
    """
    for folder in (directory / name for directory in directories for name in folders):
        try:
            names = sorted(os.listdir(folder))
        except OSError as error:
            if isinstance(error, PermissionError) and os.path.lexists(folder):
                yield folder
            continue
        yield from [folder / name for name in names if name.endswith(endings) and not name.startswith("_")][:FILES_MAX]


def names_in(directories: Sequence[Path]) -> Iterator[str]:
    """The possible names of the tools in these directories, found by parsing: no file is run.

    opencode's tools are JavaScript files with the names of the tools.
    """
    for file in found_in(directories):
        with suppress(OSError, Invalid, SyntaxError, ValueError, RecursionError):
            yield from _names(ast.parse(read(file)))
    for folder in (directory / name for directory in directories for name in FOLDERS):
        with suppress(OSError):
            yield from (stem for name in os.listdir(folder) if (stem := name.partition(".")[0]))


def has_plugins(directories: Sequence[Path]) -> bool:
    """Whether there are plugins, also of opencode, which may bring any tool."""
    return next(found_in(directories, PLUGIN_FOLDERS, PLUGIN_ENDINGS), None) is not None


def _names(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.keyword(arg="name" | "permission", value=ast.Constant(value=str() as name)):
                yield name


def read(file: Path) -> bytes:
    """The content of a file of tools. Raises OSError or Invalid if it cannot be read."""
    return files.read_bytes(file, CUSTOM_TOOL_BYTES_MAX)


class ToolTrust:
    """Decides which files of tools may be loaded."""

    def __init__(self, environ: Mapping[str, str], *, started_ns: int | None = None) -> None:
        """``started_ns`` is when the program was started, by the clock of the file system; now by default."""
        self._environ = environ
        self._at_start = FilesAtStart(started_ns)

    def allows(self, file: Path, content: bytes) -> bool:
        """Whether a file with this content, which was just read, may be loaded."""
        directory = file.parent.parent
        if self._is_own(directory):
            return True
        if self._trusted.are_all and self._at_start.has(file, content, (file, file.parent, directory)):
            return True
        return directory in self._trusted and self._trusted.has_tools(file, content)

    def allows_directory(self, directory: Path) -> bool:
        """Whether a directory of settings is trusted now, so that what was loaded from it may be used."""
        return self._is_own(directory) or directory in self._trusted

    def _is_own(self, directory: Path) -> bool:
        """Whether a directory is the user's own: no command that a model runs can write there."""
        own = (paths.config(self._environ, paths.OPENCODE), paths.config(self._environ))
        named = flags.CONFIG_DIR.values(self._environ)
        return directory in own or any(str(directory) == name for name in named)

    @cached_property
    def _trusted(self) -> TrustedDirectories:
        return TrustedDirectories(self._environ)
