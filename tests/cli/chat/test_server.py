"""A chat with a session of a server, which has the same code as one of a store."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

import pytest
from pane import Pane
from server_process import serving
from workshop import Shop

Opens = Callable[..., AbstractContextManager[Pane]]
IDLE = r"Alt-Enter new line"


def says(at: Pane, text: str, *keys: str) -> None:
    at.types(text)
    at.presses(*(keys or ("Enter",)))


def test_a_chat_with_a_server_asks_steers_and_comes_back(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with serving(shop) as url:
        with opens("chat", "--server", url) as at:
            at.shows("No model has a key", "new session", IDLE)
            says(at, "run `until test -e go; do sleep 0.05; done`")
            at.shows(r"\? Run a command\?", "until test -e go", "y = once")
            says(at, "y")
            at.shows("Enter steers")
            says(at, "read tides.py")
            at.shows("steers: the model reads it before its next step")
            (shop.project / "go").touch()
            at.shows("tides.py has 2 lines", IDLE)
            says(at, "/model nobody/none")
            at.shows("no model 'nobody/none' can be used here")
            says(at, "run `until test -e gone; do sleep 0.05; done; echo over`")
            at.shows("echo over\ny = once")
            says(at, "y")
            at.shows("Enter steers", r"echo over  \d+ s")
            at.presses("C-d")
            at.shows("The server goes on with this answer.", "exit code 0")
        (shop.project / "gone").touch()
        with opens("chat", "--continue", "--server", url) as at:
            at.shows("» run `until test -e gone", IDLE)
            says(at, "/cost")
            at.shows(r"Session +ses_")
            at.presses("C-d")
            at.shows("exit code 0")
    calls = [part for one in shop.messages(shop.sessions()[0]["id"]) for part in one["parts"] if part["type"] == "tool"]
    assert [one["state"]["status"] for one in calls] == ["completed"] * 3


def test_a_wrong_address_is_told_before_anything_is_typed(shop: Shop, opens: Opens) -> None:
    with opens("chat", "--server", "http://127.0.0.1:9") as at:
        at.shows("turnkeeper: ", "exit code 1")


@pytest.mark.parametrize("plain", ["1", ""], ids=["lines", "full screen"])
def test_a_prompt_to_a_server_that_is_gone_says_so_at_once_and_is_sent_when_one_is_back(
    shop: Shop, opens: Opens, plain: str
) -> None:
    with ExitStack() as first:
        url = first.enter_context(serving(shop))
        with opens("chat", "--server", url, TURNKEEPER_PLAIN=plain) as at:
            at.shows("new session")
            first.close()
            says(at, "read tides.py")
            at.shows("the server does not answer; trying again")
            with serving(shop, int(url.rsplit(":", 1)[1])):
                at.shows("tides.py has 2 lines")
                at.hides("trying again")
                at.presses("C-d")
                at.shows("exit code 0")


def left_and_ran_once(shop: Shop, at: Pane) -> None:
    """The end of the tests below: the answer is whole, and the command ran once."""
    at.shows("printed nothing", "2 turns", IDLE)
    at.hides(r"running \d|trying again|Nothing to do")
    at.presses("C-d")
    at.shows("exit code 0")
    assert (shop.project / "runs").read_text() == "ran\n"


@pytest.mark.parametrize("plain", ["1", ""], ids=["lines", "full screen"])
def test_a_permission_given_while_the_server_is_gone_reaches_the_next_one(shop: Shop, opens: Opens, plain: str) -> None:
    shop.configure(permission={"bash": "ask"})
    with ExitStack() as first:
        url = first.enter_context(serving(shop))
        with opens("chat", "--server", url, TURNKEEPER_PLAIN=plain) as at:
            at.shows("new session")
            says(at, "run `echo ran >> runs`")
            at.shows(r"\? Run a command\?", "y (= )?once")
            first.close()
            says(at, "y")
            at.shows("the server does not answer; trying again")
            with serving(shop, int(url.rsplit(":", 1)[1])):
                left_and_ran_once(shop, at)


def test_a_request_stays_on_the_screen_when_the_server_is_started_again(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with ExitStack() as first:
        url = first.enter_context(serving(shop))
        with opens("chat", "--server", url, TURNKEEPER_PLAIN="") as at:
            at.shows("new session")
            says(at, "run `echo ran >> runs`")
            at.shows("y once")
            first.close()
            at.shows("the server does not answer; trying again")
            with serving(shop, int(url.rsplit(":", 1)[1])):
                at.hides("trying again")
                at.shows("y once")
                at.presses("y")
                left_and_ran_once(shop, at)


def test_ctrl_c_withdraws_a_request_of_a_server_that_was_started_again(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with ExitStack() as first:
        url = first.enter_context(serving(shop))
        with opens("chat", "--server", url, TURNKEEPER_PLAIN="") as at:
            at.shows("new session")
            says(at, "run `echo ran >> runs`")
            at.shows("y once")
            first.close()
            at.shows("the server does not answer; trying again")
            with serving(shop, int(url.rsplit(":", 1)[1])):
                at.hides("trying again")
                at.presses("C-c")
                at.shows(IDLE)
                at.hides("y once|trying again")
                at.presses("C-d")
                at.shows("exit code 0")
    assert not (shop.project / "runs").exists()
