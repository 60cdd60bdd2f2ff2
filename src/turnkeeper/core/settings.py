"""Settings: checks and merges the JSON of configuration files, and converts it to a Config."""

from typing import Final

import msgspec

from turnkeeper.core import agent_settings
from turnkeeper.core.provenance import merged
from turnkeeper.core.setting_checks import Problem, Sifted, sifted, type_problem
from turnkeeper.model.config import Config, ProviderOptions
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject

__all__ = ["checked", "merged", "sifted_settings", "typed", "with_strict_sandbox"]

_NARROWING: Final[JsonObject] = {"mode": "read-only", "network": False}
"""The values of the ``sandbox`` settings that allow commands less than any other value."""
_NEVER: Final = object()
"""Equal to no value of a setting."""


def checked(raw: Json, where: str) -> JsonObject:
    """Settings that must have the right types. Raises Invalid with their source and the key."""
    if not isinstance(raw, dict):
        raise Invalid(f"{where}: expected an object of settings")
    if (found := wrong_type(raw)) is not None:
        raise Invalid(f"{where}: {found.message}")
    return _spelt_out(agent_settings.spelt_out(raw))


def wrong_type(raw: JsonObject) -> Problem | None:
    """The first value that has the wrong type."""
    return type_problem(agent_settings.spelt_out(raw))


def sifted_settings(raw: JsonObject) -> Sifted:
    """The settings of one file that have the right types, and the problems of the others."""
    found = sifted(raw)
    return found._replace(settings=_spelt_out(found.settings))


def with_strict_sandbox(settings: JsonObject) -> JsonObject:
    """The settings of a file that a model's commands can write: they may tighten the sandbox, and never widen it."""
    given = settings.get("sandbox")
    if not isinstance(given, dict):
        return settings
    kept = {key: value for key, value in given.items() if _NARROWING.get(key, _NEVER) == value}
    return {**settings, "sandbox": kept}


def typed(raw: JsonObject) -> Config:
    """The checked settings as a Config."""
    config = msgspec.convert(raw, Config)
    known = {field.encode_name for field in msgspec.structs.fields(ProviderOptions)}
    providers = {
        name: provider.but(own_options={key: value for key, value in _options(raw, name).items() if key not in known})
        for name, provider in config.provider.items()
    }
    return config.but(provider=providers)


def _options(raw: JsonObject, provider_id: str) -> JsonObject:
    found: Json = raw
    for key in ("provider", provider_id, "options"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _spelt_out(raw: JsonObject) -> JsonObject:
    """The settings with one-word values as objects, so that a later file adds to them and does not replace them."""
    result = dict(raw)
    if isinstance(result.get("sandbox"), str):
        result["sandbox"] = {"mode": result["sandbox"]}
    if isinstance(result.get("permission"), str):
        result["permission"] = {"*": result["permission"]}
    return result
