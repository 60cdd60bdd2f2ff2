"""The commands about plugins: which there are and what became of each, and a scaffold for a new one."""

import re
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items
from turnkeeper.cli.plugged import plugged_directory
from turnkeeper.cli.screen import Column, Screen, harmless, one_line, table
from turnkeeper.core import flags

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from turnkeeper.model.plugin import PluginStatus

NAME: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")

PLUGIN: Final = '''\
"""A plugin for Turnkeeper. Its place is ~/.config/turnkeeper/plugins, or .turnkeeper/plugins of a project."""


def NAME(text: str) -> str:
    """Says something louder."""
    return text.upper()


def system(input, output):
    output.system.append("Be brief.")


def plugin(context, options):
    return {"tool": {"NAME": NAME}, "experimental.chat.system.transform": system}
'''

_NAMES_OF_PLUGIN: Final = ("plugin", "system")
"""Names that the file of a new plugin defines besides its tool."""

TEST: Final = '''\
"""Runs the plugin in a session whose model is a script: python test_NAME.py, or pytest."""

import tempfile
from pathlib import Path

import turnkeeper


def test_the_plugin_changes_a_turn() -> None:
    model = turnkeeper.Scripted().calls("NAME", text="low tide").then().says("done")
    with tempfile.TemporaryDirectory() as place:
        plugins = Path(place, "plugins")
        plugins.mkdir()
        (plugins / "NAME.py").write_bytes(Path(__file__).with_name("NAME.py").read_bytes())
        environ = {"HOME": place, "TURNKEEPER_CONFIG_DIR": place}
        settings = turnkeeper.Settings(titles=False, snapshots=False, environ=environ)
        with turnkeeper.open_sync("memory:", directory=place, provider=model, settings=settings) as tk:
            tk.ask("Say it louder.")
    assert model.requests[0].system[-1] == "Be brief."
    assert "LOW TIDE" in repr(model.requests[1].messages)


if __name__ == "__main__":
    test_the_plugin_changes_a_turn()
    print("passed")
'''


async def list_plugins(*, options: Options) -> None:
    """List the plugins of the working directory, and what became of each.

    Plugins are Python files in `plugin` and `plugins` folders of your
    configuration directory, of .turnkeeper and .opencode, and installed packages
    that the setting `plugin` names. They are loaded to find their hooks, in the
    order in which hooks call them. Those of a project are left out until it is
    trusted.

    Without --server they are loaded for the list only, so it shows what goes
    wrong when they are loaded. With --server it shows the plugins that a server
    has loaded for this directory, with the last error of each and how often
    something went wrong. A hook that took too long is stopped: it is not called
    until the plugin is loaded again.

    With --json the answer is {"items": [{"name", "kind", "source", "hooks",
    "state", "error", "failures", "failedAt", "stopped"}]}; "state" is "loaded",
    "left out" or "failed", and "failedAt" is in milliseconds since 1970.

    For example:
      turnkeeper plugin list
      turnkeeper plugin list --server http://127.0.0.1:4096
      turnkeeper plugin list --json | jq -r '.items[] | select(.error).name'
    """
    from turnkeeper.model.value import wire_name

    found = await (_served(options) if options.address else _loaded(options))
    rows = [{wire_name(name): getattr(one, name) for name in one.__struct_fields__} for one in found]
    answer_items(options, rows, lambda screen: _table(screen, found), empty=_none(options))


async def _served(options: Options) -> "Sequence[PluginStatus]":
    async with options.client() as client:
        return await client.plugins()


async def _loaded(options: Options) -> "Sequence[PluginStatus]":
    """The plugins of the working directory, loaded and removed again."""
    async with plugged_directory(options.environ) as here:
        return [plugin.status for plugin in here.plugins]


def _none(options: Options) -> str:
    if not options.address and flags.PURE.is_on(options.environ):
        return f"No plugin is loaded, because {flags.PURE.names[-1]} or {flags.PURE.names[0]} is set."
    return "There are no plugins here. A plugin is a file .turnkeeper/plugins/NAME.py; `plugin new` writes one."


async def new(
    name: Annotated[str, Parameter(metavar="NAME", help="Its name: small letters, digits and '_'.")],
    directory: Annotated[
        Path | None, Parameter(metavar="DIR", help="Where to; a new directory NAME by default.")
    ] = None,
    /,
    *,
    options: Options,
) -> None:
    """Write a new plugin and a test for it, which passes as it is.

    No file is overwritten. The plugin is used once you copy it into a `plugins`
    folder of your configuration directory or of a project.

    With --json the answer is {"name", "files"}.

    For example:
      turnkeeper plugin new louder
      cd louder && python test_louder.py
    """
    if NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} cannot name a plugin; begin with a small letter and use letters, digits and '_'")
    if iskeyword(name) or name in _NAMES_OF_PLUGIN:
        raise UsageError(f"{name!r} cannot name a plugin: it means something in its Python file; choose another name")
    hidden = find_spec(name)
    if hidden is not None and hidden.origin is not None:  # It is None for a folder that has no module.
        raise UsageError(f"{name!r} cannot name a plugin: its test would hide the Python module of this name")
    folder = directory or Path(name)
    files = {folder / f"{name}.py": PLUGIN, folder / f"test_{name}.py": TEST}
    for file in files:
        if file.exists():
            raise UsageError(f"{str(file)!r} is there already; choose another name or directory")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            with file.open("x", encoding="utf-8") as writing:
                writing.write(text.replace("NAME", name))
    except OSError as error:
        raise UsageError(f"{str(error.filename)!r} cannot be written: {error.strerror}") from error
    value = {"name": name, "files": [str(file) for file in files]}
    use = f"To use it, copy {name}.py into .turnkeeper/plugins of a project."
    answer(options, value, lambda screen: "\n".join([*(f"wrote {screen.path(str(file))}" for file in files), use]))


def _table(screen: Screen, found: "Sequence[PluginStatus]") -> str:
    return table(
        screen,
        Column("PLUGIN", [harmless(one.name) for one in found], ("cyan",)),
        Column("STATE", [one.state for one in found]),
        Column("HOOKS", [", ".join(map(_hook(one), one.hooks)) for one in found], least=16),
        Column("ERROR", [_error(screen, one) for one in found], ("red",), least=16),
        Column("FROM", [screen.path(one.source) for one in found], ("dim",), least=12, keep_end=True),
    )


def _hook(plugin: "PluginStatus") -> "Callable[[str], str]":
    return lambda name: f"{name} (stopped)" if name in plugin.stopped else name


def _error(screen: Screen, plugin: "PluginStatus") -> str:
    if plugin.error is None:
        return ""
    times = f" ({plugin.failures} times)" if plugin.failures > 1 else ""
    when = f", {screen.ago(plugin.failed_at)}" if plugin.failed_at is not None and plugin.state == "loaded" else ""
    return one_line(f"{plugin.error}{times}{when}")
