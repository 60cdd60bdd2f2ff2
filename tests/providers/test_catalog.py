"""The catalogue knows limits and prices, is extended by configuration, and names what was probably meant."""

import gzip
import json
from pathlib import Path

import anyio
import anyio.abc
import pytest

from turnkeeper.core.settings import checked, typed
from turnkeeper.model.catalog import Limits, ModelInfo, Price, PriceTier
from turnkeeper.model.config import Config
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.providers.catalog import OFFLINE, Catalog
from turnkeeper.providers.models_dev import reduced
from turnkeeper.providers.refresh import location, refresh


def a_config(**settings: object) -> Config:
    return typed(checked(settings, "test"))


def test_the_shipped_catalogue_is_small_and_knows_the_large_providers() -> None:
    data = Path(__file__).parents[2] / "src/turnkeeper/providers/data/models.json.gz"
    assert data.stat().st_size < 300 * 1024
    known = Catalog(Config()).providers()
    assert {"anthropic", "openai", "google", "openrouter", "groq", "offline"} <= set(known)
    assert len(known) > 100


def test_a_model_has_its_limits_prices_and_abilities() -> None:
    assert Catalog(Config()).find("anthropic", "claude-sonnet-4-5") == ModelInfo(
        provider_id="anthropic",
        id="claude-sonnet-4-5",
        name="Claude Sonnet 4.5 (latest)",
        api_id="claude-sonnet-4-5",
        protocol="anthropic",
        limits=Limits(context=200_000, output=64_000),
        price=Price(input=3, output=15, cache_read=0.3, cache_write=3.75),
        modalities=("text", "image", "pdf"),
        reasoning=True,
        temperature=True,
        family="claude-sonnet",
        released="2025-09-29",
    )


def test_a_long_request_has_its_own_prices() -> None:
    [tier] = Catalog(Config()).find("google", "gemini-2.5-pro").tiers
    assert tier == PriceTier(above=200_000, price=Price(input=2.5, output=15, cache_read=0.25))


def test_a_tier_that_begins_later_is_not_pulled_down_by_its_copy() -> None:
    assert [tier.above for tier in Catalog(Config()).find("openai", "gpt-5.4").tiers] == [272_000]


@pytest.mark.parametrize(
    ("provider_id", "protocol", "url"),
    [
        ("anthropic", "anthropic", "https://api.anthropic.com/v1"),
        ("openai", "openai-responses", "https://api.openai.com/v1"),
        ("google", "gemini", "https://generativelanguage.googleapis.com/v1beta"),
        ("groq", "openai-chat", "https://api.groq.com/openai/v1"),
        ("fireworks-ai", "openai-chat", "https://api.fireworks.ai/inference/v1"),
        ("zenmux", "anthropic", "https://zenmux.ai/api/anthropic/v1"),
        ("opencode", "openai-responses", "https://opencode.ai/zen/v1"),
        ("azure", "openai-responses", "https://mine.openai.azure.com/openai/v1"),
    ],
)
def test_every_protocol_of_a_provider_has_its_address(provider_id: str, protocol: str, url: str) -> None:
    provider = Catalog(Config()).provider(provider_id)
    assert provider.base_url(protocol, {"AZURE_RESOURCE_NAME": "mine"}) == url


def test_every_model_of_every_provider_can_be_reached() -> None:
    """Each has a protocol we speak and an address, but for the variables in it."""
    catalog = Catalog(Config())
    spoken = {"anthropic", "openai-chat", "openai-responses", "gemini"}
    for provider in map(catalog.provider, catalog.providers()):
        for model in provider.models.values():
            assert model.protocol in spoken or model is OFFLINE
            assert model.protocol in provider.urls or model is OFFLINE


def test_an_address_names_the_variable_it_lacks() -> None:
    with pytest.raises(Invalid, match="provider 'azure' needs the environment variable AZURE_RESOURCE_NAME"):
        Catalog(Config()).provider("azure").base_url("openai-responses", {})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("anthropc/x", "there is no provider 'anthropc'; did you mean 'anthropic'"),
        ("anthropic/claude-sonet-4-5", "has no model 'claude-sonet-4-5'; did you mean 'claude-sonnet-4-5'"),
        ("anthropic/opus", "provider 'anthropic' has no model 'opus'; did you mean 'claude-"),
        ("ANTHROPIC/x", "did you mean 'anthropic'"),
        ("anthropic", "'anthropic' names no model; write it as provider/model"),
        ("anthropic/", "'anthropic/' names no model"),
        ("qqq/www", "there is no provider 'qqq'"),
    ],
)
def test_a_wrong_name_is_answered_with_near_ones(name: str, message: str) -> None:
    with pytest.raises(NotFound) as caught:
        Catalog(Config()).named(name)
    assert message in str(caught.value)


