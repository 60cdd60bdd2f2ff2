"""The web page: prompts that wait, seconds of the past, wide tables, hits on a phone, the model next to the log."""

from pathlib import Path

from browser import Tab, get, post
from clients import Served
from web_page import ask, prompt, says, session


def test_prompts_that_wait_after_a_stop_are_taken_up_on_request(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    prompt(tab, "[[slow 400 50]]")
    tab.shows("tick tick")
    prompt(tab, "[[text Said later.]]")
    tab.shows("queued, safe")
    tab.click("button.stop")
    tab.shows("1 prompt waits, and the session rests.")
    tab.click(".set-aside button", "Continue")
    says(tab, "Said later.")
    tab.lacks("the session rests.")


def test_a_turn_of_the_past_does_not_go_on(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text All done.]]")
    turn = get(f"{served.url}/tk/session/{made}/timeline").json()["turns"][0]
    tab.go(f"{served.url}/s/{made}?at={turn['seq']}")
    tab.shows("As of event")
    tab.until("document.querySelector('.running')")
    moment = tab.run("document.querySelector('.running').innerText")
    created = get(f"{served.url}/tk/session/{made}/state", params={"at": turn["seq"]}).json()["event"]["time"]
    tab.until(f"Date.now() - {created} > 3000")
    assert tab.run("document.querySelector('.running').innerText") == moment == "working 0 s"


