"""The command that trusts the configuration of a project, and the question that a run asks about it."""

import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, says_yes
from turnkeeper.cli.screen import Screen, harmless, show
from turnkeeper.model.refusal import Invalid

if TYPE_CHECKING:
    from turnkeeper.workspace.config import ProjectSettings
    from turnkeeper.workspace.project import ProjectPlace

Trust = Annotated[
    bool, Parameter(help="Trust every project in this run, and its tools as they are now; also TURNKEEPER_TRUST=1.")
]


async def trust(
    directory: Annotated[
        Path | None, Parameter(metavar="DIR", help="The project; that of the working directory by default.")
    ] = None,
    /,
    *,
    revoke: Annotated[bool, Parameter(help="Trust the project no longer.")] = False,
    list_: Annotated[bool, Parameter(name="--list", help="List the trusted directories.")] = False,
    options: Options,
) -> None:
    """Let the configuration of a project allow, run and send what it says.

    A project's own opencode.json or turnkeeper.json could send your API keys to
    another address, allow commands, or read your files. Until you trust the
    project only settings hold that narrow what may happen: what it denies or
    asks, its instructions, its agents' prompts. `run` and `serve` say what they
    left out.

    The whole repository is trusted, or the directory if there is none. A model's
    commands can write its files, so its settings and its tools (Python files in
    .turnkeeper/tools, also tool and .opencode, which run with your rights and
    keys) are trusted as they are now, and so are its plugins (.turnkeeper/plugins).
    Of a file of settings that is new or has changed, only what it denies and asks
    holds, and such a tool or plugin is not loaded, until you trust the project
    again.

    With --json the answer is {"directory", "settings", "tools"}, with --revoke
    {"directory", "revoked"}, and with --list {"items": [DIRECTORY]}.

    For example:
      turnkeeper trust
      turnkeeper trust --revoke ../other-project
    """
    from turnkeeper.workspace.trust import TrustedDirectories

    known = TrustedDirectories(options.environ)
    if list_:
        if revoke or directory is not None:
            raise UsageError("--list shows all trusted directories; leave out DIR and --revoke")
        directories = known.all()
        lines = "\n".join(map(harmless, directories))
        answer_items(options, directories, lambda screen: lines, empty="No directory is trusted.")
        return
    if directory is not None and not directory.is_dir():
        raise UsageError(f"{str(directory)!r} is not a directory")
    place = await _place(directory or Path.cwd())
    if revoke:
        was_trusted = known.remove(place.top)
        value = {"directory": str(place.top), "revoked": was_trusted}
        words = "is no longer trusted" if was_trusted else "was not trusted"
        answer(options, value, lambda screen: f"{screen.path(str(place.top))} {words}.")
        return
    files, tools = _settings(place, options.environ), _tools(place, options.environ)
    settings = [f"{name} of {where}" for where, names in files.widening.items() for name in names]
    path = known.add(place.top, tools=tools, settings=files.contents)
    value = {"directory": path, "settings": settings, "tools": list(map(str, tools))}
    answer(options, value, lambda screen: _trusted(screen, path, settings, tools))


async def ask_trust(directory: Path, environ: Mapping[str, str]) -> None:
    """On a terminal, ask whether a project is trusted whose settings do not hold otherwise."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    place = await _place(directory)
    files = _settings(place, environ)  # Before the user is shown what they say: what is trusted was there then.
    held, untrusted = left_out(place, environ), _untrusted_tools(place, environ)
    if not held and not untrusted:
        return
    from turnkeeper.workspace.trust import TrustedDirectories

    lines = [f"  {harmless(where)}: {', '.join(map(harmless, names))}" for where, names in held.items()]
    lines += [f"  {harmless(str(file))}: {_kind(file)}, which run with your rights and keys" for file in untrusted]
    show("\n".join(["These settings of the project hold only if you trust it:", *lines]), to=sys.stderr)
    if says_yes(f"Trust {harmless(str(place.top))}?"):
        TrustedDirectories(environ).add(place.top, tools=untrusted, settings=files.contents)


def left_out(place: "ProjectPlace", environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The settings that do not hold in a place until it is trusted, by their file."""
    from turnkeeper.workspace import config

    return config.load(place.directory, place.worktree, environ).left_out


def _settings(place: "ProjectPlace", environ: Mapping[str, str]) -> "ProjectSettings":
    """The files of settings of a project, and what in them needs to be trusted."""
    from turnkeeper.workspace import config

    return config.project_settings(place.directory, place.worktree, environ)


def _tools(place: "ProjectPlace", environ: Mapping[str, str]) -> dict[Path, bytes]:
    """The files of tools and plugins of a project with their contents. Unreadable ones are left out."""
    from turnkeeper.workspace import setting_files, tool_files

    found: dict[Path, bytes] = {}
    directories = setting_files.project_directories(place.directory, place.worktree, environ)
    for file in tool_files.found_in(directories, (*tool_files.FOLDERS, *tool_files.PLUGIN_FOLDERS)):
        with suppress(OSError, Invalid):
            found[file] = tool_files.read(file)
    return found


def _untrusted_tools(place: "ProjectPlace", environ: Mapping[str, str]) -> dict[Path, bytes]:
    """The files of tools of a project that are not loaded until they are trusted."""
    from turnkeeper.workspace.tool_files import ToolTrust

    trust = ToolTrust(environ)
    return {file: content for file, content in _tools(place, environ).items() if not trust.allows(file, content)}


def _kind(file: Path) -> str:
    return "tools" if file.parent.name in ("tool", "tools") else "plugins"


async def _place(directory: Path) -> "ProjectPlace":
    from turnkeeper.workspace.project import identify

    return await identify(directory)


def _trusted(screen: Screen, path: str, settings: list[str], tools: Collection[Path]) -> str:
    lines = [f"{screen.path(path)} is trusted."]
    if settings:
        lines += ["These settings hold from now on:", *(f"  {harmless(name)}" for name in settings)]
    if tools:
        lines += [
            "These tools and plugins are trusted as they are now:",
            *(f"  {harmless(str(file))}" for file in tools),
        ]
    return "\n".join(lines)
