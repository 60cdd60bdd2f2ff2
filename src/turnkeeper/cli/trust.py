"""The command that trusts the configuration of a project, and the question that a run asks about it."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer
from turnkeeper.cli.screen import Screen, harmless, show

if TYPE_CHECKING:
    from turnkeeper.workspace.project import ProjectPlace

Trust = Annotated[
    bool, Parameter(help="Trust the configuration of every project in this run; also TURNKEEPER_TRUST=1.")
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

    The whole repository is trusted, or the directory if there is none. With
    --json the answer is {"directory", "settings"}; with --list {"directories"}.

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
        answer(options, {"directories": directories}, lambda screen: lines, empty="No directory is trusted.")
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
    held = left_out(place, options.environ)
    path = known.add(place.top)
    settings = [f"{name} of {where}" for where, names in held.items() for name in names]
    answer(options, {"directory": path, "settings": settings}, lambda screen: _trusted(screen, path, settings))


async def ask_trust(directory: Path, environ: Mapping[str, str]) -> None:
    """On a terminal, ask whether a project is trusted whose settings do not hold otherwise."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    place = await _place(directory)
    held = left_out(place, environ)
    if not held:
        return
    from turnkeeper.workspace.trust import TrustedDirectories

    lines = [f"  {harmless(where)}: {', '.join(map(harmless, names))}" for where, names in held.items()]
    show(
        "\n".join(["These settings of the project hold only if you trust it:", *lines]),
        to=sys.stderr,
    )
    print(f"Trust {harmless(str(place.top))}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        TrustedDirectories(environ).add(place.top)


def left_out(place: "ProjectPlace", environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The settings that do not hold in a place until it is trusted, by their file."""
    from turnkeeper.workspace import config

    return config.load(place.directory, place.worktree, environ).left_out


async def _place(directory: Path) -> "ProjectPlace":
    from turnkeeper.workspace.project import identify

    return await identify(directory)


def _trusted(screen: Screen, path: str, settings: list[str]) -> str:
    lines = [f"{screen.path(path)} is trusted."]
    if settings:
        lines += ["These settings hold from now on:", *(f"  {harmless(name)}" for name in settings)]
    return "\n".join(lines)
