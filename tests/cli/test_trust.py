"""The command `trust`, and what a run says of a project that is not trusted."""

import json

import pytest
from workshop import Shop

WIDENING = {"model": "offline/tk-1", "permission": {"bash": "allow", "edit": "deny"}}


@pytest.fixture
def untrusting(shop: Shop) -> Shop:
    shop.configure(**WIDENING)
    return shop


def process(shop: Shop, *words: str) -> tuple[int, str, str]:
    done = shop.process(*words, TURNKEEPER_TRUST="")
    return done.returncode, done.stdout, done.stderr


def test_a_run_names_the_settings_that_it_left_out(untrusting: Shop) -> None:
    code, _, told = process(untrusting, "run", "-m", "offline/tk-1", "hello")
    assert code == 0
    assert "turnkeeper.json: not in force until the project is trusted: model, permission.bash;" in told
    assert "turnkeeper trust" in told


def test_trust_says_what_holds_from_now_on_and_can_be_revoked(untrusting: Shop) -> None:
    code, said, _ = process(untrusting, "trust", "--json")
    assert code == 0
    file = untrusting.project / "turnkeeper.json"
    assert json.loads(said) == {
        "directory": str(untrusting.project),
        "settings": [f"model of {file}", f"permission.bash of {file}"],
    }
    code, _, told = process(untrusting, "run", "hello")
    assert (code, "not in force" in told) == (0, False)
    assert json.loads(process(untrusting, "trust", "--list", "--json")[1]) == {"directories": [str(untrusting.project)]}
    assert process(untrusting, "trust", "--revoke")[1] == f"{untrusting.project} is no longer trusted.\n"
    assert process(untrusting, "trust", "--revoke")[1] == f"{untrusting.project} was not trusted.\n"
    assert "No directory is trusted." in process(untrusting, "trust", "--list")[2]


def test_a_run_with_trust_takes_the_settings_once(untrusting: Shop) -> None:
    code, _, told = process(untrusting, "run", "--trust", "hello")
    assert (code, "not in force" in told) == (0, False)
    assert json.loads(process(untrusting, "trust", "--list", "--json")[1]) == {"directories": []}


@pytest.mark.parametrize("words", [("trust", "nowhere"), ("trust", "--list", "--revoke")])
def test_wrong_arguments_of_trust_are_refused(untrusting: Shop, words: tuple[str, ...]) -> None:
    assert process(untrusting, *words)[0] == 2
