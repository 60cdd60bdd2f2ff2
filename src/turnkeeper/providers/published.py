"""Published settings: fetches what hosts publish under ``/.well-known/opencode``, only on the user's request."""

from collections.abc import Mapping
from typing import TypeVar

import msgspec

from turnkeeper.core import settings, trust
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.refresh import fetched
from turnkeeper.workspace import well_known
from turnkeeper.workspace.auth import WellKnown

T = TypeVar("T")


class RemoteConfig(msgspec.Struct, frozen=True):
    """Where a host has further settings, with the headers of the request."""

    url: str
    headers: dict[str, str] = {}


class Published(msgspec.Struct, frozen=True):
    """What a host publishes."""

    config: dict[str, object] = {}
    remote_config: RemoteConfig | None = None


async def fetch_published(environ: Mapping[str, str]) -> dict[str, JsonObject]:
    """Fetch and keep the settings of every host where the user is logged in; they are checked when they are read.

    Raises Invalid, and keeps what was there, if one of them cannot be fetched.
    """
    found = {address: await _published(address, host, environ) for address, host in well_known.hosts(environ).items()}
    kept = {address: dict(config) for address, config in found.items()}
    if kept:
        well_known.file(environ).change(lambda before: kept)
    return found


async def _published(address: str, host: WellKnown, environ: Mapping[str, str]) -> JsonObject:
    if not address.startswith(("https://", "http://127.0.0.1", "http://localhost")):
        raise Invalid(f"{address} has to begin with https://: its settings say where keys are sent")
    url = f"{address}{well_known.PATH}"
    published = _decoded(await fetched(url), url, Published)
    if published.remote_config is None:
        return published.config
    variables = {**environ, host.key: host.token}

    def filled(text: str) -> str:
        return trust.REFERENCE.sub(lambda one: variables.get(one[2], "") if one[1] == "env" else "", text)

    remote = filled(published.remote_config.url)
    headers = {name: filled(value) for name, value in published.remote_config.headers.items()}
    further = _decoded(await fetched(remote, headers), published.remote_config.url, dict[str, object])
    return settings.merged([published.config, further])


def _decoded(content: bytes, url: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(content, type=kind)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{url} has no settings: {error}") from error
