"""Settings that hosts publish under ``/.well-known/opencode``, for a user who is logged in there.

They are fetched only when the user asks for it (``auth login URL``, ``config fetch``), and kept in the data directory.
An entry of ``auth.json`` of the type ``wellknown`` makes those of its host hold; without it they do not.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.workspace import auth, paths, settings_source
from turnkeeper.workspace.auth import WellKnown
from turnkeeper.workspace.private_json import PrivateJson
from turnkeeper.workspace.settings_source import SettingsSource

NAME: Final = "well-known.json"
PATH: Final = "/.well-known/opencode"


def file(environ: Mapping[str, str]) -> PrivateJson[dict[str, dict[str, object]]]:
    """The settings of hosts, by their address. The file decides where keys are sent, so only the user may write it."""
    return PrivateJson(
        paths.data(environ) / NAME,
        dict[str, dict[str, object]],
        {},
        advice="; `turnkeeper config fetch` fetches it anew",
    )


def hosts(environ: Mapping[str, str]) -> dict[str, WellKnown]:
    """The hosts where the user is logged in, with the variable and the token of each. Raises Invalid."""
    stored = auth.credentials(environ).stored
    return {address.rstrip("/"): one for address, one in stored.items() if isinstance(one, WellKnown)}


def sources(environ: Mapping[str, str], folder: Path) -> Iterator[SettingsSource]:
    """The fetched settings of these hosts, which may refer to their tokens as variables."""
    try:
        logged_in = hosts(environ)
        fetched: Mapping[str, JsonObject] = file(environ).read() if logged_in else {}
    except Invalid as error:
        yield settings_source.broken(str(paths.data(environ)), "well-known", str(error))
        return
    for address, host in logged_in.items():
        if address in fetched:
            yield source(address, host, fetched[address], environ, folder)


def source(
    address: str, host: WellKnown, published: JsonObject, environ: Mapping[str, str], folder: Path
) -> SettingsSource:
    """The settings that a host published, with their problems."""
    variables = {**environ, host.key: host.token}
    found = settings_source.of_text(json.dumps(published), f"{address}{PATH}", folder, variables, "well-known")
    return found._replace(marks={})
