"""The commands that add an MCP server to the user's own configuration file, and remove it."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import urlsplit

from cyclopts import Parameter

from turnkeeper.cli import own_files
from turnkeeper.cli.config_edit import user_file, user_files
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, note, remark
from turnkeeper.cli.plugged import settings_here
from turnkeeper.cli.screen import harmless
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.model.value import Json

if TYPE_CHECKING:
    from turnkeeper.workspace.config import LoadedSettings

NAME_MAX: Final = 64
TIMEOUT_MS_MAX: Final = 24 * 60 * 60 * 1000
_SECRET: Final = re.compile(r"token|key|secret|password|authorization", re.IGNORECASE)
_REFERS: Final = re.compile(r"\{(?:env|file):[^}]+\}")


async def add(
    name: Annotated[str, Parameter(metavar="NAME", help="The name of the server; its tools begin with it.")],
    /,
    *command: Annotated[str, Parameter(metavar="COMMAND", help="The program and its arguments, after --.")],
    url: Annotated[str | None, Parameter(metavar="URL", help="The address of a server, instead of a program.")] = None,
    env: Annotated[
        tuple[str, ...],
        Parameter(metavar="NAME=VALUE", negative=(), help="A variable that the program is run with; repeatable."),
    ] = (),
    header: Annotated[
        tuple[str, ...], Parameter(metavar="NAME=VALUE", negative=(), help="A header of each request; repeatable.")
    ] = (),
    timeout: Annotated[
        int | None, Parameter(metavar="MS", help="Milliseconds until it must have started or answered a call.")
    ] = None,
    replace: Annotated[bool, Parameter(help="Replace a server of this name in your file.", negative=())] = False,
    options: Options,
) -> None:
    """Add an MCP server to your own configuration file.

    A server is a program, which is given after --, or an address. It is written
    to your strongest file in ~/.config/turnkeeper, whose comments and layout
    stay; if that cannot be done, you are told what to paste. The file of a project
    is never written. Nothing is started; `turnkeeper mcp list` does that. Write
    '{env:NAME}' for a secret: it is then read from the environment each time.
    With --json the answer is {"name", "file", "server", "replaced"}.

    For example:
      turnkeeper mcp add sea -- python tides.py --metres
      turnkeeper mcp add docs --url https://mcp.example.com/mcp
      turnkeeper mcp add db --env 'TOKEN={env:DB_TOKEN}' -- db-server
    """
    server = _server(command, url, env, header, timeout)
    _check_name(name)
    file = user_file(options.environ)
    others = [one for one in user_files(options.environ) if one != file and _has(one, name)]
    if others:
        raise Conflict(f"{str(others[0])!r} has a server {name!r}; `turnkeeper mcp remove {name}` removes it")
    replaced = _has(file, name)
    if replaced and not replace:
        raise Conflict(f"{str(file)!r} has a server {name!r} already; --replace puts this one in its place")
    own_files.write(file, own_files.edited(file, lambda text: _with(file, text, name, server), _paste(name, server)))
    value = {"name": name, "file": str(file), "server": server, "replaced": replaced}
    answer(options, value, lambda screen: f"Wrote {harmless(name)} to {screen.path(str(file))}")
    _, loaded = await settings_here(options.environ)
    _remark(name, server, loaded)


async def remove(
    name: Annotated[str, Parameter(metavar="NAME", help="The name of the server.")], /, *, options: Options
) -> None:
    """Remove an MCP server from your own configuration files.

    A server that another file defines, such as that of a project or of opencode,
    is not removed: you are told which file it is. With --json the answer is
    {"name", "files"}.

    For example:
      turnkeeper mcp remove sea
    """
    from turnkeeper.text import member_edit, toml_edit

    def without(file: Path, text: str) -> str | None:
        if file.suffix == ".toml":
            return toml_edit.without_toml_table(text, ("mcp", name))
        return member_edit.without_jsonc_member(text, ("mcp", name))

    advice = f"remove the server {name!r} from `mcp` in it"
    changed = [str(file) for file in own_files.edit_all(user_files(options.environ), without, advice)]
    _, loaded = await settings_here(options.environ)
    elsewhere = [source.place(("mcp", name)) for source in loaded.setting_sources("mcp", name)]
    if not changed:
        raise NotFound(_not_yours(name, elsewhere, sorted(loaded.config.mcp)))
    value = {"name": name, "files": changed}
    answer(
        options,
        value,
        lambda screen: "\n".join(f"Removed {harmless(name)} from {screen.path(file)}" for file in changed),
    )
    if elsewhere:
        remark(options, f"{harmless(elsewhere[-1])} defines a server of this name, too; it stays.")


def _server(
    command: tuple[str, ...], url: str | None, env: tuple[str, ...], header: tuple[str, ...], timeout: int | None
) -> dict[str, Json]:
    """The settings of a server as they are written. Raises UsageError."""
    if (url is None) == (not command):
        raise UsageError("give a program after --, as in `-- python tides.py`, or an address with --url")
    if command and command[0].startswith(("http://", "https://")):
        raise UsageError(f"{command[0]!r:.200} is an address and no program; give it with --url")
    found: dict[str, Json]
    if url is not None:
        address = urlsplit(url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UsageError(f"{url!r:.200} is no address; write it as https://mcp.example.com/mcp")
        if env:
            raise UsageError("--env is for a program; an address is given headers with --header")
        found = {"type": "remote", "url": url, **_named("headers", header)}
    else:
        if header:
            raise UsageError("--header is for an address; a program is given variables with --env")
        found = {"type": "local", "command": list(command), **_named("environment", env)}
    if timeout is not None and not 1 <= timeout <= TIMEOUT_MS_MAX:
        raise UsageError(f"--timeout is in milliseconds, from 1 to {TIMEOUT_MS_MAX:,}")
    return {**found, **({"timeout": timeout} if timeout is not None else {})}


def _named(key: str, given: tuple[str, ...]) -> dict[str, Json]:
    values: dict[str, str] = {}
    for one in given:
        name, sign, value = one.partition("=")
        if not sign or not name.strip():
            raise UsageError(f"{name!r:.80} has no value; write it as NAME=VALUE")
        values[name.strip()] = value
    return {key: values} if values else {}


def _check_name(name: str) -> None:
    if not name.strip() or not name.isprintable() or len(name) > NAME_MAX:
        raise Invalid(f"{name!r:.80} cannot name a server; use up to {NAME_MAX} letters, digits, '_' and '-'")


def _has(file: Path, name: str) -> bool:
    import tomllib

    from turnkeeper.text import jsonc

    text = own_files.text_of(file)
    try:
        given = tomllib.loads(text) if file.suffix == ".toml" else jsonc.parse(text) if text.strip() else {}
    except ValueError as error:  # Also of both parsers.
        raise Invalid(f"{str(file)!r} cannot be read: {error}; `turnkeeper config edit` opens it") from error
    servers = given.get("mcp") if isinstance(given, dict) else None
    return isinstance(servers, dict) and name in servers


def _with(file: Path, text: str, name: str, server: dict[str, Json]) -> str | None:
    from turnkeeper.text import member_edit, toml_edit

    if file.suffix != ".toml":
        return member_edit.with_jsonc_member(text, ("mcp", name), server)
    rest = toml_edit.without_toml_table(text, ("mcp", name))
    return toml_edit.with_toml_table(rest, ("mcp", name), server) if rest is not None else None


def _paste(name: str, server: dict[str, Json]) -> str:
    return f'put this below "mcp": {json.dumps(name)}: {json.dumps(server)}'


def _remark(name: str, server: dict[str, Json], loaded: "LoadedSettings") -> None:
    """Say what the user may not expect, on standard error."""
    from turnkeeper.core.mcp import sanitised

    for key in ("environment", "headers"):
        values = server.get(key)
        for given, value in values.items() if isinstance(values, dict) else ():
            if _SECRET.search(given) and not _REFERS.search(str(value)):
                note(f"The value of {harmless(given)} is in the file as you gave it; '{{env:NAME}}' keeps it out.")
    alike = [one for one in loaded.config.mcp if one != name and sanitised(one) == sanitised(name)]
    if alike:
        note(f"The tools of {harmless(alike[0])} begin with {sanitised(name)}_, too; another name tells them apart.")
    setters = loaded.setting_sources("mcp", name)
    if len(setters) > 1 or not setters:
        place = setters[-1].place(("mcp", name)) if setters else "a stronger file"
        note(f"Here {harmless(place)} decides about a server of this name, too; see `turnkeeper config explain mcp`.")


def _not_yours(name: str, elsewhere: list[str], known: list[str]) -> str:
    if elsewhere:
        return f"the MCP server {name!r} is defined in {elsewhere[-1]}, which this command does not change"
    return f"there is no MCP server {name!r} in your own files; the servers here are: {', '.join(known) or '(none)'}"
