"""The web page in a real browser: prompts, permissions, questions, undo, forks and the past."""

import json
from pathlib import Path

from browser import Tab, get, post
from clients import Served
from web_page import ask, prompt, says, session


def test_a_prompt_is_typed_and_its_answer_streams_in_as_markdown(tab: Tab, served: Served, project: Path) -> None:
    get(f"{served.url}/path", params={"directory": str(project)})
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Nothing was said yet")
    prompt(tab, "[[text # Tides\n\nThe **gust** was `41`.\n\n```python\nreturn 41\n```]]")
    tab.until("document.querySelector('.message-assistant .prose strong')?.innerText === 'gust'")
    assert tab.run("document.querySelector('.message-assistant .prose h3').innerText") == "Tides"
    assert tab.run("document.querySelector('.message-assistant .prose pre').innerText").strip() == "return 41"
    tab.until("document.querySelector('.prose pre .shj-syn-kwd')?.innerText === 'return'")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    assert tab.run("document.querySelector('.composer textarea').value") == ""


def test_text_is_shown_while_it_comes_and_a_queued_prompt_can_be_taken_back(
    tab: Tab, served: Served, project: Path
) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, "[[slow 400 50]]")
    tab.shows("tick tick")
    tab.until("document.querySelector('.state').innerText.includes('Running')")
    prompt(tab, "[[text Never said.]]")
    tab.shows("queued, safe")
    tab.click(".inbox button", "Take back")
    tab.lacks("queued, safe")
    tab.until("document.querySelector('.composer textarea').value === '[[text Never said.]]'")
    tab.click("button.stop")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    told = get(f"{served.url}/session/{made}/message").json()
    assert len([one for one in told if one["info"]["role"] == "user"]) == 1
    assert tab.run("document.querySelectorAll('.message-user').length") == 1


def test_a_permission_is_asked_for_in_the_dock_and_given(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, "[[bash echo it-ran-$((40+2))]] [[text All done.]]")
    tab.shows("Waiting for you")
    assert "echo it-ran-$((40+2))" in tab.run("document.querySelector('.ask-text').innerText")
    tab.click(".ask button", "Allow once")
    says(tab, "All done.")
    tab.until("!document.querySelector('.ask')")
    tab.until("document.querySelector('.call-line')?.innerText.includes('bash')")
    tab.click(".call-line", "bash")
    tab.shows("it-ran-42")


def test_after_a_refusal_the_next_prompt_is_answered(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, "[[bash echo never]] [[text Not said.]]")
    tab.shows("Waiting for you")
    tab.click(".ask button", "Refuse")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    tab.until("document.querySelector('.call-error .bad')?.innerText === 'refused'")
    prompt(tab, "[[text Said after all.]]")
    says(tab, "Said after all.")


def test_the_buttons_below_a_long_command_are_in_the_window(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, f"[[bash true {'some line of text; ' * 300}]] [[text All done.]]")
    tab.shows("Waiting for you")
    assert tab.run(
        "[...document.querySelectorAll('.ask-buttons button')].map(one => one.getBoundingClientRect())"
        ".every(one => one.top > 0 && one.bottom <= innerHeight)"
    )
    tab.click(".ask button", "Refuse")
    tab.until("!document.querySelector('.ask')")


def test_a_question_is_answered(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    options = [{"label": "2025", "description": "old"}, {"label": "2026", "description": "new"}]
    asked = {"questions": [{"question": "Which table?", "header": "Table", "options": options}]}
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, f"[[tool question {json.dumps(asked)}]] [[text Thank you.]]")
    tab.shows("Which table?")
    tab.until("document.querySelector('.call-subject')?.innerText === 'Which table?'")
    tab.click(".option", "2026")
    tab.click(".option input")
    tab.click(".option", "2026")
    tab.click(".ask button", "Answer")
    says(tab, "Thank you.")
    told = get(f"{served.url}/session/{made}/message").text
    assert "2026" in told


def test_undo_shows_what_it_would_do_then_does_it_and_redo_brings_it_back(
    tab: Tab, served: Served, project: Path
) -> None:
    made = session(served, project)
    ask(served, made, "[[text First.]]")
    file = project / "tides.txt"
    ask(served, made, f"[[write {file}|high]] [[text Written.]]")
    assert file.read_text("utf-8") == "high"
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Written.")
    tab.run("[...document.querySelectorAll('.message-user')].at(-1).querySelector('.message-actions button').click()")
    tab.shows("tides.txt")
    tab.shows("removed: the session made it")
    assert file.exists(), "looking changes nothing"
    tab.click("dialog button.primary", "Undo")
    tab.until("document.querySelector('.set-aside')")
    assert not file.exists()
    tab.until("document.querySelector('.composer textarea').value.includes('tides.txt')")
    tab.click(".set-aside button", "Redo")
    tab.until("!document.querySelector('.set-aside')")
    assert file.read_text("utf-8") == "high"


