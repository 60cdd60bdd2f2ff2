"""The web page with the keyboard alone: where the focus is, and what keys do."""

import signal
from pathlib import Path

from browser import Tab
from clients import Served
from web_page import ask, prompt, says, session

FOCUSED = "document.activeElement"


def test_what_is_typed_while_a_prompt_is_sent_stays_in_the_box(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Nothing was said yet")
    served.process.send_signal(signal.SIGSTOP)
    try:
        prompt(tab, "[[text First.]]")
        tab.shows("Sending")
        tab.fill(".composer textarea", " And the next")
    finally:
        served.process.send_signal(signal.SIGCONT)
    says(tab, "First.")
    tab.until("document.querySelector('.composer button.primary').innerText === 'Send'")
    assert tab.run("document.querySelector('.composer textarea').value") == "And the next"
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelector('.composer textarea').value === 'And the next'")
