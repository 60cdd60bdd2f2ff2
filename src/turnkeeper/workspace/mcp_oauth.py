"""OAuth at an MCP server by the package ``mcp``: its requests carry a token, which is renewed, or a user is asked.

The package does not store the expiry of a token and the address where it is renewed. Both are stored here.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from anyio import to_thread

from turnkeeper.model.config import McpConfig, McpOAuthConfig
from turnkeeper.workspace.mcp_logins import McpLogin, McpLogins

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken

CLIENT_NAME: Final = "Turnkeeper"


class Asking(NamedTuple):
    """The steps of a login that need the user: the redirect address, showing the page, and waiting for the code."""

    redirect_uri: str
    show: Callable[[str], Awaitable[None]]
    answer: Callable[[], "Awaitable[AuthorizationCodeResult]"]


def settings_of(config: McpConfig) -> McpOAuthConfig | None:
    """The settings of a login; None if the server has none: it is a program, or has its own header, or says so."""
    if config.url is None or config.oauth is False or "authorization" in map(str.lower, config.headers):
        return None
    return config.oauth if isinstance(config.oauth, McpOAuthConfig) else McpOAuthConfig()


def provider(config: McpConfig, logins: McpLogins, asking: Asking) -> "OAuthClientProvider":
    """The authentication that adds a token to the requests to a server. The package must be imported."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata, OAuthMetadata, ProtectedResourceMetadata
    from pydantic import AnyUrl

    given = settings_of(config)
    assert config.url is not None, "the caller looked"
    assert given is not None, "the caller looked"
    known = logins.read(config.url) or McpLogin()
    storage = _Storage(config.url, given, logins, asking.redirect_uri)
    made = OAuthClientProvider(
        config.url,
        OAuthClientMetadata(
            redirect_uris=[AnyUrl(asking.redirect_uri)],
            client_name=CLIENT_NAME,
            scope=given.scope,
            token_endpoint_auth_method="client_secret_post" if given.client_secret else "none",
        ),
        storage,
        redirect_handler=asking.show,
        callback_handler=asking.answer,
    )
    storage.provider = made
    if known.tokens is not None:
        made.context.token_expiry_time = known.expires
        made.context.oauth_metadata = OAuthMetadata.model_validate(known.metadata) if known.metadata else None
        made.context.protected_resource_metadata = (
            ProtectedResourceMetadata.model_validate(known.resource) if known.resource else None
        )
    return made


class _Storage:
    """Token storage for the package. It does not cache: another process may have renewed a token in the file."""

    def __init__(self, url: str, given: McpOAuthConfig, logins: McpLogins, redirect_uri: str) -> None:
        self._url, self._given, self._logins, self._redirect_uri = url, given, logins, redirect_uri
        self.provider: OAuthClientProvider | None = None

    async def get_tokens(self) -> "OAuthToken | None":
        from mcp.shared.auth import OAuthToken

        known = self._logins.read(self._url)
        return OAuthToken.model_validate(known.tokens) if known is not None and known.tokens is not None else None

    async def set_tokens(self, tokens: "OAuthToken") -> None:
        assert self.provider is not None, "it was made with this storage"
        context = self.provider.context
        client, metadata, resource = context.client_info, context.oauth_metadata, context.protected_resource_metadata
        login = McpLogin(
            client=client.model_dump(mode="json", exclude_none=True) if client is not None else {},
            tokens=tokens.model_dump(mode="json", exclude_none=True),
            expires=context.token_expiry_time,
            metadata=metadata.model_dump(mode="json", exclude_none=True) if metadata is not None else None,
            resource=resource.model_dump(mode="json", exclude_none=True) if resource is not None else None,
        )
        await to_thread.run_sync(partial(self._logins.write, self._url, login))

    async def get_client_info(self) -> "OAuthClientInformationFull | None":
        from mcp.shared.auth import OAuthClientInformationFull

        if self._given.client_id is not None:
            secret = self._given.client_secret
            return OAuthClientInformationFull.model_validate(
                {
                    "client_id": self._given.client_id,
                    "client_secret": secret,
                    "redirect_uris": [self._redirect_uri],
                    "token_endpoint_auth_method": "client_secret_post" if secret else "none",
                }
            )
        known = self._logins.read(self._url)
        return OAuthClientInformationFull.model_validate(known.client) if known is not None and known.client else None

    async def set_client_info(self, client_info: "OAuthClientInformationFull") -> None:
        known = McpLogin(client=client_info.model_dump(mode="json", exclude_none=True))
        await to_thread.run_sync(partial(self._logins.write, self._url, known))
