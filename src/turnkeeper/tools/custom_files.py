"""Files of custom tools: looked for in ``tool`` and ``tools`` below directories of settings.

The tools of a file are isolated: they run on threads of the file.
"""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from anyio import to_thread

from turnkeeper.outside_code.threads import OutsideThreads
from turnkeeper.tools.isolation import isolated
from turnkeeper.tools.tool import AnyTool, Tool
from turnkeeper.workspace import tool_files
from turnkeeper.workspace.tool_files import ToolTrust

log = logging.getLogger(__name__)


class _File(NamedTuple):
    """A file, and the values by which a change of it is detected."""

    path: Path
    stamp: tuple[int, ...]


class LoadedTools(NamedTuple):
    """The tools in files, and the files that were left out because they are not trusted."""

    tools: tuple[AnyTool, ...]
    untrusted: tuple[Path, ...] = ()


class CustomTools:
    """Loads the tools in files that may be loaded, and each file again only when it has changed."""

    def __init__(self, trust: ToolTrust) -> None:
        self._trust = trust
        self._loaded: dict[_File, tuple[AnyTool, ...]] = {}
        self._threads: dict[_File, OutsideThreads] = {}

    async def load(self, directories: Sequence[Path]) -> LoadedTools:
        """The tools in these directories; of two with one name the later one.

        A file that cannot be loaded is named in a warning, and costs nothing else.
        """
        found = list(_files(directories))
        if any(file not in self._loaded for file in found):
            await to_thread.run_sync(self._load, found)
        trusted = set(filter(self._trust.allows_directory, directories))
        used = [file for file in found if file in self._loaded and file.path.parent.parent in trusted]
        named = {tool.name: tool for file in used for tool in self._loaded[file]}
        return LoadedTools(tuple(named.values()), tuple(file.path for file in found if file not in used))

    def close(self) -> None:
        """End the threads and tasks of the tools, except running calls."""
        for threads in self._threads.values():
            threads.close()

    def _load(self, found: Sequence[_File]) -> None:
        wanted = {file.path for file in found}
        for stale in [file for file in self._loaded if file.path in wanted and file not in found]:
            self._loaded.pop(stale, None)
            if (threads := self._threads.pop(stale, None)) is not None:
                threads.close()
        for file in found:
            if file not in self._loaded:
                tools = self._tools_in(file.path)
                if tools is not None:
                    self._threads[file] = threads = OutsideThreads(f"tools in {file.path.name}")
                    self._loaded[file] = tuple(isolated(tool, threads) for tool in tools)

    def _tools_in(self, path: Path) -> tuple[AnyTool, ...] | None:
        """The tools in a file; None if it may not be loaded."""
        try:
            content = tool_files.read(path)
            if not self._trust.allows(path, content):
                return None
            module = imported(path, content, "turnkeeper_custom_tools")
        except (Exception, SystemExit) as error:
            # The file is a user's program: the others must work also if it raises anything.
            log.warning("the tools in %s are left out: %s: %s", path, type(error).__name__, error)
            return ()
        return tuple(value for value in vars(module).values() if isinstance(value, Tool))


def _files(directories: Sequence[Path]) -> Iterator[_File]:
    for path in tool_files.found_in(directories):
        try:
            found = os.stat(path)
        except OSError:
            continue
        yield _File(path, (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino))


def imported(path: Path, content: bytes, package: str) -> ModuleType:
    """The module of a file, loaded without the import system, which would write its cache next to the file."""
    source = decode_source(content)
    module = ModuleType(f"{package}.{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module  # Dataclasses and annotations look their module up there.
    exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    return module
