"""Published settings: fetches what hosts publish under ``/.well-known/opencode``, only on the user's request."""

import ipaddress
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TypeVar
from urllib.parse import urlsplit

import msgspec

from turnkeeper.core import settings, trust
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.refresh import fetched
from turnkeeper.workspace import well_known
from turnkeeper.workspace.auth import WellKnown
from turnkeeper.workspace.setting_references import FILE_BYTES_MAX

T = TypeVar("T")

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class HostLogin(msgspec.Struct, frozen=True):
    """The login of a host: a command that prints a token, and the variable that holds it in the host's settings."""

    env: str
    command: Annotated[tuple[str, ...], msgspec.Meta(max_length=100)] = ()


class RemoteConfig(msgspec.Struct, frozen=True):
    """The URL of further settings of a host, with the headers of the request."""

    url: str
    headers: dict[str, str] = {}


class Published(msgspec.Struct, frozen=True):
    """The published file of a host."""

    config: dict[str, object] = {}
    remote_config: RemoteConfig | None = None
    auth: HostLogin | None = None


def host_address(given: str) -> str:
    """The address of a host as it is stored. Raises Invalid for an address that cannot be trusted."""
    try:
        parts = urlsplit(given)
        is_plain = parts.hostname and not (parts.username or parts.password or parts.query or parts.fragment)
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and _is_this_machine(parts.hostname or ""))
    except ValueError as error:
        raise Invalid(f"{given!r} is no address of a host: {error}") from error
    if not is_plain or parts.scheme not in ("http", "https"):
        raise Invalid(f"{given!r} is no address of a host; write https://HOST, without a password, ? or #")
    if not is_safe:
        raise Invalid(f"{given} has to begin with https://: its settings say where keys are sent")
    return given.rstrip("/")


async def host_login(address: str) -> HostLogin:
    """The login that a host publishes. Raises Invalid if there is none."""
    published = await _published(address)
    if published.auth is None:
        raise Invalid(f"{address}{well_known.PATH} has no `auth`, which says how to log in")
    if _VARIABLE.fullmatch(published.auth.env) is None:
        raise Invalid(f"{address}{well_known.PATH}: auth.env is no name of a variable: {published.auth.env!r:.80}")
    if any("\0" in word for word in published.auth.command):
        raise Invalid(f"{address}{well_known.PATH}: auth.command cannot be run")
    return published.auth


async def fetch_published(environ: Mapping[str, str]) -> dict[str, JsonObject]:
    """Fetch and keep the settings of every host where the user is logged in.

    Raises Invalid, and keeps the stored settings, if those of one host cannot be fetched or used.
    """
    found = {address: await fetch_host(address, host, environ) for address, host in well_known.hosts(environ).items()}
    kept = {address: dict(config) for address, config in found.items()}
    if kept:
        well_known.file(environ).change(lambda before: kept)
    return found


async def fetch_host(address: str, host: WellKnown, environ: Mapping[str, str]) -> JsonObject:
    """The settings of one host, for a user with this token. Raises Invalid if they cannot be fetched or used."""
    found = await _settings(address, host, environ)
    # If invalid settings were stored, every later command would fail instead of this one.
    if errors := well_known.source(address, host, found, environ, Path.cwd()).errors:
        raise Invalid(errors[0])
    return found


async def _settings(address: str, host: WellKnown, environ: Mapping[str, str]) -> JsonObject:
    published = await _published(address)
    if published.remote_config is None:
        return published.config
    variables = {**environ, host.key: host.token}

    def filled(text: str) -> str:
        return trust.REFERENCE.sub(lambda one: variables.get(one[2], "") if one[1] == "env" else "", text)

    remote, where = filled(published.remote_config.url), published.remote_config.url
    host_address(remote.partition("?")[0])
    headers = {name: filled(value) for name, value in published.remote_config.headers.items()}
    # A redirect would take the headers, and the token in them, to another host.
    further = _decoded(await _fetched(remote, headers), where, dict[str, object])
    inner = further.get("config")  # Hosts give settings as they are, or as they publish them.
    return settings.merged([published.config, inner if isinstance(inner, dict) else further])


async def _published(address: str) -> Published:
    url = f"{host_address(address)}{well_known.PATH}"
    return _decoded(await _fetched(url), url, Published)


async def _fetched(url: str, headers: Mapping[str, str] | None = None) -> bytes:
    return await fetched(url, headers, bytes_max=FILE_BYTES_MAX, follows=False)


def _is_this_machine(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _decoded(content: bytes, url: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(f"{url} has no settings: {error}") from error