def test_a_model_id_may_hold_slashes() -> None:
    assert Catalog(Config()).named("openrouter/openai/gpt-5").id == "openai/gpt-5"


def test_configuration_adds_a_provider() -> None:
    config = a_config(
        provider={
            "local": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "My box",
                "options": {"baseURL": "http://127.0.0.1:8080/v1/"},
                "models": {
                    "tiny": {
                        "id": "org/tiny-v2",
                        "limit": {"context": 8192, "output": 1024},
                        "cost": {"input": 1, "output": 2, "context_over_200k": {"input": 3, "output": 4}},
                        "modalities": {"input": ["text", "image"]},
                        "interleaved": {"field": "reasoning_content"},
                        "options": {"seed": 7},
                    }
                },
            }
        }
    )
    catalog = Catalog(config)
    assert catalog.providers()[0] == "local"
    assert catalog.find("local", "tiny") == ModelInfo(
        provider_id="local",
        id="tiny",
        name="tiny",
        api_id="org/tiny-v2",
        protocol="openai-chat",
        limits=Limits(context=8192, output=1024),
        price=Price(input=1, output=2),
        tiers=(PriceTier(above=200_000, price=Price(input=3, output=4)),),
        modalities=("text", "image"),
        temperature=False,
        interleaved="reasoning_content",
        options={"seed": 7},
    )
    provider = catalog.provider("local")
    assert (provider.name, provider.base_url("openai-chat", {})) == ("My box", "http://127.0.0.1:8080/v1")


def test_a_protocol_is_named_by_npm_package_or_by_our_own_word() -> None:
    config = a_config(
        provider={
            "one": {"npm": "@ai-sdk/anthropic", "models": {"m": {}}},
            "two": {"npm": "@ai-sdk/anthropic", "protocol": "gemini", "models": {"m": {}}},
            "three": {"npm": "some-sdk", "models": {"m": {}, "n": {"provider": {"npm": "@ai-sdk/openai"}}}},
        }
    )
    catalog = Catalog(config)
    spoken = [catalog.named(name).protocol for name in ("one/m", "two/m", "three/m", "three/n")]
    assert spoken == ["anthropic", "gemini", "openai-chat", "openai-responses"]


def test_configuration_changes_a_model_and_keeps_the_rest_of_it() -> None:
    changes = {"cost": {"input": 1}, "limit": {"output": 10}, "name": "Cheaper"}
    config = a_config(provider={"anthropic": {"models": {"claude-sonnet-4-5": changes}}})
    before = Catalog(Config()).find("anthropic", "claude-sonnet-4-5")
    assert Catalog(config).find("anthropic", "claude-sonnet-4-5") == before.but(
        name="Cheaper", limits=before.limits.but(output=10), price=before.price.but(input=1)
    )


def test_a_second_name_for_a_known_model_has_what_the_model_has() -> None:
    config = a_config(provider={"anthropic": {"models": {"mine": {"id": "claude-sonnet-4-5", "name": "Mine"}}}})
    before = Catalog(Config()).find("anthropic", "claude-sonnet-4-5")
    assert Catalog(config).find("anthropic", "mine") == before.but(id="mine", name="Mine")


def test_models_and_providers_can_be_left_out() -> None:
    config = a_config(
        enabled_providers=["anthropic", "openai"],
        disabled_providers=["openai"],
        provider={
            "anthropic": {"whitelist": ["claude-sonnet-4-5", "claude-opus-4-5"], "blacklist": ["claude-opus-4-5"]}
        },
    )
    catalog = Catalog(config)
    assert catalog.providers() == ("anthropic",)
    assert list(catalog.provider("anthropic").models) == ["claude-sonnet-4-5"]
    with pytest.raises(NotFound):
        catalog.provider("openai")


def test_a_provider_never_shows_what_may_be_secret() -> None:
    options = {"apiKey": "s3cret", "headers": {"x-key": "s3cret"}, "other": "s3cret"}
    config = a_config(provider={"local": {"options": options, "models": {"m": {}}}})
    assert "s3cret" not in repr(Catalog(config).provider("local"))


