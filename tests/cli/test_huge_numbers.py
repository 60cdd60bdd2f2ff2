"""Numbers that nobody means: a command says what it takes, in plain words, and does nothing."""

import pytest
from cli_store import api
from workshop import Shop

from turnkeeper.app import Turnkeeper
from turnkeeper.cli.permission_prompt import parse_choice
from turnkeeper.cli.provider_picker import Offered, narrowed
from turnkeeper.model.question import Option, Question

HUGE = "9" * 5000
"""More digits than Python converts."""


async def one_session(opened: Turnkeeper) -> str:
    return (await opened.create(title="Wind")).id


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("session", "show", "SESSION", "--at", HUGE), "is not the number of an event"),
        (("session", "log", "SESSION", "--from", HUGE), "is not the number of an event"),
        (("session", "fork", "SESSION", "--at", HUGE), "is not the number of an event"),
        (("session", "list", "--limit", HUGE), "has too many digits"),
        (("session", "list", "--limit", "nan"), "'nan' is not a whole number"),
        (("session", "list", "--limit", "1e400"), "'1e400' is not a whole number"),
        (("session", "list", "--limit", "²"), "'²' is not a whole number"),
        (("session", "list", "--since", f"{HUGE}d"), "is not a time"),
        (("stats", "--days", HUGE), "has too many digits"),
        (("models", "test", "acme/large", "--timeout", "soon"), "'soon' is not a number"),
        (("session", "share", "SESSION", "--expires", f"{HUGE}d"), "is not a duration"),
        (("session", "share", "SESSION", "--expires", "999999999d"), "a link lasts for 3650d at most"),
        (("session", "delete", "--older-than", f"{HUGE}d"), "is not a duration"),
        (("agent", "create", "x", "--temperature", "1e400"), "--temperature takes a number such as 0.7"),
        (("agent", "create", "x", "--temperature", "nan"), "--temperature takes a number such as 0.7"),
        (("mcp", "add", "x", "--timeout", "9" * 25, "--", "y"), "--timeout is in milliseconds, from 1 to 86,400,000"),
    ],
)
def test_a_number_that_no_option_takes_is_refused_in_plain_words(shop: Shop, words: tuple[str, ...], why: str) -> None:
    session = api(shop.data, one_session)
    said = shop.process(*(session if word == "SESSION" else word for word in words))
    assert (said.returncode, said.stdout) == (2, "")
    line = " ".join(said.stderr.split())
    assert why in line
    assert "digits()" not in line
    assert len(line) < 400


def test_a_choice_of_too_many_digits_is_a_text() -> None:
    question = Question(question="Which?", header="", options=(Option(label="Red", description=""),))
    assert parse_choice(question, HUGE) == (HUGE,)
    offered = [Offered("acme", "Acme")]
    assert narrowed(offered, offered, HUGE) == []
    assert narrowed(offered, offered, "1") == offered
