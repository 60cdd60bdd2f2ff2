"""A session that another process runs: a chat shows what it does, answers its requests, and leaves it running."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from chat_pane import chat_pane
from pane import Pane
from workshop import Shop

Opens = Callable[..., AbstractContextManager[Pane]]
IDLE = r"Alt-Enter"


def test_the_full_screen_answers_a_request_of_another_process(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"edit": "ask"})
    with opens("chat", "-n") as first:
        first.shows(IDLE)
        first.types("replace `100` with `60` in tides.py")
        first.presses("Enter")
        first.shows("WAITING FOR YOU")
        with opens("chat", "-c") as second:
            second.shows("runs this session now", "WAITING FOR YOU", "y once", r"2 \+     return minutes / 60")
            second.presses("y")
            second.hides("WAITING")
            second.shows(r"± edit tides.py  \+1 -1", IDLE)
            second.presses("C-d")
            second.shows("exit code 0")
        first.hides("WAITING")
        first.shows(r"± edit tides.py  \+1 -1", IDLE)
        first.presses("C-d")
        first.shows("exit code 0")
    assert "60" in (shop.project / "tides.py").read_text()


def test_to_leave_does_not_stop_what_another_process_runs(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"edit": "ask"})
    with opens("chat", "-n") as first:
        first.shows(IDLE)
        first.types("replace `100` with `60` in tides.py")
        first.presses("Enter")
        first.shows("WAITING FOR YOU")
        with opens("chat", "-c") as second:
            second.shows("WAITING FOR YOU")
            second.presses("Tab")
            second.presses("C-d")
            second.shows("exit code 0")
        first.shows("WAITING FOR YOU", "y once")
        first.presses("y")
        first.shows(r"± edit tides.py  \+1 -1", IDLE)
        first.presses("C-d")
        first.shows("exit code 0")


@pytest.mark.parametrize("answer", ["y", "n"])
def test_plain_lines_answer_a_request_of_another_process(shop: Shop, answer: str) -> None:
    shop.configure(permission={"edit": "ask"})
    with chat_pane(shop, "chat", "-n", "--plain") as first:
        first.shows("offline")
        first.types("replace `100` with `60` in tides.py")
        first.presses("Enter")
        first.shows("Change a file")
        with chat_pane(shop, "chat", "-c", "--plain") as second:
            second.shows("runs this session now", "Change a file", "y = once")
            second.types(answer)
            second.presses("Enter")
            second.shows("edit tides.py")
            second.presses("C-d")
            second.shows("exit code 0")
        first.presses("C-d")
        first.shows("exit code 0")
    assert ("60" in (shop.project / "tides.py").read_text()) == (answer == "y")
