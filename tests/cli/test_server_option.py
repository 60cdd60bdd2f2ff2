"""Which commands offer --server in their help: those that can use one. The others refuse it."""

from command_table import LISTS, OBJECTS, OTHERS, STREAMS, commands, run_all
from workshop import Shop

from turnkeeper.cli.commands import SERVED

NOBODY = "http://127.0.0.1:9"
WORDS = {**LISTS, **OBJECTS, **STREAMS, **OTHERS}


def test_help_offers_a_server_where_one_can_be_used_and_nowhere_else(shop: Shop) -> None:
    known = list(commands())
    pages = run_all(shop, [f"{one.name} --help" for one in known])
    assert [one.name for one, page in zip(known, pages, strict=True) if "--store" not in page.out] == []
    offering = {one.name for one, page in zip(known, pages, strict=True) if "--server" in page.out}
    assert offering == {one.name for one in known if one.function in SERVED}


def test_a_command_that_cannot_use_a_server_refuses_it_before_it_does_anything(shop: Shop) -> None:
    local = [one.name for one in commands() if one.function not in SERVED]
    answers = run_all(shop, [f"--server {NOBODY} {name} {WORDS[name]}" for name in local])
    wrong = {
        name: answer
        for name, answer in zip(local, answers, strict=True)
        if (answer.code, answer.out, "needs a store" in answer.err) != (2, "", True)
    }
    assert wrong == {}
    assert sorted(one.name for one in shop.project.iterdir()) == ["README.md", "tides.py"]
    assert (list(shop.home.iterdir()), list(shop.data.iterdir())) == ([], [])


def test_a_command_that_can_use_a_server_asks_it(shop: Shop) -> None:
    served = [one.name for one in commands() if one.function in SERVED and one.name != "chat"]
    answers = run_all(shop, [f"--server {NOBODY} {name} {WORDS[name]}" for name in served])
    said = {name: (one.code, NOBODY in " ".join(one.err.split())) for name, one in zip(served, answers, strict=True)}
    assert said == dict.fromkeys(served, (1, True))
