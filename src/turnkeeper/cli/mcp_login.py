"""The commands that log in to an MCP server by OAuth, and forget the login. Neither prints a token."""

import sys
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.mcp import configured_server
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer
from turnkeeper.cli.plugged import settings_here
from turnkeeper.cli.screen import harmless
from turnkeeper.model.refusal import NotFound

if TYPE_CHECKING:
    from turnkeeper.model.config import McpConfig

Server = Annotated[str, Parameter(metavar="NAME", help="The name of the server.")]


async def auth(name: Server, /, *, options: Options) -> None:
    """Log in to an MCP server at an address, by OAuth in a browser.

    You are shown the address of a page. Open it in a browser on this machine and
    agree there within five minutes; the browser then comes back to a port of this
    machine. The sites have a minute to answer, before the page and after it.
    Tokens are kept in mcp-auth.json, which only you can read, and are renewed by
    themselves. If a server does not let programs register themselves, register a
    client there and set its id as `oauth.clientId`. With --json the answer is
    {"name", "url", "file"}; the address of the page is on standard error.

    For example:
      turnkeeper mcp auth docs
    """
    import anyio

    from turnkeeper.workspace.mcp_login import LoginAttempt
    from turnkeeper.workspace.mcp_logins import McpLogins

    config, logins = await _configured(name, options), McpLogins.of(options.environ)
    attempt = LoginAttempt(name, config, logins)

    async def show() -> None:
        await attempt.shown.wait()
        if attempt.page and attempt.is_registered:
            forget = f"`turnkeeper mcp logout {harmless(name)}` forgets the registration"
            print(f"This program is registered there. If the page does not know it: {forget}.", file=sys.stderr)
        if attempt.page:
            minutes = f"{attempt.wait_s / 60:g} minutes"
            print(f"Open this address in a browser on this machine, and agree there within {minutes}:", file=sys.stderr)
            print(harmless(attempt.page), file=sys.stderr, flush=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(show)
        await attempt.run()
    await attempt.done()
    value = {"name": name, "url": config.url, "file": str(logins.path)}
    done = "Logged in to" if attempt.page else "You are logged in already at"
    answer(options, value, lambda screen: f"{done} {harmless(name)}; the login is in {screen.path(str(logins.path))}")


async def logout(name: Server, /, *, options: Options) -> None:
    """Forget the login at an MCP server.

    The tokens are deleted from mcp-auth.json. The server is not told; it forgets
    them when they end. With --json the answer is {"name", "url", "file"}.

    For example:
      turnkeeper mcp logout docs
    """
    from turnkeeper.workspace.mcp_logins import McpLogins

    config, logins = await _configured(name, options), McpLogins.of(options.environ)
    if config.url is None or not logins.remove(config.url):
        raise NotFound(f"there is no login at {name!r} in {str(logins.path)!r}")
    value = {"name": name, "url": config.url, "file": str(logins.path)}
    answer(options, value, lambda screen: f"Deleted the login at {harmless(name)}")


async def _configured(name: str, options: Options) -> "McpConfig":
    _, loaded = await settings_here(options.environ)
    return configured_server(loaded.config, name)
