"""Sources of plugins: packages that the settings name, and files in directories of settings."""

import importlib.metadata
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.tools.custom_files import imported
from turnkeeper.workspace import tool_files
from turnkeeper.workspace.tool_files import PLUGIN_FOLDERS, ToolTrust

GROUP: Final = "turnkeeper.plugins"
"""The entry point group of packages with plugins."""

FUNCTION: Final = "plugin"
"""The function of a file that makes the plugin."""

JAVASCRIPT: Final = "a plugin in JavaScript, which only opencode runs"

PluginFunction: TypeAlias = Callable[..., object]


class PluginSource(NamedTuple):
    """A plugin that may be loaded. A source that is not equal to an earlier one is loaded again."""

    name: str
    kind: Literal["package", "file"]
    where: str
    """The path of the file, or the target of the entry point."""
    stamp: tuple[int, ...] = ()
    """Times, size and inode of the file, which show that it changed."""
    options: str = "{}"
    """Options of the settings, as JSON."""
    problem: str | None = None
    """The reason why the plugin is not loaded."""
    is_untrusted: bool = False


class Packages:
    """The installed packages with plugins."""

    def __init__(self) -> None:
        self._known: dict[str, importlib.metadata.EntryPoint] | None = None

    def named(self, name: str) -> importlib.metadata.EntryPoint | None:
        """The plugin of this name. The names are read once: packages are installed before the program starts."""
        if self._known is None:
            self._known = {one.name: one for one in importlib.metadata.entry_points(group=GROUP)}
        return self._known.get(name)

    @property
    def names(self) -> Collection[str]:
        """The names of all plugins of packages."""
        self.named("")
        return sorted(self._known or ())


def named_packages(given: Sequence[tuple[str, JsonObject]], packages: Packages) -> Iterator[PluginSource]:
    """The packages that the settings name, in their order."""
    for name, options in given:
        entry = packages.named(name)
        if entry is None:
            yield PluginSource(name, "package", name, problem=_missing(name, packages))
        else:
            yield PluginSource(name, "package", entry.value, options=encode(options).decode())


def _missing(name: str, packages: Packages) -> str:
    if name.endswith(".py"):
        return "a file is no package; put it into a `plugins` directory beside the settings"
    if name.startswith(("file:", ".", "/", "@")) or "@" in name or name.endswith((".js", ".ts")):
        return JAVASCRIPT
    there = ", ".join(packages.names) or "none"
    return f"no installed package has a plugin of this name in the entry point group {GROUP!r}; there are: {there}"


def files_in(directories: Sequence[Path], trust: ToolTrust) -> Iterator[PluginSource]:
    """The files of plugins in directories of settings. A file that may not be loaded has a ``problem``."""
    for path in tool_files.found_in(directories, PLUGIN_FOLDERS):
        try:
            found = os.stat(path)
        except OSError:
            continue
        stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
        source = PluginSource(path.stem, "file", str(path), stamp)
        try:
            is_allowed = trust.allows_directory(path.parent.parent) and trust.allows(path, tool_files.read(path))
        except (OSError, Invalid) as error:
            yield source._replace(problem=str(error))
            continue
        if is_allowed:
            yield source
        else:
            yield source._replace(problem="not trusted; `turnkeeper trust` trusts it as it is now", is_untrusted=True)


def function_of(source: PluginSource, packages: Packages, trust: ToolTrust) -> PluginFunction:
    """The function that makes the plugin. It runs the module, and raises what that raises."""
    if source.kind == "package":
        entry = packages.named(source.name)
        assert entry is not None, "the source was found"
        made = entry.load()
    else:
        path = Path(source.where)
        content = tool_files.read(path)
        if not trust.allows(path, content):  # It was changed since it was found.
            raise Invalid(f"{path} has changed; `turnkeeper trust` trusts it as it is now")
        made = getattr(imported(path, content, "turnkeeper_plugins"), FUNCTION, None)
    if not callable(made):
        raise Invalid(f"{source.where} has no function `{FUNCTION}(context, options)`")
    function: PluginFunction = made
    return function
