"""Toolboxes: the tools of a place, from the program, from plugins, from a person's own files and from MCP servers."""

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from turnkeeper.core import flags
from turnkeeper.tools.custom_files import CustomTools
from turnkeeper.tools.mcp_tools import McpTools
from turnkeeper.tools.tool import AnyTool
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.mcp_server import McpServer
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.setting_files import CodeDirectory
from turnkeeper.workspace.tool_files import ToolTrust

log = logging.getLogger(__name__)

UNTRUSTED: Final = (
    "not loaded until they are trusted: the tools in %s; `turnkeeper trust %s` trusts them as they are now"
)
TAKEN: Final = "the tool %s of an MCP server is left out: another tool has that name; give the server another name"


class Toolboxes:
    """Gives the tools of places; equal ones are the same object."""

    def __init__(
        self,
        tools: Callable[[], Sequence[AnyTool]],
        environ: Mapping[str, str],
        *,
        kept_max: int,
        started_ns: int | None = None,
    ) -> None:
        """``tools`` loads those of the program, when they are first needed."""
        self._load_tools, self._environ, self._kept_max = tools, environ, kept_max
        self._toolbox: Toolbox | None = None
        self._tools: tuple[AnyTool, ...] = ()
        self._custom, self._mcp = CustomTools(ToolTrust(environ, started_ns=started_ns)), McpTools()
        self._kept = dict[tuple[int, ...], Toolbox]()
        self._told_untrusted: set[tuple[Path, ...]] = set()
        self._told_taken: set[str] = set()

    def built_in(self) -> Toolbox:
        """The tools of the program. Raises Invalid for names that cannot be."""
        if self._toolbox is None:
            self._tools = tuple(self._load_tools())
            self._toolbox = Toolbox(self._tools)
        return self._toolbox

    def close(self) -> None:
        """End the background work of tools that were loaded from files."""
        self._custom.close()

    def names(self) -> set[str]:
        """The names of the program's tools and of what rules call them."""
        self.built_in()
        return {name for tool in self._tools for name in (tool.name, tool.permission)}

    async def of(
        self,
        place: ProjectPlace,
        directories: Sequence[CodeDirectory],
        servers: Sequence[McpServer] = (),
        plugged: Sequence[AnyTool] = (),
    ) -> Toolbox:
        """The tools of a place: those of the program, of plugins, and a person's own, each stronger than the last.

        A person's own are in ``directories`` of settings. Those of servers come besides: they take the place of no
        other tool.
        """
        built_in = self.built_in()
        own = await self._own(place, directories)
        if not flags.PURE.is_on(self._environ):
            own = (*own, *(tool for tool in plugged if tool.name not in {one.name for one in own}))
        taken = {tool.name for tool in (*own, *self._tools)}
        served = [tool for tool in self._mcp.of(servers) if self._is_free(tool.name, taken)]
        self._mcp.forget_closed()
        if not own and not served:
            return built_in
        key = tuple(map(id, (*own, *served)))  # The toolbox holds the tools, so that no other gets one of these ids.
        known = self._kept.pop(key, None)
        if known is None:
            names = {tool.name for tool in own}
            known = Toolbox([*own, *served, *(tool for tool in self._tools if tool.name not in names)])
        self._kept[key] = known
        while len(self._kept) > self._kept_max:
            del self._kept[next(iter(self._kept))]
        return known

    async def _own(self, place: ProjectPlace, directories: Sequence[CodeDirectory]) -> tuple[AnyTool, ...]:
        if flags.PURE.is_on(self._environ):
            return ()
        own, untrusted = await self._custom.load([one.path for one in directories])
        if untrusted and untrusted not in self._told_untrusted:
            self._told_untrusted.add(untrusted)
            log.warning(UNTRUSTED, ", ".join(map(str, untrusted)), place.directory)
        return own

    def _is_free(self, name: str, taken: set[str]) -> bool:
        """Whether a tool of a server can have its name; a server must not take the place of another tool."""
        if name not in taken:
            taken.add(name)
            return True
        if name not in self._told_taken:
            self._told_taken.add(name)
            log.warning(TAKEN, name)
        return False
