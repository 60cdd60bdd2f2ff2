"""Login at an MCP server over HTTP: a page where the user agrees, and a redirect of the browser with a code."""

import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import anyio
from anyio import to_thread

from turnkeeper.model.config import McpConfig
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.version import __version__
from turnkeeper.workspace.browser_callback import WAIT_S, BrowserCallback
from turnkeeper.workspace.mcp_connection import McpFailure, import_package, words
from turnkeeper.workspace.mcp_http import http_client
from turnkeeper.workspace.mcp_logins import McpLogin, McpLogins
from turnkeeper.workspace.mcp_oauth import Asking, provider, settings_of

if TYPE_CHECKING:
    from mcp.client.auth import AuthorizationCodeResult

PATH: Final = "/mcp/oauth/callback"
"""Path of the redirect; equal to that of opencode, so that a registered client works for both."""
ANSWER_S: Final = 60.0
"""Time limit for the sites of a login until the page is known, and again once the user has agreed."""
HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "turnkeeper", "version": __version__},
    },
}
"""The first message of a connection, which a server refuses without a login."""


class NotOffered(Invalid):
    """The server has no login by OAuth."""


class NotRegistered(Invalid):
    """The server does not let programs register themselves."""


class LoginAttempt:
    """One login at the address of a server."""

    def __init__(
        self, name: str, config: McpConfig, logins: McpLogins, *, wait_s: float = WAIT_S, answer_s: float = ANSWER_S
    ) -> None:
        """``wait_s`` is the limit for the browser, ``answer_s`` that for the sites, before the page and after it.

        Raises NotOffered for a server that has no login.
        """
        given = settings_of(config)
        if given is None or config.url is None:
            raise NotOffered(f"the MCP server {name!r} has no login: {_why_not(config)}")
        self.name, self._config, self._url, self._given, self._logins = name, config, config.url, given, logins
        self.wait_s, self._answer_s = wait_s, answer_s
        self._limit = anyio.CancelScope()
        """Ends the requests to the sites. The read timeout of the client does not: it begins anew with each byte."""
        self.page = ""
        """The page where the user agrees; empty until it is known, and if no login is needed."""
        self.state = ""
        self.is_registered = False
        """Whether an earlier login registered this program there. A server may have forgotten that."""
        self.failure: Invalid | None = None
        """The reason why the attempt failed."""
        self.shown, self.ended = anyio.Event(), anyio.Event()
        self._code: str | None = None
        self._given_code = anyio.Event()

    async def run(self, then: Callable[[], Awaitable[None]] | None = None) -> None:
        """Log in, then call ``then``. A failure is stored in ``failure``."""
        try:
            await self._run()
            if then is not None:
                await then()
        except Invalid as failure:
            self.failure = failure
        except anyio.get_cancelled_exc_class():
            self.failure = Invalid(f"the login at {self.name} was given up")
            raise
        finally:
            self.shown.set()
            self.ended.set()

    async def done(self) -> None:
        """Wait for the end of the attempt. Raises its failure."""
        await self.ended.wait()
        if self.failure is not None:
            raise self.failure

    def give(self, code: str) -> None:
        """Pass the code of a redirect that another machine received."""
        self._code = code
        self._given_code.set()

    async def _run(self) -> None:
        try:
            await to_thread.run_sync(import_package)
        except McpFailure as failure:
            raise Invalid(str(failure)) from failure
        known = await to_thread.run_sync(self._logins.read, self._url)
        self.is_registered = self._given.client_id is None and known is not None and bool(known.client)
        callback = BrowserCallback(PATH, port=self._given.callback_port or _port_of(known))
        try:
            async with callback.open():
                await self._logged_in(callback, known)
        except OSError as error:
            if self._given.callback_port is None and _port_of(known):
                await to_thread.run_sync(self._logins.remove, self._url)  # Registered with a port that is taken now.
                return await self._run()
            raise Invalid(f"port {self._given.callback_port} of this machine cannot be used: {error}") from error

    async def _logged_in(self, callback: BrowserCallback, known: McpLogin | None) -> None:
        from mcp.client.auth import OAuthRegistrationError

        redirect_uri = self._given.redirect_uri or callback.url
        asking = Asking(redirect_uri, partial(self._show, callback), partial(self._answer, callback))
        accept = {"accept": "application/json, text/event-stream", **self._config.headers}
        try:
            auth = provider(self._config, self._logins, asking)
            with anyio.fail_after(self._answer_s) as self._limit:
                async with (
                    http_client(accept, self._answer_s, read_s=self._answer_s, auth=auth) as client,
                    client.stream("POST", self._url, json=HELLO) as response,
                ):
                    status = response.status_code
        except TimeoutError as error:
            raise Invalid(
                f"the login at {self.name} failed: its sites did not answer within {self._answer_s:g} s; "
                "nothing was stored"
            ) from error
        except OAuthRegistrationError as error:
            raise NotRegistered(
                f"{self.name} does not let programs register themselves ({words(error)}); register one there, and "
                f"give its id in `oauth.clientId` of the server"
            ) from error
        except Invalid:
            raise
        except Exception as error:
            # Errors of the package with an address or an answer must not end the sessions of this process.
            raise Invalid(f"the login at {self.name} failed: {words(error)}; nothing was stored") from error
        if not self.page and known is None:
            raise NotOffered(f"the MCP server {self.name!r} asks for no login (status {status})")
        if status in (401, 403):
            raise Invalid(f"{self.name} refuses its own token (status {status}); `turnkeeper mcp logout` deletes it")

    async def _show(self, callback: BrowserCallback, page: str) -> None:
        parts = urlsplit(page)
        asked = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if self._given.scope is not None:
            # The package requests the scope that the server proposes, and ignores the configured one.
            page = parts._replace(query=urlencode({**asked, "scope": self._given.scope})).geturl()
        self.page, self.state = page, asked.get("state", "")
        # Any open page can redirect the browser to this port, but does not know the state.
        callback.accepts = lambda given: given.get("state") == self.state
        self.shown.set()

    async def _answer(self, callback: BrowserCallback) -> "AuthorizationCodeResult":
        from mcp.client.auth import AuthorizationCodeResult

        arrived: dict[str, str] = {}

        async def arrive() -> None:
            arrived.update(await callback.arrival(self.wait_s))
            tasks.cancel_scope.cancel()

        self._limit.deadline = math.inf  # A user takes longer than a site; `wait_s` is the limit for that.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(arrive)
            await self._given_code.wait()
            tasks.cancel_scope.cancel()
        self._limit.deadline = anyio.current_time() + self._answer_s
        if self._code is not None:
            return AuthorizationCodeResult(code=self._code, state=self.state)
        if "code" not in arrived:
            why = arrived.get("error_description") or arrived.get("error") or "no code came back"
            raise Invalid(f"the login at {self.name} was refused: {why[:200]}; nothing was stored")
        return AuthorizationCodeResult(code=arrived["code"], state=arrived.get("state"), iss=arrived.get("iss"))


def _port_of(known: McpLogin | None) -> int:
    """The port of the registered redirect address, because sites compare the whole address; 0 if there is none."""
    registered = known.client.get("redirect_uris") if known is not None else None
    first = registered[0] if isinstance(registered, list) and registered else None
    try:
        return urlsplit(first).port or 0 if isinstance(first, str) else 0
    except ValueError:
        return 0


def _why_not(config: McpConfig) -> str:
    if config.url is None:
        return "it is a program"
    return "its settings say so" if config.oauth is False else "its settings have a header for that"