SMALL = {
    "acme": {
        "id": "acme",
        "name": "Acme",
        "npm": "@ai-sdk/openai-compatible",
        "env": ["ACME_KEY"],
        "api": "https://acme.example/v1",
        "doc": "https://acme.example",
        "models": {
            "talk": {
                "id": "talk",
                "name": "Talk",
                "attachment": False,
                "tool_call": True,
                "reasoning": False,
                "modalities": {"input": ["text"], "output": ["text"]},
                "limit": {"context": 10, "output": 5},
                "knowledge": "2024",
            },
            "draw": {"id": "draw", "name": "Draw", "modalities": {"input": ["text"], "output": ["image"]}},
            "odd": {
                "id": "odd",
                "name": "Odd",
                "modalities": {"input": ["text"], "output": ["text"]},
                "provider": {"npm": "@ai-sdk/amazon-bedrock"},
            },
        },
    },
    "bedrock": {"name": "B", "npm": "@ai-sdk/amazon-bedrock", "models": {"m": {"modalities": {"output": ["text"]}}}},
}


def test_only_what_we_can_use_is_kept_of_a_download() -> None:
    assert json.loads(reduced(json.dumps(SMALL).encode())) == {
        "acme": {
            "name": "Acme",
            "npm": "@ai-sdk/openai-compatible",
            "env": ["ACME_KEY"],
            "api": "https://acme.example/v1",
            "models": {"talk": {"name": "Talk", "limit": {"context": 10, "output": 5}}},
        }
    }


def test_reducing_does_not_depend_on_the_order_of_providers() -> None:
    backwards = {name: SMALL[name] for name in reversed(SMALL)}
    assert reduced(json.dumps(SMALL).encode()) == reduced(json.dumps(backwards).encode())


async def a_listener() -> tuple[str, anyio.abc.Listener[anyio.abc.SocketStream]]:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    return f"http://127.0.0.1:{listener.extra(anyio.abc.SocketAttribute.local_port)}/api.json", listener


async def fetched(content: bytes, target: Path, status: bytes = b"200 OK") -> int | Invalid:
    """Refresh from a server that gives this content; a refusal is given back, for a task group would wrap it."""

    async def answer(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            head = b"HTTP/1.1 %s\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % (status, len(content))
            await stream.send(head + content)

    url, listener = await a_listener()
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, answer)
        answered: int | Invalid
        try:
            answered = await refresh(url, target)
        except Invalid as refusal:
            answered = refusal
        group.cancel_scope.cancel()
    return answered


async def test_a_refreshed_catalogue_takes_the_place_of_the_shipped_one(tmp_path: Path) -> None:
    target = location({"XDG_DATA_HOME": str(tmp_path)})
    assert target.parent == tmp_path / "turnkeeper"
    size = await fetched(json.dumps(SMALL).encode(), target)
    assert target.stat().st_size == size
    catalog = Catalog(Config(), refreshed=target)
    assert catalog.providers() == ("acme", "offline")
    assert catalog.find("acme", "talk").limits.context == 10
    assert [path.name for path in target.parent.iterdir()] == ["models.json.gz"]


@pytest.mark.parametrize(
    ("content", "status", "message"),
    [
        (b"<html>", b"200 OK", "this is no models.dev catalogue"),
        (b'{"x": {"name": 1}}', b"200 OK", "this is no models.dev catalogue"),
        (b"{}", b"503 Busy", "answered with status 503"),
    ],
)
async def test_an_answer_that_is_no_catalogue_changes_nothing(
    tmp_path: Path, content: bytes, status: bytes, message: str
) -> None:
    target = tmp_path / "models.json.gz"
    target.write_bytes(b"before")
    assert message in str(await fetched(content, target, status))
    assert target.read_bytes() == b"before"


async def test_a_host_that_does_not_answer_is_named(tmp_path: Path) -> None:
    url, listener = await a_listener()
    await listener.aclose()
    with pytest.raises(Invalid, match="cannot be fetched"):
        await refresh(url, tmp_path / "models.json.gz")


@pytest.mark.parametrize(
    "damage", [None, b"", b"no gzip", gzip.compress(b"[]", mtime=0), gzip.compress(b'{"a": ', mtime=0)[:-9]]
)
def test_a_damaged_refreshed_catalogue_is_made_good_by_the_shipped_one(tmp_path: Path, damage: bytes | None) -> None:
    target = tmp_path / "models.json.gz"
    if damage is not None:
        target.write_bytes(damage)
    assert "anthropic" in Catalog(Config(), refreshed=target).providers()
