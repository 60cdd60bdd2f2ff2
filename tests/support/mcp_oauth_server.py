"""An MCP server at an address that wants a login, and the authorization server for it, at an address of its own.

open     programs register themselves           closed   they do not; the client `known` is registered
refuses  the user never agrees
"""

import secrets
import sys
from functools import partial
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette

FAR = 4_000_000_000
SCOPES = ["tide"]


class Office(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Keeps everything in memory, and lets every user agree."""

    def __init__(self, manner: str) -> None:
        self._manner = manner
        self._clients: dict[str, OAuthClientInformationFull] = {}
        self._codes: dict[str, AuthorizationCode] = {}
        self._access: dict[str, AccessToken] = {}
        self._refresh: dict[str, RefreshToken] = {}
        self._issued = 0

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id == "known":
            address = f"http://127.0.0.1:{sys.argv[4]}/mcp/oauth/callback"
            given = {"client_id": "known", "redirect_uris": [address], "scope": "tide wind"}
            return OAuthClientInformationFull.model_validate({**given, "token_endpoint_auth_method": "none"})
        return self._clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self._clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        address = str(params.redirect_uri)
        if self._manner == "refuses":
            return construct_redirect_uri(address, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or SCOPES,
            expires_at=FAR,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self._codes[code.code] = code
        return construct_redirect_uri(address, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self._codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self._codes[authorization_code.code]
        return self._token(client.client_id, authorization_code.scopes)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self._refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self._refresh[refresh_token.token]
        self._access.clear()
        return self._token(client.client_id, scopes or refresh_token.scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self._access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self._access.clear()
        self._refresh.clear()

    def _token(self, client_id: str, scopes: list[str]) -> OAuthToken:
        self._issued += 1
        access, refresh = f"access-{self._issued}-{secrets.token_hex(8)}", f"refresh-{secrets.token_hex(8)}"
        self._access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, expires_at=FAR)
        self._refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))


def tides(office: Office, url: str, issuer: str) -> MCPServer[Any]:
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(url),
        required_scopes=SCOPES,
        validate_token_resource=False,
    )
    made: MCPServer[Any] = MCPServer("locked", token_verifier=ProviderTokenVerifier(office), auth=settings)

    @made.tool()
    def who() -> str:
        """Who calls."""
        token = get_access_token()
        assert token is not None
        return f"{token.token.rsplit('-', 1)[0]} for {' '.join(token.scopes)}"

    return made


async def main(manner: str, port: str, its_port: str, callback_port: str = "0") -> None:
    url, issuer = f"http://127.0.0.1:{port}/mcp", f"http://127.0.0.1:{its_port}"
    office = Office(manner)
    registering = ClientRegistrationOptions(
        enabled=manner != "closed", valid_scopes=["tide", "wind"], default_scopes=SCOPES
    )
    routes = create_auth_routes(office, AnyHttpUrl(issuer), client_registration_options=registering)
    apps = [(Starlette(routes=routes), its_port), (tides(office, url, issuer).streamable_http_app(), port)]
    async with anyio.create_task_group() as group:
        for app, own in apps:
            config = uvicorn.Config(app, host="127.0.0.1", port=int(own), log_level="info")
            group.start_soon(uvicorn.Server(config).serve)


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]))
