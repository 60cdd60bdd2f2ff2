"""The page of a link in a real browser: it shows the session, follows it, and nothing of a transcript runs in it."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from chromium import chromium
from cli_store import command
from workshop import Shop

SESSION = "ses_hostile"
RUNS = "document.title = 'it runs'"
HOSTILE = (
    f'<script>{RUNS}</script>\n\n<img src=x onerror="{RUNS}">\n\n[click](javascript:{RUNS})\n\n'
    f'<svg onload="{RUNS}"></svg>\n\n![a](http://127.0.0.1:1/track.png)'
)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "data", tmp_path / "project", tmp_path / "home")
    for folder in made:
        folder.mkdir()
    return made


@contextmanager
def serving(shop: Shop) -> Iterator[str]:
    words = command("serve", "--port", "0", "--json")
    with subprocess.Popen(words, env=shop.environ(), cwd=shop.project, stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            yield json.loads(started.stdout.readline())["url"]
        finally:
            started.kill()


def said(shop: Shop, url: str, *words: str) -> str:
    done = shop.process("--server", url, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def hostile() -> dict[str, object]:
    info = {"id": SESSION, "slug": "calm-otter", "projectID": "global", "directory": "/tides", "version": "1",
            "title": f"Tides <script>{RUNS}</script>", "time": {"created": 1, "updated": 1}}  # fmt: skip
    user = {"id": "msg_1", "sessionID": SESSION, "role": "user", "time": {"created": 1}, "agent": "build",
            "model": {"providerID": "offline", "modelID": "tk-1"}}  # fmt: skip
    part = {"id": "prt_1", "sessionID": SESSION, "messageID": "msg_1", "type": "text",
            "text": f"DEPLOY_PASSWORD=low-tide-77\n\n{HOSTILE}"}  # fmt: skip
    return {"info": info, "messages": [{"info": user, "parts": [part]}]}


@pytest.mark.timeout(600)
def test_the_page_of_a_link_shows_and_follows_a_hostile_session_and_runs_nothing_of_it(
    shop: Shop, tmp_path: Path
) -> None:
    (shop.project / "hostile.json").write_text(json.dumps(hostile()))
    assert shop.process("session", "import", "hostile.json").returncode == 0
    with serving(shop) as url, chromium(tmp_path / "profile") as tab:
        link = said(shop, url, "session", "share", SESSION, "--yes")
        tab.open(link)
        tab.wait("document.querySelectorAll('article').length === 1")
        text = tab.value("document.body.innerText")
        assert "[password 1]" in text
        assert "low-tide-77" not in text
        assert "onerror" in text
        assert tab.value("document.querySelectorAll('article script, article img, article svg').length") == 0
        assert tab.value("document.querySelectorAll('a[href^=\"javascript\"]').length") == 0
        assert tab.value("document.title") == "Shared session"
        said(shop, url, "session", "rename", SESSION, "Another title")
        tab.wait("document.querySelector('h1').textContent === 'Another title'")
        said(shop, url, "session", "unshare", SESSION)
        tab.wait("document.querySelectorAll('article').length === 0")
        assert "withdrawn" in tab.value("document.body.innerText")
        assert tab.console == []
