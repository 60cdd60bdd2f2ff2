"""Logging in at a host that publishes settings: its command gives a token, or the user does."""

import shlex
from typing import TYPE_CHECKING, Final

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, confirm, note, typed_line
from turnkeeper.cli.screen import harmless
from turnkeeper.model.refusal import Invalid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from turnkeeper.providers.published import HostLogin

COMMAND_S: Final = 900.0
"""How long the command of a host may take; people may have to log in with a browser meanwhile."""
TOKEN_BYTES_MAX: Final = 64 * 1024


async def login(given: str, *, is_token_piped: bool, yes: bool, options: Options) -> None:
    """Store a token for a host, and fetch the settings that it publishes. Nothing is stored if one of them fails."""
    from turnkeeper.providers import published
    from turnkeeper.workspace import auth, well_known

    environ = options.environ
    address = published.host_address(given)
    offered = await published.host_login(address)
    token = _checked(typed_line("")) if is_token_piped else await _asked(address, offered, environ, yes=yes)
    host = auth.WellKnown(key=offered.env, token=token)
    found = await published.fetch_host(address, host, environ)
    file = auth.file(environ)
    well_known.file(environ).change(lambda before: {**before, address: dict(found)})
    file.write(address, host)
    value = {"provider": address, "file": str(file.path), "doubts": (), "keys": sorted(found)}
    keys = ", ".join(map(harmless, sorted(found))) or "none"
    answer(
        options,
        value,
        lambda screen: (
            f"Stored the token of {harmless(address)} in {screen.path(str(file.path))}; its settings: {keys}"
        ),
    )


def forget(address: str, options: Options) -> None:
    """Delete the settings that were fetched from a host."""
    from turnkeeper.workspace import well_known

    kept = well_known.file(options.environ)
    if address in kept.read():
        kept.change(lambda before: {name: one for name, one in before.items() if name != address})


async def _asked(address: str, offered: "HostLogin", environ: "Mapping[str, str]", *, yes: bool) -> str:
    """The token that the command of the host prints, once the user agrees to it."""
    if not offered.command:
        raise UsageError(f"{address} names no command that gives a token; pipe one in with --key -")
    shown = harmless(shlex.join(offered.command))
    note(
        f"{harmless(address)} wants to run this command on your machine, and takes what it prints as your token. "
        f"Its settings will say where your prompts and keys are sent:\n  {shown}"
    )
    if not yes:
        confirm(
            "Run it?",
            no_terminal="nobody can be asked whether to run it; --yes agrees, and --key - takes a token instead",
            refused="the command was not run, and nothing was stored",
        )
    return _checked(await _printed(offered.command, environ))


async def _printed(command: "Sequence[str]", environ: "Mapping[str, str]") -> str:
    """The output of a command. It may use the terminal. Raises Invalid if it fails."""
    import subprocess

    import anyio

    name, content = command[0], bytearray()
    try:
        process = await anyio.open_process(
            list(command), stdin=None, stdout=subprocess.PIPE, stderr=None, env=dict(environ)
        )
    except (OSError, ValueError) as error:
        raise Invalid(f"{name!r} cannot be run: {error}; nothing was stored") from error
    assert process.stdout is not None
    try:
        with anyio.fail_after(COMMAND_S):
            async for piece in process.stdout:
                content += piece
                if len(content) > TOKEN_BYTES_MAX:
                    raise Invalid(f"{name!r} prints more than a token; nothing was stored")
            code = await process.wait()
    except TimeoutError as error:
        raise Invalid(f"{name!r} did not end within {COMMAND_S:g} s; nothing was stored") from error
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                process.kill()
            await process.aclose()
    if code != 0:
        raise Invalid(f"{name!r} failed with exit code {code}; nothing was stored")
    return content.decode("utf-8", "replace")


def _checked(text: str) -> str:
    token = text.strip()
    if not token:
        raise Invalid("there is no token; nothing was stored")
    if not token.isprintable() or " " in token:
        raise Invalid("a token is one word; nothing was stored")
    return token
