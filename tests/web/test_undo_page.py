"""Undo, redo and the past on the web page: what they say of prompts, files, cost and context."""

from pathlib import Path

from browser import Tab, get
from clients import Served
from web_page import ask, says, session


def _undo_first(tab: Tab) -> None:
    """Undo from the first prompt on."""
    tab.until("Boolean(document.querySelector('.message-user .message-actions button'))")
    tab.run("document.querySelector('.message-user .message-actions button').click()")
    tab.until("Boolean(document.querySelector('dialog button.primary:not([disabled])'))")


def test_redo_brings_back_one_prompt_and_redo_all_brings_back_the_rest(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    for word in ("one", "two", "three"):
        ask(served, made, f"[[write {project / word}|{word}]] [[text {word} done.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "three done.")
    _undo_first(tab)
    tab.shows("Redo brings back one prompt at a time, Redo all brings back all 3, with the files.")
    tab.click("dialog button.primary", "Undo")
    tab.until("document.querySelectorAll('.set-aside button').length === 2")
    tab.click(".set-aside button", "Redo")
    tab.until("document.querySelector('.set-aside')?.innerText.includes('6 messages')")
    assert [name for name in ("one", "two", "three") if (project / name).exists()] == ["one"]
    tab.click(".set-aside button", "Redo all")
    tab.until("!document.querySelector('.set-aside')")
    assert (project / "three").read_text("utf-8") == "three"


def test_one_undone_prompt_needs_no_redo_all(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text Only one.]]")
    tab.go(f"{served.url}/s/{made}")
    _undo_first(tab)
    tab.shows("Redo brings it back, with the files.")
    tab.click("dialog button.primary", "Undo")
    tab.until("document.querySelectorAll('.set-aside button').length === 1")


def test_files_of_an_undone_prompt_are_not_shown_as_changed(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, f"[[write {project / 'kept.txt'}|one]] [[text Kept.]]")
    ask(served, made, f"[[write {project / 'undone.txt'}|two]] [[text Undone.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Undone.")
    tab.click("[role=tab]", "Files")
    listed = "[...document.querySelectorAll('#side-panel ul')].map(one => one.innerText.match(/\\w+\\.txt/g).join())"
    tab.until(f"{listed}.join(';') === 'kept.txt,undone.txt'")
    tab.run("[...document.querySelectorAll('.message-user')].at(-1).querySelector('.message-actions button').click()")
    tab.click("dialog button.primary", "Undo")
    tab.until(f"{listed}.join(';') === 'kept.txt;undone.txt'")
    tab.shows("Files of what is undone")
    assert "undone: +1" in tab.run("document.querySelector('.top-figures').innerText")
    tab.go(served.url)
    tab.until(f"document.querySelector('a[href=\"/s/{made}\"]')?.innerText.includes('undone: 1 file')")


def test_a_task_list_says_that_undo_leaves_it(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[todo Measure the tide]] [[text Planned.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Planned.")
    tab.shows("Measure the tide")
    tab.lacks("Undo leaves the list as it is")
    _undo_first(tab)
    tab.click("dialog button.primary", "Undo")
    tab.shows("Undo leaves the list as it is: it may name tasks of what is set aside.")
    tab.click(".set-aside button", "Redo")
    tab.lacks("Undo leaves the list as it is")


def test_panels_show_the_moment_that_the_timeline_names(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, f"[[write {project / 'early.txt'}|one]] [[text First.]]")
    before = len(get(f"{served.url}/tk/session/{made}/ledger").json()["rows"])
    seq = get(f"{served.url}/tk/session/{made}/state").json()["seq"]
    ask(served, made, f"[[write {project / 'late.txt'}|two]] [[text Second.]]")
    tab.go(f"{served.url}/s/{made}?at={seq}")
    says(tab, "First.")
    tab.click("[role=tab]", "Files")
    tab.until("document.querySelector('.files')?.innerText.includes('early.txt')")
    assert "late.txt" not in tab.run("document.querySelector('#side-panel').innerText")
    tab.click("[role=tab]", "Cost")
    tab.shows(f"As of event {seq}")
    tab.until(f"document.querySelector('.total')?.innerText.includes('in {before} requests')")
    tab.click("[role=tab]", "Context")
    tab.until(f"document.querySelectorAll('.requests tbody').length === {before}")
    tab.click("[role=tab]", "Tree")
    tab.shows(f"Now, not as of event {seq}.")
