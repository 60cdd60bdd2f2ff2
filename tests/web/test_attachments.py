"""The web page: files that are dropped, pasted or given back, and the prompt that carries them."""

import base64
import json
from pathlib import Path
from typing import Any

from browser import Tab, get
from clients import Served
from web_page import ask, prompt, says, session

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

PASTED = """((files, texts) => {
    const data = new DataTransfer();
    for (const [name, mime, text] of files) data.items.add(new File([text], name, {type: mime}));
    for (const [mime, text] of Object.entries(texts)) data.setData(mime, text);
    const event = new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true});
    return !document.querySelector('.composer textarea').dispatchEvent(event);
})"""
"""Pastes files and texts, and says whether the page took them for itself."""


def opened(tab: Tab, served: Served, project: Path) -> str:
    """A new session, shown."""
    made = session(served, project)
    tab.go(f"{served.url}/s/{made}")
    tab.shows("Nothing was said yet")
    return made


def listed(tab: Tab, *names: str) -> None:
    """Wait until exactly these files are attached to what is typed."""
    found = "[...document.querySelectorAll('.attached li > span')].map(one => one.firstChild.data.trim())"
    tab.until(f"JSON.stringify({found}) === {json.dumps(json.dumps(names, separators=(',', ':')))}", f"{names}")


def carried(served: Served, session_id: str) -> list[dict[str, Any]]:
    """The parts of the first prompt."""
    parts = get(f"{served.url}/session/{session_id}/message").json()[0]["parts"]
    assert isinstance(parts, list)
    return parts