def test_words_in_a_wide_table_are_not_broken(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    head = " | ".join(f"Column{nth}" for nth in range(12))
    ask(served, made, f"[[text | {head} |\n|{'---|' * 12}\n| {head} |]]")
    tab.resize(390, 800, is_phone=True)
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelectorAll('.prose td').length === 12")
    assert tab.run("Math.max(...[...document.querySelectorAll('.prose td')].map(one => one.offsetHeight))") < 40
    assert tab.run("document.documentElement.scrollWidth") == 390


def test_below_a_long_prompt_the_button_is_in_the_window_of_a_phone(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "\n".join(f"line {nth}" for nth in range(60)))
    ask(served, made, "Once more")
    tab.resize(390, 800, is_phone=True)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Once more")
    tab.press("t")
    tab.run("document.querySelector('.message-user .message-actions button').click()")
    tab.click("dialog button", "Undo")
    tab.shows("set aside")
    tab.until("document.querySelector('.composer textarea').value.includes('line 59')")
    assert tab.run("document.querySelector('.composer .primary').getBoundingClientRect().bottom") <= 800


def test_a_prompt_that_redo_brings_back_leaves_the_box(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "Tides, please")
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Tides, please")
    tab.click(".message-user .message-actions button", "Undo from here")
    tab.click("dialog button.primary", "Undo")
    tab.until("document.querySelector('.composer textarea').value === 'Tides, please'")
    tab.click(".set-aside button", "Redo")
    tab.until("document.querySelector('.composer textarea').value === ''")


def test_on_a_phone_a_hit_names_its_session(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project, "Sluices of the harbour")
    ask(served, made, "gates and locks " * 20 + "weir" + " locks and gates" * 20)
    tab.resize(390, 800, is_phone=True)
    tab.go(served.url)
    tab.fill(".search input", "weir")
    tab.until("document.querySelector('.row-hit .row-note')")
    assert tab.run(
        "(note => note.innerText === 'Sluices of the harbour' && "
        "note.getBoundingClientRect().bottom <= note.closest('.row-title').getBoundingClientRect().bottom)"
        "(document.querySelector('.row-hit .row-note'))"
    )


def test_the_list_says_in_words_what_a_session_asks_for(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    body = {"parts": [{"type": "text", "text": "[[read /etc/hostname]] [[text Read.]]"}]}
    post(f"{served.url}/session/{made}/prompt_async", json=body).raise_for_status()
    tab.go(served.url)
    tab.shows("outside of the project: /etc/hostname")
    post(f"{served.url}/session/{made}/abort").raise_for_status()


def test_on_a_phone_a_long_title_leaves_what_a_session_asks_for(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project, "Sluices of the harbour " * 9)
    body = {"parts": [{"type": "text", "text": "[[bash make deploy]] [[text Deployed.]]"}]}
    post(f"{served.url}/session/{made}/prompt_async", json=body).raise_for_status()
    tab.resize(390, 800, is_phone=True)
    tab.go(served.url)
    note = f'.group-wait a[href="/s/{made}"] .row-note'
    tab.until(f"document.querySelector('{note}')?.innerText === 'bash: make deploy'")
    assert tab.run(
        "(note => note.getBoundingClientRect().bottom <= note.closest('.row-title').getBoundingClientRect().bottom)"
        f"(document.querySelector('{note}'))"
    )
    post(f"{served.url}/session/{made}/abort").raise_for_status()


def test_a_request_that_failed_is_not_said_to_have_missed_the_cache(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text Calm.]]")
    ask(served, made, "[[401 9]]")
    tab.go(f"{served.url}/s/{made}")
    tab.click("[role=tab]", "Context")
    tab.until("document.querySelectorAll('.requests tbody').length === 2")
    tab.until("document.querySelector('.requests tbody').innerText.includes('100%')")
    tab.lacks("reported no cache reads")


def test_what_the_model_sees_stands_next_to_what_the_log_holds(tab: Tab, served: Served, project: Path) -> None:
    (project / "long.txt").write_text("".join(f"pier {nth}: a gust of 41 knots\n" for nth in range(9000)), "utf-8")
    made = session(served, project)
    ask(served, made, "[[text Compacted away.]]")
    post(f"{served.url}/api/session/{made}/compact").raise_for_status()
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelector('.message-summary')")
    prompt(tab, "[[bash cat long.txt]] [[text All read.]]")
    tab.click(".ask button", "Allow once")
    says(tab, "All read.")
    tab.click("[role=tab]", "Context")
    tab.shows("1 is cut, cleared or left out")
    tab.click("button", "Compare with the log")
    tab.until("document.querySelectorAll('.compare tbody tr').length === 3")
    rows = "[...document.querySelectorAll('.compare tbody tr')].map(one => [...one.cells].map(cell => cell.innerText))"
    system, hidden, cut = tab.run(rows)
    assert (system[0].startswith("system context"), system[1]) == (True, "the same")
    assert (hidden[0], hidden[1].startswith("2 messages")) == ("nothing, but for the summary", True)
    assert "pier 0: a gust of 41 knots" in cut[0]
    assert "the model is not shown its middle" in cut[1]
    tab.click(".choice button", "All")
    tab.until(f"JSON.stringify({rows}).includes('All read.')")
    tab.click(".compare button", "Recall")
    tab.shows("exactly as they were recorded")


def test_a_dialog_takes_what_is_typed_after_its_key(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[text A gust.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "A gust.")
    has_focus = tab.run(
        "(async () => { document.body.dispatchEvent(new KeyboardEvent('keydown', {key: '/', bubbles: true}));"
        " while (!document.querySelector('dialog')) await null;"
        " return document.activeElement.type; })()"
    )
    assert has_focus == "search"


def test_an_answer_that_is_cut_off_or_empty_says_so(tab: Tab, served: Served, project: Path) -> None:
    made = session(served, project)
    ask(served, made, "[[length]]")
    tab.go(f"{served.url}/s/{made}")
    tab.shows("cut off: the answer reached the model's output limit")
    ask(served, made, "[[reason Wind.]]")
    ask(served, made, "[[empty]]")
    tab.until(
        "document.querySelectorAll('.message-assistant').length === 5"
    )  # An empty answer is asked for again, twice.
    marks = (
        "[...document.querySelectorAll('.message-assistant')].map(one => one.querySelector('.mark')?.innerText ?? '')"
    )
    empty = "■ the model's answer is empty"
    assert tab.run(marks) == ["■ cut off: the answer reached the model's output limit", "", empty, empty, empty]
