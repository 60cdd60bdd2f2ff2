"""Without a named model the best of what can be asked is chosen, and the offline model when there is nothing."""

import pytest

from turnkeeper.core.settings import checked, typed
from turnkeeper.model.config import Config
from turnkeeper.model.refusal import NotFound
from turnkeeper.providers.catalog import OFFLINE, Catalog
from turnkeeper.providers.choice import available, default_model, endpoint, small_model
from turnkeeper.providers.endpoint import Endpoint, Timeouts
from turnkeeper.workspace.auth import ApiKey, Credentials

NOBODY = Credentials({}, {})


def a_config(**settings: object) -> Config:
    return typed(checked(settings, "test"))


def chosen(config: Config, credentials: Credentials = NOBODY) -> str:
    model = default_model(Catalog(config), config, credentials)
    return f"{model.provider_id}/{model.id}"


def with_keys(*names: str) -> Credentials:
    return Credentials(dict.fromkeys(names, "k"), {})


def test_with_nothing_configured_the_offline_model_answers() -> None:
    assert chosen(Config()) == "offline/tk-1"


@pytest.mark.parametrize(
    ("credentials", "provider_id", "family"),
    [
        (with_keys("ANTHROPIC_API_KEY"), "anthropic", "claude-sonnet"),
        (with_keys("OPENAI_API_KEY"), "openai", "gpt"),
        (with_keys("GEMINI_API_KEY"), "google", "gemini-pro"),
        (with_keys("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GROQ_API_KEY"), "anthropic", "claude-sonnet"),
        (with_keys("DEEPSEEK_API_KEY", "GROQ_API_KEY"), "deepseek", "deepseek"),
        (Credentials({}, {"openai": ApiKey(key="k")}), "openai", "gpt"),
        (with_keys("GITHUB_TOKEN"), "offline", None),
        (with_keys("GITHUB_TOKEN", "HF_TOKEN", "XAI_API_KEY"), "xai", None),
    ],
)
def test_a_key_is_enough_for_a_default_model(credentials: Credentials, provider_id: str, family: str | None) -> None:
    model = default_model(Catalog(Config()), Config(), credentials)
    assert model.provider_id == provider_id
    assert family is None or model.family == family
    assert model.tool_call
    assert model.status == "active"


def test_the_newest_of_a_family_is_chosen() -> None:
    models = {
        "old-sonnet": {"family": "claude-sonnet", "release_date": "2024-01-01"},
        "new-sonnet": {"family": "claude-sonnet", "release_date": "2025-10-01"},
        "new-sonnet-dated": {"family": "claude-sonnet", "release_date": "2025-10-01"},
        "next-sonnet": {"family": "claude-sonnet", "release_date": "2026-01-01", "status": "beta"},
        "mute-sonnet": {"family": "claude-sonnet", "release_date": "2026-01-01", "tool_call": False},
        "newest-opus": {"family": "claude-opus", "release_date": "2026-01-01"},
    }
    config = a_config(provider={"local": {"options": {"baseURL": "http://h"}, "models": models}})
    assert chosen(config) == "local/new-sonnet"


def test_a_model_of_the_configuration_is_stronger_than_any_key() -> None:
    assert chosen(a_config(model="openai/gpt-5"), with_keys("ANTHROPIC_API_KEY")) == "openai/gpt-5"


def test_a_model_of_the_configuration_that_is_not_there_is_a_mistake() -> None:
    with pytest.raises(NotFound, match="did you mean"):
        chosen(a_config(model="openai/gpt-5x"))


def test_a_configured_provider_is_stronger_than_one_with_a_key() -> None:
    local = {"options": {"baseURL": "http://127.0.0.1:1/v1"}, "models": {"first": {}, "second": {}}}
    assert chosen(a_config(provider={"local": local}), with_keys("ANTHROPIC_API_KEY")) == "local/first"


def test_a_provider_without_key_and_address_cannot_be_asked() -> None:
    config = a_config(provider={"local": {"models": {"m": {}}}, "anthropic": {"options": {"timeout": 5}}})
    assert [provider.id for provider in available(Catalog(config), NOBODY)] == ["offline"]


def test_available_are_those_with_a_key_and_the_offline_one() -> None:
    credentials = Credentials({"OPENAI_API_KEY": "k"}, {"groq": ApiKey(key="k"), "gone": ApiKey(key="k")})
    assert [provider.id for provider in available(Catalog(Config()), credentials)] == ["groq", "openai", "offline"]


