"""Ctrl-C at a prompt of the command line: the first one ends the command with 130, and nothing is stored or sent."""

import signal

import pytest
from workshop import Shop


@pytest.mark.parametrize(
    ("words", "prompt"),
    [
        (("auth", "login"), "Provider (a number, or part of its name): "),
        (("auth", "login", "anthropic"), "Key of Anthropic (not shown): "),
        (("models", "test", "host/large"), "Go on? [y/N] "),
        (("run", "hello"), "? [y/N] "),
    ],
)
def test_the_first_interrupt_at_a_prompt_ends_the_command(shop: Shop, words: tuple[str, ...], prompt: str) -> None:
    options = {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "x"}
    shop.configure(provider={"host": {"protocol": "openai-chat", "options": options, "models": {"large": {}}}})
    asks_for_trust = words[0] == "run"
    with shop.terminal(*words, env={"TURNKEEPER_TRUST": "" if asks_for_trust else "1"}) as seat:
        seat.read_until(prompt)
        seat.process.send_signal(signal.SIGINT)
        assert seat.end() == 130
    assert "Traceback" not in seat.seen
    assert not (shop.data / "auth.json").exists()


def test_an_interrupt_at_the_doubts_about_a_key_stores_nothing(shop: Shop) -> None:
    with shop.terminal("auth", "login", "anthropic") as seat:
        seat.read_until("Key of Anthropic (not shown): ")
        seat.types("sk-or-v1-0123456789012345678901234567890123456789\n")
        seat.read_until("Store it nevertheless? [y/N] ")
        seat.process.send_signal(signal.SIGINT)
        assert seat.end() == 130
    assert not (shop.data / "auth.json").exists()
