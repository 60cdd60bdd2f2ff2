"""The web page: what cards and blame name, connections that come back, order, compaction, sharing, phones."""

import json
from pathlib import Path

import httpx2
import pytest
from browser import AXE, Tab, get
from clients import Served
from cut_line import cuttable
from web_page import ask, prompt, says, session


def test_lines_that_no_session_wrote_are_told_from_those_of_the_session(
    tab: Tab, served: Served, project: Path
) -> None:
    file = project / "mixed.txt"
    file.write_text("mine\nlast\n", "utf-8")
    made = session(served, project)
    change = {"filePath": str(file), "oldString": "last", "newString": "last, changed"}
    ask(served, made, f"[[read {file}]] [[tool edit {json.dumps(change)}]] [[text Changed.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Changed.")
    tab.click("[role=tab]", "Files")
    tab.click("#side-panel .files-line", "mixed.txt")
    tab.click("#side-panel .link", "Who wrote each line")
    tab.until("document.querySelectorAll('.blame tbody').length === 2")
    assert tab.run(
        "[...document.querySelectorAll('.blame tbody')].map(one => one.innerText.trim().split(/\\s+/).join(' '))"
    ) == [
        "before, or by hand 1 mine",
        "this session, edit 2 last, changed",
    ]


def test_a_card_names_the_tool_and_the_file_outside_of_the_project(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, "[[read /etc/hostname]] [[text Read.]]")
    tab.shows("Waiting for you")
    tab.until("document.querySelector('.ask header').innerText.includes('read')")
    assert tab.run("document.querySelector('.ask-text').innerText") == "/etc/hostname"
    assert tab.run("document.querySelector('.ask').innerText.split('/etc/*').length") == 2
    tab.click(".ask button", "Refuse")
    tab.until("!document.querySelector('.ask')")


def test_an_answered_question_shows_what_was_chosen(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    options = [{"label": "2025", "description": "2025"}, {"label": "2026", "description": "new"}]
    asked = {"questions": [{"question": "Which table?", "header": "Table", "options": options}]}
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, f"[[tool question {json.dumps(asked)}]] [[text Thank you.]]")
    tab.until("document.querySelector('.option')?.innerText.trim() === '2025'")
    tab.click(".option", "2026")
    tab.click(".ask button", "Answer")
    says(tab, "Thank you.")
    tab.until("document.querySelector('.call-result').innerText === '2026'")
    assert tab.run("document.querySelector('.call-subject').innerText") == "Which table?"


def test_a_screen_reader_is_told_that_a_session_rests_also_soon_after_it_ran(
    tab: Tab, served: Served, project: Path
) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, "[[bash true]] [[text Gone.]]")
    tab.until("document.querySelector('.sr [role=status]').innerText === 'The session runs.'")
    tab.click(".ask button", "Allow once")
    tab.until("document.querySelector('.sr [role=status]').innerText === 'The session rests.'")


def test_what_could_not_be_reached_is_read_again_when_it_can(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text Said.]]")
    with cuttable(served.url) as line:
        tab.go(f"{line.url}/s/{made}")
        says(tab, "Said.")
        line.cut()
        tab.until("document.querySelector('.line-bad')")
        tab.click("[role=tab]", "Cost")
        prompt(tab, "[[text Not sent.]]")
        tab.until("document.querySelectorAll('.problem').length === 2")
        line.join()
        tab.click(".line-bad button", "Try now")
        tab.until("document.querySelector('.line-live')")
        tab.until("document.querySelectorAll('.problem').length === 0")
        tab.until("document.querySelector('.total')")
        tab.go("about:blank")
    tab.errors.clear()  # The browser reports each connection that was cut.


