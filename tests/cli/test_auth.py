"""``turnkeeper auth``: keys are kept for their owner alone, and never shown."""

import json
import os
import stat

import pytest
from workshop import Shop

SECRET = "sk-very-secret"


def test_a_piped_key_is_kept_listed_used_and_forgotten_and_never_shown(shop: Shop) -> None:
    kept = shop.process("auth", "login", "openai", stdin=f"{SECRET}\n")
    listed = shop.process("auth", "list")
    as_json = shop.process("auth", "list", "--json")
    models = shop.process("models")
    assert [run.returncode for run in (kept, listed, as_json, models)] == [0, 0, 0, 0]
    file = shop.data / "auth.json"
    assert json.loads(as_json.stdout)["items"] == [
        {"provider": "openai", "from": "auth.json", "where": str(file), "kind": "api"}
    ]
    assert f"auth.json: {file}" in listed.stdout
    assert "OpenAI  key from auth.json" in models.stdout
    assert json.loads(file.read_text()) == {"openai": {"type": "api", "key": SECRET}}
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    forgotten = shop.process("auth", "logout", "openai")
    again = shop.process("auth", "logout", "openai")
    assert [run.returncode for run in (forgotten, again)] == [0, 1]
    said = "".join(run.stdout + run.stderr for run in (kept, listed, as_json, models, forgotten, again))
    assert SECRET not in said
    assert json.loads(file.read_text()) == {}


def test_a_key_is_typed_without_being_shown(shop: Shop) -> None:
    with shop.terminal("auth", "login", "anthropic") as seat:
        seat.read_until("Key of Anthropic (not shown): ")
        seat.types(f"{SECRET}\n")
        assert seat.end() == 0
    assert SECRET not in seat.seen
    assert json.loads((shop.data / "auth.json").read_text())["anthropic"]["key"] == SECRET


def test_the_end_of_input_where_a_key_is_asked_for_is_told_in_one_line(shop: Shop) -> None:
    with shop.terminal("auth", "login", "anthropic") as seat:
        seat.read_until("Key of Anthropic (not shown): ")
        seat.types("\x04")
        assert seat.end() == 1
    assert "Traceback" not in seat.seen
    assert "turnkeeper: no key was typed; nothing was stored" in seat.seen
    assert not (shop.data / "auth.json").exists()


@pytest.mark.parametrize(
    ("words", "stdin", "said", "code"),
    [
        (["anthropic", "--key", SECRET], "", "others can see a key", 2),
        (["anthropic"], "\n", "a key is one word", 1),
        (["anthropic", "--key", "-"], "two words\n", "a key is one word", 1),
        (["anthropc"], f"{SECRET}\n", "did you mean 'anthropic'", 1),
        (["offline"], f"{SECRET}\n", "needs no key", 1),
        (
            ["openai", "--key-stdin"],
            "sk-ant-api03-very-secret\n",
            "looks like a key of Anthropic",
            1,
        ),
        ([], f"{SECRET}\n", "name the provider", 2),
        (["openai", "--browser"], "", "only OpenRouter offers a login by browser", 2),
        (["openrouter", "--browser", "--key-stdin"], f"{SECRET}\n", "not both", 2),
    ],
)
def test_what_is_no_key_is_not_kept(shop: Shop, words: list[str], stdin: str, said: str, code: int) -> None:
    run = shop.process("auth", "login", *words, stdin=stdin)
    assert (run.returncode, run.stdout) == (code, "")
    assert said in run.stderr
    assert SECRET not in run.stderr
    assert not (shop.data / "auth.json").exists()


def test_a_key_in_the_environment_goes_before_one_that_is_kept(shop: Shop) -> None:
    kept = shop.process("auth", "login", "openai", stdin=f"{SECRET}\n", OPENAI_API_KEY="other")
    assert "OPENAI_API_KEY is set in the environment and has precedence" in kept.stderr
    listed = shop.process("auth", "list", "--json", OPENAI_API_KEY="other")
    assert json.loads(listed.stdout)["items"] == [
        {
            "provider": "openai",
            "from": "environment variable OPENAI_API_KEY",
            "where": "OPENAI_API_KEY",
            "kind": "api",
        }
    ]


def test_without_keys_the_list_says_what_to_do(shop: Shop) -> None:
    run = shop.process("auth", "list")
    assert (run.returncode, run.stdout) == (0, "")
    assert "turnkeeper auth login" in run.stderr


def test_a_provider_is_chosen_by_typing_and_a_foreign_key_is_asked_about(shop: Shop) -> None:
    with shop.terminal("auth", "login", env={"TERM": "dumb"}) as seat:
        first = seat.read_until("part of its name): ")
        assert "  1  Anthropic  anthropic" in first
        seat.types("nothing like it\n")
        seat.read_until("part of its name): ")
        seat.types("openrouter\n")
        seat.read_until("Key of OpenRouter (not shown): ")
        seat.types("'Bearer gsk_very-secret'\n")
        asked = seat.read_until("[y/N] ")
        assert "Removed from around the key: the quotes, 'Bearer'." in asked
        assert "looks like a key of Groq (groq), not of OpenRouter" in asked
        seat.types("y\n")
        assert seat.end() == 0
    assert "gsk_very-secret" not in seat.seen
    assert json.loads((shop.data / "auth.json").read_text()) == {
        "openrouter": {"type": "api", "key": "gsk_very-secret"}
    }


def test_a_key_in_the_configuration_is_listed_with_its_file_and_line(shop: Shop) -> None:
    shop.configure(provider={"groq": {"options": {"apiKey": SECRET}}})
    run = shop.process("auth", "list", "--json", TURNKEEPER_TRUST="1")
    [found] = json.loads(run.stdout)["items"]
    assert (found["from"], found["kind"]) == ("configuration", None)
    assert found["where"].startswith(f"{shop.project / 'turnkeeper.json'}:1:")
    assert SECRET not in run.stdout
