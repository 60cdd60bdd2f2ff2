"""Take the pictures of the web page for the documents: a real server, a real browser, and a model that plays a script.

python scripts/record_web.py    writes docs/images/web-*.png
"""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio.from_thread

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))

from browser import Browser, Tab, browsing, get, post, program  # noqa: E402  # The tests' own client of a browser.
from clients import Served, environment, serving  # noqa: E402

from turnkeeper.providers.script import Script  # noqa: E402
from turnkeeper.testing.server import ScriptedServer  # noqa: E402
from turnkeeper.workspace.config import project_settings  # noqa: E402
from turnkeeper.workspace.trust import TrustedDirectories  # noqa: E402

IMAGES = ROOT / "docs/images"
TIDES = "def peak(heights):\n    return max(heights)\n"
FIXED = "def peak(heights):\n    if not heights:\n        return None\n    return round(max(heights), 1)\n"
CHECK = "from tides import peak\n\nassert peak([39.96, 40.04]) == 40.0\nassert peak([]) is None\n"

ANSWER = """The peak was **not rounded**, and an empty list of heights raised an error. Both are mended:

```python
def peak(heights: list[float]) -> float | None:
    if not heights:
        return None
    return round(max(heights), 1)
```

- `tides.py` returns `None` when nothing was measured
- `test_tides.py` has a test for each of the two

The tests pass now."""


def configure(project: Path, served: Served) -> None:
    """A trusted project with one priced model, and commands that are asked about."""
    price = {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75}
    model = {"name": "Scripted One", "tool_call": True, "limit": {"context": 24_000, "output": 4_096}, "cost": price}
    fake = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": served.provider, "apiKey": "no-secret"},
        "models": {"one": model},
    }
    rules = {"bash": {"*": "allow", "make deploy*": "ask"}, "edit": "allow"}
    given = {
        "provider": {"scripted": fake},
        "model": "scripted/one",
        "small_model": "scripted/one",
        "permission": rules,
    }
    (project / "opencode.json").write_text(json.dumps({**given, "enabled_providers": ["scripted"]}), "utf-8")
    environ = environment(served.home)
    TrustedDirectories(environ).add(project, settings=project_settings(project, project, environ).contents)


def script(project: Path) -> Script:
    """What the model says and calls, answer by answer. The requests grow, as they do."""
    todos = ["Read the module", "Write tests first", "Round the peak", "Run the tests"]

    def listed(done: int) -> list[dict[str, str]]:
        status = ["completed"] * done + ["in_progress"] + ["pending"] * len(todos)
        return [{"content": one, "status": status[nth], "priority": "medium"} for nth, one in enumerate(todos)]

    read, written = str(project / "tides.py"), str(project / "test_tides.py")
    plan: list[Callable[[Script], Script]] = [
        lambda one: one.says("The wind turned north at noon."),
        lambda one: one.calls("read", filePath=str(project / "opencode.json")),
        lambda one: one.says("Eleven buoys are listed."),
        lambda one: one.calls("read", filePath=read),
        lambda one: one.says("`peak` gives the highest of the measured heights. It fails on an empty list."),
        lambda one: (
            one.thinks("The tests come first, so that they fail once.")
            .calls("todowrite", todos=listed(1))
            .calls("write", filePath=written, content=CHECK)
        ),
        lambda one: one.calls("bash", command="python3 test_tides.py", description="Run the tests"),
        lambda one: (
            one.says("As expected, it fails. Now the module.")
            .calls("write", filePath=read, content=FIXED)
            .calls("todowrite", todos=listed(3))
        ),
        lambda one: one.calls("bash", command="python3 test_tides.py && echo '2 passed'", description="Run the tests"),
        lambda one: one.says(ANSWER),
        lambda one: one.calls("bash", command="make deploy STATION=pier-50", description="Deploy"),
    ]
    played = Script().titles("A title")
    for nth, act in enumerate(plan):
        # As a provider with a cache would count: what was sent before is read again, but for one miss.
        before = 0 if nth in (0, 1, 3, 8) else 2600 + nth * 850
        sent = before + (3000 + nth * 850 if not before else 700 + nth * 130 % 700)
        act(played).usage(input=sent, output=120 + nth * 70 % 400, cache_read=before).then()
    played.says("Done.").forever()
    return played