def test_a_server_that_is_back_as_soon_as_a_problem_is_drawn_is_heard(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    with cuttable(served.url) as line:
        tab.go(f"{line.url}/s/{made}")
        tab.shows("Nothing was said yet")
        line.cut()
        tab.until("document.querySelector('.line-bad')")
        tab.run(
            "window.drawn = 0; new MutationObserver(() => { if (document.querySelector('.problem') && !window.drawn++) "
            "window.dispatchEvent(new Event('turnkeeper-live')); })"
            ".observe(document.body, {childList: true, subtree: true})"
        )
        prompt(tab, "[[text Not sent.]]")
        tab.until("window.drawn > 0 && !document.querySelector('.problem')")
        tab.go("about:blank")
    tab.errors.clear()  # The browser reports each connection that was cut.


def test_a_session_whose_turn_did_not_end_is_continued(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Nothing was said yet")
    prompt(tab, "[[slow 400 50]]")
    tab.shows("tick tick")
    tab.click("button.stop")
    tab.click(".set-aside button", "Continue")
    tab.until("document.querySelectorAll('.message-assistant').length === 2")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    tab.until("!document.querySelector('.set-aside')")


WATCHED = """(() => { window.seen = []; new MutationObserver(() => {
    const roles = [...document.querySelectorAll('.feed .message')].map(one => one.classList[1].slice(8, 9)).join('');
    if (roles !== window.seen.at(-1)) window.seen.push(roles);
}).observe(document.body, {childList: true, subtree: true}); })()"""
"""Records each order of prompts (u) and answers (a) that was drawn."""


def test_no_answer_is_drawn_before_its_prompt(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Nothing was said yet")
    tab.until("document.querySelector('.line-live')")
    tab.run(WATCHED)
    for word in ("One", "Two", "Three"):
        prompt(tab, f"[[text {word} said.]]")
        says(tab, f"{word} said.")
        tab.until("document.querySelector('.state').innerText.includes('Resting')")
    tab.until("window.seen.at(-1) === 'uauaua'")
    assert [one for one in tab.run("window.seen") if not "uauaua".startswith(one)] == []


def test_a_compaction_marks_every_message_that_its_summary_stands_for(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text First.]]")
    ask(served, made, "[[text Second.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Second.")
    tab.click(".menu summary")
    tab.click(".menu button", "Compact")
    tab.until("document.querySelector('.message-summary')")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    ask(served, made, "[[text Third.]]")
    says(tab, "Third.")
    rows = get(f"{served.url}/tk/session/{made}/outline").json()["rows"]
    hidden = [row["id"] for row in rows if row.get("hidden")]
    assert hidden
    shown = "[...document.querySelectorAll('.message-hidden')].map(one => one.dataset.id)"
    tab.until(f"JSON.stringify({shown}) === {json.dumps(json.dumps(hidden, separators=(',', ':')))}")


def test_a_session_is_shared_and_its_link_withdrawn(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text The key is ghp_16C7e42F292c6912E7710c838347Ae178B4a.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "The key is")
    tab.click(".menu summary")
    tab.click(".menu button", "Share")
    tab.shows("Masked in the link")
    if AXE.is_file():
        tab.run(AXE.read_text("utf-8") + ";0")
        assert (
            tab.run("axe.run(document.querySelector('dialog')).then(found => found.violations.map(one => one.id))")
            == []
        )
    tab.click("dialog button.primary", "Make a link")
    tab.until("document.querySelector('.share-link input')?.value.includes('/share/')")
    url = tab.run("document.querySelector('.share-link input').value")
    address, secret = url.split("#")
    data = httpx2.get(f"{address}/data", headers={"x-share-secret": secret}, timeout=60)
    assert data.status_code == 200
    assert "ghp_16C7" not in data.text
    tab.click("dialog button", "Withdraw")
    tab.shows("The link was withdrawn.")
    assert httpx2.get(f"{address}/data", headers={"x-share-secret": secret}, timeout=60).status_code == 404
    tab.press("Escape")
    tab.until("!document.querySelector('dialog')")


def test_the_prompt_box_of_a_new_session_is_at_the_bottom(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Nothing was said yet")
    assert tab.run("innerHeight - document.querySelector('.composer').getBoundingClientRect().bottom") < 40


@pytest.mark.parametrize("name", ["mod.py", "a/long/path/of/folders/to/some/module_with_a_name.py"])
def test_on_a_phone_names_are_whole_and_the_legend_is_shown(tab: Tab, served: Served, project: Path, name: str) -> None:
    (project / name).parent.mkdir(parents=True, exist_ok=True)
    made = session(served, project)
    ask(served, made, f"[[write {project / name}|x = 1]] [[text Written.]]")
    tab.resize(390, 800, is_phone=True)
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Written.")
    tab.press("t")
    tab.until("document.querySelector('.timeline-foot .dim')?.getBoundingClientRect().height > 0")
    tab.press("t")
    tab.run("document.querySelector('.message-user .message-actions button').click()")
    tab.until("document.querySelector('.undo code')")
    last = name.rsplit("/", 1)[-1]
    # The last name of the path has one box, so no line ends within it.
    assert tab.run(
        "(() => { const text = [...document.querySelector('.undo code').childNodes].at(-1); const range = "
        "document.createRange(); range.selectNodeContents(text); "
        "return [text.data, range.getClientRects().length]; })()"
    ) == [last, 1]
    assert tab.run("(one => one.scrollWidth <= one.clientWidth)(document.querySelector('dialog'))")
