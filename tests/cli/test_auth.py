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
    assert json.loads(as_json.stdout) == [{"provider": "openai", "from": "auth.json", "kind": "api"}]
    assert "OpenAI  key from auth.json" in models.stdout
    file = shop.data / "auth.json"
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
    assert json.loads(listed.stdout) == [
        {"provider": "openai", "from": "environment variable OPENAI_API_KEY", "kind": "api"}
    ]


def test_without_keys_the_list_says_what_to_do(shop: Shop) -> None:
    run = shop.process("auth", "list")
    assert (run.returncode, run.stdout) == (0, "")
    assert "auth login PROVIDER" in run.stderr
