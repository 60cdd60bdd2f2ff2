"""``turnkeeper models``: what can be used, and where the key comes from."""

import json

from workshop import Shop

LOCAL = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "http://127.0.0.1:9/v1", "headers": {"x-token": "header-secret"}},
    "models": {"small": {"name": "Small", "limit": {"context": 8000, "output": 1000}}},
}


def test_with_nothing_configured_there_is_the_offline_model(shop: Shop) -> None:
    run = shop.process("models")
    assert run.returncode == 0
    assert "offline/tk-1  default, small  200K" in run.stdout
    assert "auth login PROVIDER" in run.stderr


def test_a_key_in_the_environment_makes_a_provider_usable(shop: Shop) -> None:
    run = shop.process("models", "--json", ANTHROPIC_API_KEY="env-secret")
    found = json.loads(run.stdout)
    assert [one["id"] for one in found["items"]] == ["anthropic", "offline"]
    assert found["items"][0]["key"] == "environment variable ANTHROPIC_API_KEY"
    assert found["default"].startswith("anthropic/claude-")
    assert found["small"].startswith("anthropic/claude-")
    names = [f"{one['providerID']}/{one['id']}" for one in found["items"][0]["models"]]
    assert {found["default"], found["small"]} <= set(names)
    assert "env-secret" not in run.stdout


def test_a_configured_host_needs_no_key_and_shows_no_secret(shop: Shop) -> None:
    shop.configure(provider={"local": LOCAL}, model="local/small")
    run, as_json = shop.process("models"), shop.process("models", "--json")
    assert "local/small  default, small  8K" in run.stdout
    assert "needs no key" in run.stdout
    assert "header-secret" not in run.stdout + as_json.stdout


def test_a_provider_without_a_key_says_how_to_get_one(shop: Shop) -> None:
    run = shop.process("models", "groq")
    assert run.stdout.startswith("Groq  no key: set GROQ_API_KEY, or run `turnkeeper auth login groq`\n")
    assert "groq/" in run.stdout


def test_an_unknown_provider_is_refused_with_what_looks_alike(shop: Shop) -> None:
    run = shop.process("models", "anthropc")
    assert (run.returncode, run.stdout) == (1, "")
    assert "did you mean 'anthropic'" in run.stderr


def test_a_default_model_that_does_not_exist_is_told_and_the_list_is_shown(shop: Shop) -> None:
    shop.configure(provider={"local": LOCAL}, model="local/smal")
    run, as_json = shop.process("models"), json.loads(shop.process("models", "--json").stdout)
    assert (run.returncode, "local/small" in run.stdout) == (0, True)
    assert "The default model 'local/smal' cannot be used: " in run.stderr
    assert "did you mean 'small'" in run.stderr
    assert (sorted(as_json), as_json["items"][0]["id"]) == (["items"], "local")


def test_a_wrong_configuration_is_named(shop: Shop) -> None:
    (shop.project / "turnkeeper.json").write_text("{")
    run = shop.process("models")
    assert run.returncode == 1
    assert "turnkeeper.json" in run.stderr


def test_a_search_goes_through_all_providers_and_those_with_a_key_come_first(shop: Shop) -> None:
    run = shop.process("models", "--search", "GROQ llama", "--json")
    found = json.loads(run.stdout)
    assert (found["search"], found["fits"]) == ("GROQ llama", True)
    assert {one["provider"] for one in found["items"]} >= {"groq"}
    assert all("llama" in f"{one['id']} {one['name']}".lower() for one in found["items"])
    keyed = json.loads(shop.process("models", "--search", "sonnet", "--json", POE_API_KEY="env-secret").stdout)
    assert keyed["items"][0]["provider"] == "poe"
    assert keyed["items"][0]["key"] == "environment variable POE_API_KEY"
    table = shop.process("models", "anthropic", "--search", "sonnet 4.5")
    assert "anthropic/claude-sonnet-4-5" in table.stdout
    assert "openrouter/" not in table.stdout


def test_a_search_has_models_first_in_which_each_word_begins_a_piece(shop: Shop) -> None:
    found = json.loads(shop.process("models", "anthropic", "--search", "sonnet 4", "--json").stdout)["items"]
    ids = [one["id"] for one in found]
    assert ids.index("anthropic/claude-sonnet-4-5") < ids.index("anthropic/claude-3-5-sonnet-20240620")


def test_a_search_that_fits_nothing_gives_the_nearest(shop: Shop) -> None:
    near = shop.process("models", "--search", "claude sonet")
    assert near.returncode == 0
    assert "No model has 'claude sonet'; these are the nearest." in near.stderr
    assert near.stdout.splitlines()[1].startswith("anthropic/claude-")
    far = json.loads(shop.process("models", "--search", "xqzwvjk", "--json").stdout)
    assert far == {"search": "xqzwvjk", "fits": False, "items": []}
    assert shop.process("models", "--search", " ").returncode == 2
