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


def test_a_key_stops_the_session_wherever_the_focus_is(tab: Tab, served: Served, project: Path) -> None:
    tab.go(f"{served.url}/s/{session(served, project)}")
    prompt(tab, "[[slow 4000 50]]")
    tab.shows("tick tick")
    tab.press("Escape")
    tab.until(f"{FOCUSED} === document.body")
    tab.press(".", control=True)
    tab.until("document.querySelector('.state').innerText.includes('Resting')")


def test_a_dialog_gives_the_focus_back(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text Done.]]")
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelector('.message-user .message-actions button')")
    tab.run("document.querySelector('.message-user .message-actions button').focus()")
    tab.press("Enter")
    tab.until("document.querySelector('dialog[open]')")
    tab.press("Escape")
    tab.until("!document.querySelector('dialog')")
    tab.until(f"{FOCUSED}.innerText === 'Undo from here'")


def test_the_menu_closes_by_escape_and_has_the_focus_after_its_dialog(tab: Tab, served: Served, project: Path) -> None:
    tab.go(f"{served.url}/s/{session(served, project)}")
    tab.until("document.querySelector('.menu summary')")
    tab.run("document.querySelector('.menu summary').focus()")
    tab.press("Enter")
    tab.until("document.querySelector('.menu').open")
    tab.press("Tab")
    tab.until(f"{FOCUSED}.innerText === 'Timeline'")
    tab.press("Escape")
    tab.until(f"!document.querySelector('.menu').open && {FOCUSED}.innerText === 'Actions'")
    tab.press("Enter")
    tab.click(".menu button", "Keys")
    tab.until("document.querySelector('dialog[open]') && !document.querySelector('.menu').open")
    tab.click("dialog button", "Close")
    tab.until(f"!document.querySelector('dialog') && {FOCUSED}.innerText === 'Actions'")


def test_a_printed_session_has_the_width_of_its_sheet(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text Printed.]]")
    tab.dark(True)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Printed.")
    tab.call("Emulation.setEmulatedMedia", media="print")
    tab.until("document.querySelector('.message-assistant').getBoundingClientRect().width > 700")
    assert tab.run("getComputedStyle(document.querySelector('.feed')).overflowY") == "visible"
    assert tab.run("getComputedStyle(document.body).color") == "rgb(28, 28, 26)"
