"""The web page against lost lines, hostile transcripts and long histories, and for those who cannot see it."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import AXE, Browser, Tab, get, post
from clients import Served, serving
from cut_line import cuttable
from seeded import HOSTILE, seed

PROMPTS = 5000

FORBIDDEN = (
    "script, iframe, object, embed, form, style, link, base, img, [onerror], [onload], [style*=position], "
    "a[href^=javascript i], a[href^=data i]"
)
"""What no text of a transcript may become."""

SETTLED = "document.querySelector('#side-panel :is(h3, table)') && !document.querySelector('#side-panel').innerText"


@pytest.fixture
def hostile(provider: str, tmp_path: Path) -> Iterator[tuple[Served, str]]:
    """A server whose store has one hostile session."""
    (tmp_path / "home").mkdir()
    made = seed(tmp_path / "store.db", tmp_path, hostile=True)
    with serving(tmp_path, tmp_path / "home", provider, "--store", f"sqlite:{tmp_path / 'store.db'}") as served:
        yield served, made


@pytest.fixture
def long(provider: str, tmp_path: Path) -> Iterator[tuple[Served, str]]:
    """A server whose store has a session with ten thousand messages."""
    (tmp_path / "home").mkdir()
    made = seed(tmp_path / "store.db", tmp_path, prompts=PROMPTS)
    with serving(tmp_path, tmp_path / "home", provider, "--store", f"sqlite:{tmp_path / 'store.db'}") as served:
        yield served, made


def test_nothing_in_a_transcript_runs_or_loads_or_freezes_the_page(hostile: tuple[Served, str], tab: Tab) -> None:
    served, made = hostile
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelectorAll('article').length > 1")
    for nth in range(len(HOSTILE)):
        tab.until("Boolean(document.querySelector('.feed'))")
        tab.visit(f"/s/{made}#m-msg_a{nth}")
        tab.until(f"document.querySelector('#m-msg_a{nth} .prose, #m-msg_a{nth} .message-head')", f"answer {nth}")
        tab.run(f"document.querySelector('#m-msg_a{nth} .call-line')?.click()")
        tab.run("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        assert tab.run("window.canary ?? 0") == 0, HOSTILE[nth][:80]
        assert tab.run(f"[...document.querySelectorAll('.feed :is({FORBIDDEN})')].map(one => one.outerHTML)") == []
        assert not tab.run(f"/\\p{{M}}{{101}}/u.test(document.querySelector('#m-msg_a{nth}').innerText)"), HOSTILE[nth][
            :80
        ]
    assert tab.run("document.title").startswith("<script>")
    tab.click("[role=tab]", "Context")
    tab.shows("What the model is shown")
    tab.go(served.url)
    tab.until("document.querySelectorAll('.row').length === 1")
    assert tab.run("window.canary ?? 0") == 0


def test_a_link_that_names_another_host_says_where_it_leads(hostile: tuple[Served, str], tab: Tab) -> None:
    served, made = hostile
    tab.go(f"{served.url}/s/{made}")
    found = "[...document.querySelectorAll('.prose a')].find(one => one.href.includes('evil.example'))"
    tab.until(f"Boolean({found})")
    assert tab.run(f"{found}.innerText") == "https://good.example (evil.example)"
    assert tab.run(f"{found}.rel") == "noopener noreferrer"


def test_a_host_with_letters_that_look_like_others_is_told(hostile: tuple[Served, str], tab: Tab) -> None:
    served, made = hostile
    tab.go(f"{served.url}/s/{made}")
    found = "[...document.querySelectorAll('.prose a')].find(one => one.href.includes('xn--'))"
    tab.until(f"Boolean({found})")
    assert tab.run(f"{found}.innerText") == "https://\u0430pple.com (xn--pple-43d.com)"


def test_a_long_escape_sequence_without_an_end_does_not_freeze_the_page(tab: Tab, served: Served) -> None:
    tab.go(served.url)
    output = r"'\u001b[' + '!'.repeat(400_000) + '\u0000' + 'end'"
    assert tab.run(f"import('/web/ansi.js').then(ansi => ansi.pieces({output}).at(-1).text)") == "end"


def feed_of_rows(tab: Tab, served: Served, first: int, end: int) -> None:
    """A page with nothing but a feed of these rows; ``show`` replaces them."""
    tab.go(served.url)
    tab.run(
        "Promise.all([import('/web/html.js'), import('/web/feed.js')]).then(([{html, render}, {Feed}]) => {"
        " const rows = (first, end) => Array.from({length: end - first}, (_, nth) => ({id: `row-${first + nth}`}));"
        " const row = (one) => html`<p>${one.id}</p>`;"
        " const box = document.body; box.replaceChildren();"
        " window.show = (first, end) => render(html`<div style=${{height: '100px', display: 'grid'}}>"
        "<${Feed} rows=${rows(first, end)} row=${row} guess=${() => 50} handle=${(feed) => { window.feed = feed; }} />"
        f"</div>`, box); show({first}, {end}); }})"
    )
    tab.until("window.feed?.box.scrollHeight > window.feed?.box.clientHeight")


def test_older_rows_that_come_in_are_not_counted_as_new(tab: Tab, served: Served) -> None:
    feed_of_rows(tab, served, 900, 1000)
    tab.run("window.feed.leave()")
    tab.until("document.querySelector('.pill')?.innerText === 'To the end ↓'")
    tab.run("show(0, 1000)")
    tab.until("window.feed.props.rows.length === 1000")
    assert tab.run("document.querySelector('.pill').innerText") == "To the end ↓"
    tab.run("show(0, 1002)")
    tab.until("document.querySelector('.pill').innerText === '2 new below ↓'")


def test_after_a_jump_the_rows_on_the_screen_stay_when_others_are_replaced(tab: Tab, served: Served) -> None:
    feed_of_rows(tab, served, 0, 1000)
    tab.run("window.feed.leave()")
    for top in (10_000, 0):
        tab.run(f"window.feed.box.scrollTop = {top}")
        tab.until(f"window.feed.lastTop === {top} && document.body.innerText.includes('row-{top // 50}')")
    tab.run("show(0, 500)")
    tab.until("window.feed.props.rows.length === 500")
    tab.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert "row-0\n" in tab.text()


def test_prompts_that_the_outline_leaves_out_are_shown_on_request(long: tuple[Served, str], tab: Tab) -> None:
    served, made = long
    tab.go(f"{served.url}/s/{made}")
    tab.until("document.querySelectorAll('.outline li').length === 300")
    tab.click(".outline button", "300 earlier prompts")
    tab.until("document.querySelectorAll('.outline li').length === 600")


def test_ten_thousand_messages_are_scrolled_with_few_of_them_on_the_page(long: tuple[Served, str], tab: Tab) -> None:
    served, made = long
    tab.go(f"{served.url}/s/{made}")
    tab.shows(f"Answer {PROMPTS - 1}.")
    tab.until(f"Number(document.querySelector('article').getAttribute('aria-setsize')) === {2 * PROMPTS}")
    assert tab.run("document.querySelectorAll('article').length") < 120
    tab.run("document.querySelector('.feed').focus()")
    tab.wheel(-3000)
    tab.until("document.querySelector('.pill')")
    tab.run("document.querySelector('.feed').scrollTop = 0")
    tab.until("[...document.querySelectorAll('article')].some(one => one.innerText.includes('Answer 0.'))")
    assert tab.run("document.querySelectorAll('article').length") < 120
    assert tab.run("document.querySelectorAll('*').length") < 6000
    middle = f"document.getElementById('m-msg_a{PROMPTS // 2}')"
    tab.visit(f"/s/{made}#m-msg_a{PROMPTS // 2}")
    tab.until(f"{middle}?.innerText.includes('Answer {PROMPTS // 2}.')")
    tab.until(f"(() => {{ const top = {middle}.getBoundingClientRect().top; return top > 0 && top < innerHeight; }})()")
    tab.click(".pill")
    tab.until(f"[...document.querySelectorAll('article')].at(-1).innerText.includes('Answer {PROMPTS - 1}.')")


def test_a_lost_line_is_joined_without_a_gap_and_without_repeating(tab: Tab, served: Served, project: Path) -> None:
    made = post(f"{served.url}/session", params={"directory": str(project)}, json={"title": "Lines"}).json()["id"]

    def ask(text: str, how: str = "message") -> None:
        body = {"parts": [{"type": "text", "text": text}]}
        post(f"{served.url}/session/{made}/{how}", json=body).raise_for_status()

    with cuttable(served.url) as line:
        tab.go(f"{line.url}/s/{made}")
        tab.shows("Nothing was said yet")
        tab.until("document.querySelector('.line-live')")
        ask("[[slow 150 20]]", "prompt_async")
        tab.shows("tick tick")
        line.cut()
        tab.until("document.querySelector('.line-bad')")
        post(f"{served.url}/api/session/{made}/wait")
        ask("[[text Said while nobody listened.]]")
        line.join()
        tab.until("document.querySelector('.line-live')")
        tab.until("document.querySelectorAll('.message').length === 4")
        told = get(f"{served.url}/session/{made}/message").json()
        answers = [one for one in told if one["info"]["role"] == "assistant"]
        for answer in answers:
            text = next(part["text"].strip() for part in answer["parts"] if part["type"] == "text")
            shown = f"document.querySelector('#m-{answer['info']['id']} .prose')?.innerText.trim()"
            tab.until(f"{shown} === {json.dumps(text)}", f"the text {text[:40]!r}")
        assert tab.run("document.querySelectorAll('.message').length") == 4
        tab.go("about:blank")
    tab.errors.clear()  # The browser reports each connection that was cut.


def test_pages_that_were_left_do_not_keep_the_connections_of_the_next_one(
    tab: Tab, served: Served, project: Path
) -> None:
    for nth in range(8):
        given = {"params": {"directory": str(project)}, "json": {"title": f"Page {nth}"}}
        made = post(f"{served.url}/session", **given).json()["id"]
        begun = time.monotonic()
        tab.go(f"{served.url}/s/{made}")
        tab.until(f"document.title.startsWith('Page {nth}') && document.querySelector('.line-live')")
        # A browser has six connections to a host; without a free one a page waited for a minute.
        assert time.monotonic() - begun < 30
    tab.run("history.back()")
    tab.until("document.title.startsWith('Page 6') && document.querySelector('.line-live')")


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: make browser could not, or was not run")
@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(browser: Browser, served: Served, project: Path, width: int, is_dark: bool) -> None:
    made = post(f"{served.url}/session", params={"directory": str(project)}, json={"title": "Axe"}).json()["id"]
    texts = "[[reason Hm.]]", "[[bash false]] [[text # One\n\n- two `three`\n\n```py\nx = 1\n```]]"
    bodies = [{"parts": [{"type": "text", "text": text}]} for text in texts]
    post(f"{served.url}/session/{made}/message", json=bodies[0])
    post(f"{served.url}/session/{made}/prompt_async", json=bodies[1])
    tab = browser.tab(width=width, height=900)
    try:
        tab.dark(is_dark)
        tab.go(f"{served.url}/s/{made}")
        tab.shows("Waiting for you")
        _check(tab)
        tab.click(".ask button", "Refuse")
        tab.until("document.querySelector('.state').innerText.includes('Resting')")
        if width > 1000:
            for name in ("Context", "Cost", "Tree", "Files"):
                tab.click("[role=tab]", name)
                tab.until(f"{SETTLED}.includes('Reading.')")
                _check(tab)
        tab.press("t")
        tab.until("document.querySelector('.timeline')")
        _check(tab)
        tab.go(served.url)
        tab.until("document.querySelectorAll('.row').length > 0")
        _check(tab)
    finally:
        tab.close()
    assert tab.errors == []


def _check(tab: Tab) -> None:
    # A script of a test is no script of the page: it is given to the browser directly.
    tab.run(AXE.read_text("utf-8") + ";0")
    found = tab.run(
        "axe.run(document, {resultTypes: ['violations']}).then(found => found.violations"
        ".filter(one => ['serious', 'critical'].includes(one.impact))"
        ".map(one => one.id + ': ' + one.nodes.map(node => node.html + ' ' + node.failureSummary).join(' | ')))"
    )
    assert found == []