def test_the_past_is_shown_as_it_was_and_forked(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    for word in ("First", "Second", "Third"):
        ask(served, made, f"[[text {word} answer.]]")
    rows = get(f"{served.url}/tk/session/{made}/outline").json()["rows"]
    seq = next(row["seq"] for row in rows if row["title"] == "[[text Third answer.]]") - 1
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Third answer.")
    tab.press("t")
    tab.until("Boolean(document.querySelector('.timeline input'))")
    tab.run(
        f"(() => {{ const one = document.querySelector('.timeline input'); one.value = {seq}; "
        "one.dispatchEvent(new Event('input', {bubbles: true})); })()"
    )
    tab.shows(f"As of event {seq}")
    tab.lacks("Third answer.")
    says(tab, "Second answer.")
    assert f"at={seq}" in tab.run("location.search")
    tab.click(".past-dock button", "Fork from here")
    tab.until(f"location.pathname.startsWith('/s/') && !location.pathname.includes('{made}')")
    tab.shows("Second answer.")
    tab.lacks("Third answer.")
    forked = tab.run("location.pathname.slice(3)")
    assert "Third" not in get(f"{served.url}/session/{forked}/message").text
    assert "Third" in get(f"{served.url}/session/{made}/message").text


def test_panels_show_files_context_cost_and_tree(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, f"[[write {project / 'notes.md'}|one]] [[todo read;write]] [[text Done.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Done.")
    tab.until("document.querySelector('.todos')?.innerText.includes('read')")
    tab.click("[role=tab]", "Context")
    tab.shows("What the model is shown")
    tab.until("document.querySelectorAll('#side-panel .files-line').length > 0")
    tab.click("#side-panel .files-line")
    tab.until("document.querySelector('#side-panel pre.code')?.innerText.length > 20")
    tab.until("document.querySelector('.requests tbody tr td:nth-child(3)')?.innerText === '0%'")
    assert "reported no cache reads" in tab.run("document.querySelector('.requests tbody .requests-why').innerText")
    tab.click("[role=tab]", "Cost")
    tab.until("document.querySelectorAll('.bars g').length > 0")
    tab.click("[role=tab]", "Tree")
    tab.until("document.querySelector('.tree')?.innerText.includes('this session')")
    tab.click("[role=tab]", "Files")
    tab.shows("Files that the session changed")


def test_sessions_are_listed_by_project_and_found_by_what_was_said(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project, "Wind over the bay")
    ask(served, made, "[[text The anemometer fell off.]]")
    tab.go(served.url)
    tab.shows("Wind over the bay")
    tab.fill(".search input", "anemometer")
    tab.until("document.querySelector('.row .tag')")
    tab.click(".row", "anemometer")
    tab.until(f"location.pathname === '/s/{made}'")
    says(tab, "The anemometer fell off.")


def test_children_and_forks_are_listed_below_their_session_with_status_and_cost(
    tab: Tab, served: Served, project: Path
) -> None:
    root = session(served, project, "Root of a family")
    ask(served, root, "[[text Said before the fork.]]")
    child = post(f"{served.url}/session", json={"title": "Its child", "parentID": root}).json()["id"]
    fork = post(f"{served.url}/session/{root}/fork", json={}).json()["id"]
    failed = session(served, project, "It fails")
    ask(served, failed, "[[401 9]]")
    tab.go(served.url)
    tab.until(f"document.querySelectorAll('section[aria-label=\"{project}\"] .row').length === 4")
    below = f"[...document.querySelectorAll('a[href=\"/s/{root}\"] ~ .below a')].map(one => one.getAttribute('href'))"
    assert sorted(tab.run(below)) == sorted([f"/s/{child}", f"/s/{fork}"])
    assert "fork" in tab.run(f"document.querySelector('a[href=\"/s/{fork}\"] .tag').innerText")
    row = tab.run(f"document.querySelector('a[href=\"/s/{failed}\"]').innerText")
    assert "failed" in row
    assert "401" in row
    assert "$0.00" in row


def test_titles_of_all_sessions_are_searched_and_hits_are_marked(tab: Tab, served: Served, project: Path) -> None:
    root = session(served, project, "Harbour")
    post(f"{served.url}/session", json={"title": "Survey of the lighthouses", "parentID": root})
    ask(served, root, "[[text A lighthouse blinks.]]")
    tab.go(served.url)
    tab.fill(".search input", "lighthouse")
    tab.until("document.querySelector('[aria-label=Titles] mark')?.innerText === 'lighthouse'")
    tab.until("document.querySelector('[aria-label=Words] mark')?.innerText === 'lighthouse'")
    tab.shows("Survey of the lighthouses")
    tab.fill(".search input", "zzz")
    tab.shows("No message has these words.")


def test_a_search_stands_in_the_address(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project, "Ebb and flow")
    ask(served, made, "[[text The sextant & the moon.]]")
    value = "document.querySelector('.search input')?.value"
    marked = "document.querySelector('[aria-label=Words] mark')?.innerText"
    tab.go(f"{served.url}/?q=sextant+%26")
    tab.until(f"{value} === 'sextant &' && {marked} === 'sextant'")
    tab.fill(".search input", " moon")
    tab.until("location.search === '?q=sextant+%26+moon'")
    tab.call("Page.reload")
    tab.until(f"{value} === 'sextant & moon' && {marked} === 'sextant'")
    tab.click(".row", "sextant")
    tab.until(f"location.pathname === '/s/{made}'")
    tab.run("history.back()")
    tab.until(f"{value} === 'sextant & moon'")
    tab.run("document.querySelector('.search input').select()")
    tab.run("document.execCommand('delete')")
    tab.until("location.search === '' && !document.querySelector('[aria-label=Words]')")


def test_on_a_phone_titles_are_readable_and_the_actions_are_on_the_page(
    tab: Tab, served: Served, project: Path
) -> None:
    title = "What the harbour master wants to know"
    made = session(served, project, title)
    ask(served, made, "[[text Known.]]")
    post(f"{served.url}/session/{made}/prompt_async", json={"parts": [{"type": "text", "text": "[[bash true]]"}]})
    tab.resize(390, 800, is_phone=True)
    tab.go(served.url)
    tab.until(f"document.querySelector('.group-wait a[href=\"/s/{made}\"]')")
    assert tab.run(
        f"(() => {{ const row = document.querySelector('.group-wait a[href=\"/s/{made}\"] .row-title'); "
        "return row.scrollWidth <= row.clientWidth && row.innerText; })()"
    ).startswith(title)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Waiting for you")
    line = "[...document.querySelectorAll('.top-figures, .menu summary, .side-toggle')]"
    assert tab.run(f"new Set({line}.map(one => Math.round(one.getBoundingClientRect().bottom / 30))).size") == 1
    tab.click(".menu summary")
    inside = "(one => one.left >= 0 && one.right <= innerWidth)"
    assert tab.run(
        f"[...document.querySelectorAll('.menu button')].every(one => {inside}(one.getBoundingClientRect()))"
    )
    assert tab.run("document.documentElement.scrollWidth <= innerWidth")
    tab.click(".ask button", "Refuse")
    tab.until("!document.querySelector('.ask')")


def test_a_call_that_is_asked_about_is_not_said_to_run(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, "[[bash true]] [[text All done.]]")
    tab.until("document.querySelector('.call-line')?.innerText.includes('waiting for you')")
    line = tab.run("document.querySelector('.call-line').innerText")
    assert "running" not in line
    assert tab.run("document.querySelector('.message-assistant .running')") is None
    assert "Asked for" not in tab.run("document.querySelector('.ask').innerText")
    tab.click(".ask button", "Refuse")
    tab.until("!document.querySelector('.call-line').innerText.includes('waiting')")


def test_a_session_whose_last_turn_failed_says_so(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[401 9]]")
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelector('.state').innerText === 'Failed'")
    tab.until("document.querySelector('.outline-error')?.innerText.includes('key refused')")


def test_a_diff_of_one_file_begins_with_its_first_change(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, f"[[write {project / 'tides.txt'}|high]] [[text Written.]]")
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelector('.call .diff')")
    assert tab.run("document.querySelector('.call .diff pre').innerText").startswith("@@ ")


def test_costs_are_shown_over_time_and_with_those_of_children(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[task [[text Child said.]]]] [[text Done.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Done.")
    tab.click("[role=tab]", "Cost")
    tab.shows("with 1 child session")
    tab.click(".choice button", "Cost")
    tab.until("document.querySelector('.bars').getAttribute('aria-label').startsWith('Cost of the last')")


def test_the_context_panel_lists_what_the_model_was_told_later(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text First.]]")
    (project / "AGENTS.md").write_text("Mind the tide.", "utf-8")
    ask(served, made, "[[text Second.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Second.")
    tab.click("[role=tab]", "Context")
    tab.shows("Changes that the model was told of")
    tab.until("document.querySelector('#side-panel').innerText.includes('AGENTS.md')")


def test_the_page_of_a_child_session_names_its_agent(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[task look around]] [[text Done.]]")
    [child] = get(f"{served.url}/session/{made}/children").json()
    tab.go(f"{served.url}/s/{child['id']}")
    tab.until("document.querySelector('select[aria-label=Agent]').selectedOptions[0]?.label === 'general'")