def files_of(parts: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Name and media type of each file."""
    return [(one["filename"], one["mime"]) for one in parts if one["type"] == "file"]


def test_a_prompt_carries_the_files_that_were_dropped(tab: Tab, served: Served, project: Path, tmp_path: Path) -> None:
    table, picture = tmp_path / "gusts.csv", tmp_path / "pier.png"
    table.write_text("hour,knots\n1,41\n", "utf-8")
    picture.write_bytes(PNG)
    made = opened(tab, served, project)
    tab.drop(".composer", table, picture)
    listed(tab, "gusts.csv", "pier.png")
    prompt(tab, "[[text Both seen.]]")
    says(tab, "Both seen.")
    listed(tab)
    parts = carried(served, made)
    assert files_of(parts) == [("gusts.csv", "text/plain"), ("pier.png", "image/png")]
    assert "hour,knots\n1,41\n" in [one.get("text") for one in parts]
    assert base64.b64encode(PNG).decode() in str(parts)
    tab.until("document.querySelector('.message-user .image img')?.naturalWidth === 1")


def test_files_may_be_dropped_anywhere_on_the_page(tab: Tab, served: Served, project: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("high at noon", "utf-8")
    made = session(served, project)
    ask(served, made, "[[text Said.]]")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Said.")
    tab.drop(".feed", tmp_path / "notes.txt")
    listed(tab, "notes.txt")


def test_a_file_is_text_by_its_content(tab: Tab, served: Served, project: Path, tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("make tides\n", "utf-8")
    (tmp_path / "Makefile").write_text("tides:\n", "utf-8")
    (tmp_path / "tides.bin").write_bytes(bytes(range(256)))
    made = opened(tab, served, project)
    tab.drop(".composer", tmp_path / "run.sh", tmp_path / "Makefile", tmp_path / "tides.bin")
    listed(tab, "run.sh", "Makefile", "tides.bin")
    prompt(tab, "[[text All seen.]]")
    says(tab, "All seen.")
    parts = carried(served, made)
    assert files_of(parts) == [
        ("run.sh", "text/plain"),
        ("Makefile", "text/plain"),
        ("tides.bin", "application/octet-stream"),
    ]
    assert {"make tides\n", "tides:\n"} <= {one.get("text") for one in parts}


def test_what_cannot_be_attached_is_named_and_the_rest_is_kept(
    tab: Tab, served: Served, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "tables").mkdir()
    (tmp_path / "large.log").write_bytes(b"x" * 30 * 1024 * 1024)
    (tmp_path / "small.txt").write_text("small", "utf-8")
    opened(tab, served, project)
    tab.drop(".composer", tmp_path / "tables", tmp_path / "large.log", tmp_path / "small.txt")
    listed(tab, "small.txt")
    assert tab.run("document.querySelector('.problem').innerText").strip() == (
        "tables cannot be read. If it is a folder, name it with @ in the prompt. "
        "large.log has 30.0 MB; attach at most 20.0 MB."
    )


def test_a_prompt_carries_what_was_pasted(tab: Tab, served: Served, project: Path) -> None:
    made = opened(tab, served, project)
    assert tab.run(f"{PASTED}([['picture.svg', 'text/plain', 'a note']], {{}})")
    listed(tab, "picture.svg")
    assert tab.run(f"{PASTED}([], {{'text/plain': 'gust\\n'.repeat(1000)}})")
    listed(tab, "picture.svg", "pasted 1,000 lines.txt")
    prompt(tab, "[[text Read.]]")
    says(tab, "Read.")
    texts = [one.get("text") for one in carried(served, made)]
    assert "a note" in texts
    assert "gust\n" * 1000 in texts


def test_text_of_an_office_program_is_pasted_as_text(tab: Tab, served: Served, project: Path) -> None:
    opened(tab, served, project)
    texts = json.dumps({"text/plain": "41 knots", "text/html": "<b>41 knots</b>"})
    assert not tab.run(f"{PASTED}([['image.png', 'image/png', 'x']], {texts})"), "the box takes the text by itself"
    assert tab.run("document.querySelector('.attached')") is None


def test_a_prompt_that_is_taken_back_brings_its_files_and_leaves_what_is_typed(
    tab: Tab, served: Served, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("high at noon", "utf-8")
    opened(tab, served, project)
    prompt(tab, "[[slow 400 50]]")
    tab.shows("tick tick")
    tab.drop(".composer", tmp_path / "notes.txt")
    listed(tab, "notes.txt")
    prompt(tab, "Read the notes.")
    tab.shows("queued, safe")
    tab.fill(".composer textarea", "Half a thought")
    tab.click(".inbox button", "Take back")
    value = "document.querySelector('.composer textarea').value"
    tab.until(f"{value} === 'Half a thought\\n\\nRead the notes.'")
    listed(tab, "notes.txt")
    assert "12 B" in tab.run("document.querySelector('.attached').innerText")
    tab.click("button.stop")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    tab.call("Page.reload")
    tab.until(f"{value} === 'Half a thought\\n\\nRead the notes.'")


def test_an_undone_prompt_returns_with_its_files_and_redo_takes_both(
    tab: Tab, served: Served, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("high at noon", "utf-8")
    opened(tab, served, project)
    tab.drop(".composer", tmp_path / "notes.txt")
    listed(tab, "notes.txt")
    prompt(tab, "[[text Read.]]")
    says(tab, "Read.")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    tab.click(".message-user .message-actions button", "Undo from here")
    tab.click("dialog button.primary", "Undo")
    tab.until("document.querySelector('.composer textarea').value === '[[text Read.]]'")
    listed(tab, "notes.txt")
    tab.click(".set-aside button", "Redo")
    tab.until("document.querySelector('.composer textarea').value === ''")
    listed(tab)


def test_a_fork_before_a_prompt_has_it_in_its_box_with_its_files(
    tab: Tab, served: Served, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("high at noon", "utf-8")
    made = opened(tab, served, project)
    prompt(tab, "[[text First.]]")
    says(tab, "First.")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    tab.drop(".composer", tmp_path / "notes.txt")
    listed(tab, "notes.txt")
    prompt(tab, "[[text Read.]]")
    says(tab, "Read.")
    tab.until("document.querySelector('.state').innerText.includes('Resting')")
    tab.run(
        "[...[...document.querySelectorAll('.message-user')].at(-1).querySelectorAll('button')]"
        ".find(one => one.innerText === 'Fork before').click()"
    )
    tab.until(f"location.pathname.startsWith('/s/') && !location.pathname.includes('{made}')")
    says(tab, "First.")
    value = "document.querySelector('.composer textarea')?.value"
    tab.until(f"{value} === '[[text Read.]]'")
    listed(tab, "notes.txt")
    assert tab.run("document.activeElement.tagName") == "TEXTAREA"
    tab.call("Page.reload")
    tab.until(f"{value} === '[[text Read.]]'")
    tab.press("Escape")
    tab.go(f"{served.url}/s/{made}")
    says(tab, "Read.")
    tab.until(f"{value} === ''")