def talk(served: Served, project: Path) -> str:
    """A session as people have them: looked at, changed, tested, failed, mended; the last command waits."""

    def create(title: str, **given: str) -> str:
        made = post(f"{served.url}/session", params={"directory": str(project)}, json={"title": title, **given})
        return str(made.json()["id"])

    def ask(session: str, text: str) -> None:
        body = {"parts": [{"type": "text", "text": text}]}
        post(f"{served.url}/session/{session}/message", json=body).raise_for_status()

    wind, buoys = create("Wind over the bay"), create("Buoys of the harbour")
    ask(wind, "When did the wind turn?")
    ask(buoys, "How many buoys are there?")
    for pier in ("1 to 10", "11 to 20"):
        create(f"Survey piers {pier}", parentID=buoys)
    post(f"{served.url}/session/{wind}/fork", json={}).raise_for_status()
    session = create("Fix the tide peak")
    ask(session, "What does tides.py do?")
    ask(session, "Round the peak to one digit, and mind empty lists. Write tests first.")
    body = {"parts": [{"type": "text", "text": "Deploy it to the station."}]}
    post(f"{served.url}/session/{session}/prompt_async", json=body).raise_for_status()
    return session


def take(browser: Browser, served: Served, session: str) -> None:
    """All pictures."""

    def picture(tab: Tab, name: str) -> None:
        tab.run("new Promise(done => setTimeout(done, 400))")
        tab.picture(IMAGES / f"web-{name}.png")

    page = f"{served.url}/s/{session}"
    tab = browser.tab(width=1360, height=860)
    tab.dark(False)
    tab.go(page)
    tab.shows("Waiting for you")
    tab.shows("The tests pass now.")
    tab.until("!document.querySelector('.prose.plain')")  # Markdown is rendered by a worker, a moment later.
    picture(tab, "session")
    tab.dark(True)
    tab.press("t")
    tab.until("document.querySelector('.timeline')")
    tab.click("[role=tab]", "Cost")
    tab.until("document.querySelectorAll('.bars g').length > 0")
    picture(tab, "timeline-dark")
    tab.dark(False)
    tab.click("[role=tab]", "Context")
    tab.shows("What the model is shown")
    tab.shows("Epochs".upper())
    picture(tab, "context")
    tab.click("button", "Compare with the log")
    tab.until("document.querySelectorAll('.compare tbody tr').length > 3")
    picture(tab, "compare")
    tab.press("Escape")
    turns = get(f"{served.url}/tk/session/{session}/timeline").json()["turns"]
    tab.go(f"{page}?at={turns[len(turns) // 2]['end']}")
    tab.shows("As of event")
    tab.shows("Fork from here")
    picture(tab, "past")
    tab.go(served.url)
    tab.until("document.querySelectorAll('.row').length > 2")
    picture(tab, "sessions")
    tab.close()
    phone = browser.tab(width=390, height=800)
    phone.resize(390, 800, is_phone=True)
    phone.dark(False)
    phone.go(page)
    phone.shows("Waiting for you")
    picture(phone, "phone")
    phone.close()


def main() -> None:
    """Serve, talk, look."""
    if program() is None:
        raise SystemExit("no Chromium is installed; run make browser")
    with TemporaryDirectory() as folder, anyio.from_thread.start_blocking_portal() as portal:
        home, project, profile = Path(folder, "home"), Path(folder, "code/weather"), Path(folder, "profile")
        for place in (home, project, profile):
            place.mkdir(parents=True)
        (project / "tides.py").write_text(TIDES, "utf-8")
        (project / ".gitignore").write_text("__pycache__/\n", "utf-8")
        subprocess.run(["git", "init", "-q"], cwd=project, check=True)
        with (
            portal.wrap_async_context_manager(ScriptedServer(script(project))) as scripted,
            serving(project, home, scripted.url) as served,
            browsing(profile) as browser,
        ):
            configure(project, served)
            take(browser, served, talk(served, project))


if __name__ == "__main__":
    main()
