"""What becomes of the program when its full screen fails."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from pane import Pane
from workshop import Shop

Opens = Callable[..., AbstractContextManager[Pane]]
IDLE = r"Alt-Enter"
FAULTY = """
import sys
from turnkeeper.cli.chat.tui.session_screen import SessionScreen
from turnkeeper.cli.main import main

def fails(screen):
    raise RuntimeError("the list of keys failed")

SessionScreen.action_keys = fails
sys.exit(main())
"""
"""The program with a fault in its screen, which F1 finds."""
DEAF = """
import asyncio
from turnkeeper import tool

@tool
async def glob(pattern: str) -> str:
    "Find files."
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass
"""


@pytest.mark.parametrize("prompt", ["", "run `sleep 600`", "run `echo asked`"])
def test_a_failure_of_the_screen_ends_the_program_with_its_traceback(shop: Shop, opens: Opens, prompt: str) -> None:
    shop.configure(permission={"bash": {"*": "allow", "echo *": "ask"}})
    with opens("chat", "-n", program=[sys.executable, "-c", FAULTY]) as at:
        at.shows(IDLE)
        if prompt:
            at.types(prompt)
            at.presses("Enter")
            at.shows("y once" if "asked" in prompt else r"sleep 600 +running")
        at.presses("F1")
        shown = at.shows("RuntimeError: the list of keys failed", "exit code 1")
        assert at.tmux("display-message", "-p", "#{alternate_on}").strip() == "0"
        assert "locals" not in shown


def test_a_failure_of_the_screen_ends_the_program_though_a_tool_ignores_it(shop: Shop, opens: Opens) -> None:
    tools = shop.home / ".config/turnkeeper/tools"
    tools.mkdir(parents=True)
    (tools / "deaf.py").write_text(DEAF)
    with opens("chat", "-n", program=[sys.executable, "-c", FAULTY]) as at:
        at.shows(IDLE)
        at.types("list the files")
        at.presses("Enter")
        at.shows(r"running \d+ s +glob")
        at.presses("F1")
        at.shows("RuntimeError: the list of keys failed", "exit code 1")