@pytest.mark.parametrize(
    ("provider_id", "family"),
    [
        ("anthropic", "claude-haiku"),
        ("openai", "gpt-nano"),
        ("google", "gemini-flash"),
        ("openrouter", "gemini-flash"),
        ("opencode", "gpt-nano"),
        ("github-copilot", "gpt-mini"),
        ("azure", None),
        ("offline", None),
        ("nobody", None),
    ],
)
def test_the_small_model_is_of_the_first_small_family(provider_id: str, family: str | None) -> None:
    model = small_model(Catalog(Config()), Config(), provider_id)
    assert (model.family if model else None) == family


def test_the_small_model_is_the_newest_of_its_family() -> None:
    models = {
        "b": {"family": "claude-haiku", "release_date": "2025-10-01"},
        "a": {"family": "claude-haiku", "release_date": "2024-10-01"},
        "c": {"family": "claude-haiku", "release_date": "2026-10-01", "status": "deprecated"},
    }
    config = a_config(provider={"local": {"models": models}})
    model = small_model(Catalog(config), config, "local")
    assert model is not None
    assert model.id == "b"


def test_a_configured_small_model_is_used_for_every_provider_and_an_unknown_one_is_none() -> None:
    config = a_config(small_model="openai/gpt-5-nano")
    model = small_model(Catalog(config), config, "anthropic")
    assert model is not None
    assert (model.provider_id, model.id) == ("openai", "gpt-5-nano")
    config = a_config(small_model="openai/nothing")
    assert small_model(Catalog(config), config, "anthropic") is None


def reached(config: Config, name: str, credentials: Credentials = NOBODY) -> Endpoint:
    catalog = Catalog(config)
    model = catalog.named(name)
    return endpoint(catalog.provider(model.provider_id), model, credentials)


def test_an_endpoint_has_the_key_of_the_environment_and_the_shipped_address() -> None:
    assert reached(Config(), "anthropic/claude-sonnet-4-5", with_keys("ANTHROPIC_API_KEY")) == Endpoint(
        protocol="anthropic",
        provider_id="anthropic",
        base_url="https://api.anthropic.com/v1",
        api_key="k",
        key_required=True,
    )


def test_an_endpoint_has_what_the_configuration_says() -> None:
    options = {
        "apiKey": "written",
        "baseURL": "http://proxy/v1/",
        "headers": {"x-team": "tide"},
        "headerTimeout": 1500,
        "chunkTimeout": False,
        "timeout": 60_000,
        "setCacheKey": True,
    }
    config = a_config(provider={"openai": {"options": options}})
    assert reached(config, "openai/gpt-5") == Endpoint(
        protocol="openai-responses",
        provider_id="openai",
        base_url="http://proxy/v1",
        api_key="written",
        headers={"x-team": "tide"},
        options={"setCacheKey": True},
        timeouts=Timeouts(first_byte_s=1.5, idle_s=None, total_s=60.0),
    )


def test_a_model_that_speaks_another_protocol_is_reached_at_its_own_address() -> None:
    found = reached(Config(), "zenmux/anthropic/claude-sonnet-4.5", with_keys("ZENMUX_API_KEY"))
    assert (found.protocol, found.base_url) == ("anthropic", "https://zenmux.ai/api/anthropic/v1")


def test_a_server_on_this_machine_needs_no_key() -> None:
    catalog = Catalog(Config())
    provider = catalog.provider("lmstudio")
    found = endpoint(provider, next(iter(provider.models.values())), NOBODY)
    assert (found.key_required, found.api_key) == (False, None)


def test_the_offline_model_has_no_address() -> None:
    assert reached(Config(), "offline/tk-1") == Endpoint(protocol=OFFLINE.protocol, provider_id="offline")


def test_a_base_url_in_the_environment_is_enough_and_the_configuration_is_stronger() -> None:
    environ = {"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9/v1/"}
    credentials = Credentials(environ, {})
    catalog = Catalog(Config())
    model = default_model(catalog, Config(), credentials)
    assert endpoint(catalog.provider("anthropic"), model, credentials).base_url == "http://127.0.0.1:9/v1"
    configured = Catalog(a_config(provider={"anthropic": {"options": {"baseURL": "http://127.0.0.1:8/v1"}}}))
    assert endpoint(configured.provider("anthropic"), model, credentials).base_url == "http://127.0.0.1:8/v1"
