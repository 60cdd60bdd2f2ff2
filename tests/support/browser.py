"""A real Chromium, driven over its DevTools protocol through a pipe."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2

HERE: Final = Path(__file__).parents[1] / "web"
AXE: Final = HERE / "node_modules/axe-core/axe.min.js"
DEADLINE_S: Final = 120
"""How long a page may take before its test fails: a busy machine is slow."""
PAGE_DEADLINE_MS: Final = 100_000
LOOKED_EVERY_MS: Final = 30
NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def get(url: str, **given: Any) -> httpx2.Response:
    """A request to the server behind the page, which a busy machine may answer late."""
    return httpx2.get(url, timeout=DEADLINE_S, **given)


def post(url: str, **given: Any) -> httpx2.Response:
    """The same, with a body."""
    return httpx2.post(url, timeout=DEADLINE_S, **given)


def program() -> str | None:
    """Where a Chromium is: as ``CHROMIUM`` says, or on the path."""
    return os.environ.get("CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)


class PageError(AssertionError):
    """What a script in the page raised."""


class Browser:
    """A browser that runs."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._answers: dict[int, dict[str, Any]] = {}
        self._heard = threading.Condition()
        self._next = 0
        self._tabs: dict[str, Tab] = {}
        self._is_open = True
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def call(self, method: str, session: str | None = None, **params: Any) -> Any:
        """Call a method of the protocol and wait for its answer."""
        with self._heard:
            self._next += 1
            number = self._next
        message = {"id": number, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        with self._heard:
            answered = self._heard.wait_for(lambda: number in self._answers or not self._is_open, DEADLINE_S)
            assert answered, f"{method} was not answered"
            assert number in self._answers, f"the browser ended during {method}"
            answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def tab(self, *, width: int = 1280, height: int = 860) -> "Tab":
        """A new tab with storage of its own."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = Tab(self, session, target)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.resize(width, height)
        return tab

    def close(self) -> None:
        """Close the pipes, which ends the browser."""
        os.close(self._write)
        self._thread.join(DEADLINE_S)
        os.close(self._read)

    def _listen(self) -> None:
        rest = b""
        while chunk := os.read(self._read, 1 << 20):
            *messages, rest = (rest + chunk).split(b"\0")
            for raw in messages:
                message = json.loads(raw)
                with self._heard:
                    if "id" in message:
                        self._answers[message["id"]] = message
                    elif (tab := self._tabs.get(message.get("sessionId", ""))) is not None:
                        tab.hear(message["method"], message["params"])
                    self._heard.notify_all()
        with self._heard:
            self._is_open = False
            self._heard.notify_all()


class Tab:
    """One tab. ``errors`` are what its console complained about, ``requests`` the addresses it asked for."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target
        self.errors: list[str] = []
        self.requests: list[str] = []

    def call(self, method: str, **params: Any) -> Any:
        return self._browser.call(method, self._session, **params)

    def hear(self, method: str, params: dict[str, Any]) -> None:
        match method:
            case "Runtime.exceptionThrown":
                detail = params["exceptionDetails"]
                self.errors.append(detail.get("exception", {}).get("description") or detail["text"])
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "assert"):
                self.errors.append(" ".join(str(one.get("value", one.get("description"))) for one in params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])

    def go(self, url: str) -> None:
        """Load an address."""
        self.call("Page.navigate", url=url)

    def visit(self, path: str) -> None:
        """Go to another address of the page without loading it anew."""
        self.run(f"history.pushState(null, '', {json.dumps(path)}); dispatchEvent(new PopStateEvent('popstate'))")

    def resize(self, width: int, height: int, *, is_phone: bool = False) -> None:
        """Set the size of the page."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=is_phone
        )

    def dark(self, is_dark: bool) -> None:
        """Ask for dark colours, or for light ones."""
        value = "dark" if is_dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": value}])

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise PageError(answer["exceptionDetails"].get("exception", {}).get("description", script))
        return answer["result"].get("value")

    def until(self, script: str, what: str = "") -> None:
        """Wait until an expression is true, as JavaScript understands it."""
        end = time.monotonic() + DEADLINE_S
        look = (
            f"new Promise((done) => {{ const end = Date.now() + {PAGE_DEADLINE_MS}; const look = async () => {{ "
            f"try {{ if (await ({script})) return done(true); }} catch {{}} "
            f"return Date.now() > end ? done(false) : setTimeout(look, {LOOKED_EVERY_MS}); }}; look(); }})"
        )
        while time.monotonic() < end:
            try:
                if self.run(look):
                    return
                break
            except AssertionError:  # Another page was loaded meanwhile.
                continue
        raise AssertionError(f"it never came true: {what or script}\nThe page shows:\n{self.text()}")

    def text(self) -> str:
        """What a person reads on the page."""
        return str(self.run("document.body.innerText"))

    def shows(self, words: str) -> None:
        """Wait until these words are on the page. Capital letters may be the style's, so they do not count."""
        self.until(
            f"document.body.innerText.toLowerCase().includes({json.dumps(words.lower())})", f"the words {words!r}"
        )

    def lacks(self, words: str) -> None:
        """Wait until these words are not on the page."""
        self.until(
            f"!document.body.innerText.toLowerCase().includes({json.dumps(words.lower())})",
            f"the page without {words!r}",
        )

    def click(self, selector: str, words: str = "") -> None:
        """Click the first element that fits, and has these words."""
        has = f"(one.innerText ?? '').includes({json.dumps(words)})"
        find = f"[...document.querySelectorAll({json.dumps(selector)})].find(one => {has})"
        self.until(f"Boolean({find}) && !{find}.disabled", f"{selector} with {words!r}")
        self.run(f"{find}.click()")

    def fill(self, selector: str, text: str) -> None:
        """Focus a field and type a text into it."""
        self.until(f"Boolean(document.querySelector({json.dumps(selector)}))", selector)
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def press(self, key: str, *, shift: bool = False, control: bool = False) -> None:
        """Press a key."""
        modifiers = (8 if shift else 0) | (2 if control else 0)
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 and not control else "")
        codes = {
            "Enter": 13,
            "Escape": 27,
            "ArrowLeft": 37,
            "ArrowRight": 39,
            "End": 35,
            "Home": 36,
            "Tab": 9,
            "PageUp": 33,
        }
        for kind in ("keyDown", "keyUp"):
            given = {"type": kind, "key": key, "modifiers": modifiers, "windowsVirtualKeyCode": codes.get(key, 0)}
            if kind == "keyDown" and text:
                given["text"] = text
            self.call("Input.dispatchKeyEvent", **given)

    def drop(self, selector: str, *paths: Path) -> None:
        """Drop files or folders of the disk on the middle of an element."""
        self.until(f"Boolean(document.querySelector({json.dumps(selector)}))", selector)
        x, y = self.run(
            f"(box => [box.left + box.width / 2, box.top + box.height / 2])"
            f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
        )
        data = {"items": [], "files": [str(one) for one in paths], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.call("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)

    def wheel(self, delta: int) -> None:
        """Turn the wheel over the middle of the page."""
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=500, y=400, deltaX=0, deltaY=delta)

    def picture(self, path: Path) -> None:
        """Write what is shown as a PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def close(self) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own."""
    found = program()
    assert found is not None, "there is no Chromium"
    ours_read, theirs_write = os.pipe()
    theirs_read, ours_write = os.pipe()
    words = [
        "--headless=new",
        "--remote-debugging-pipe",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--no-first-run",
        "--disable-extensions",
        "--disable-background-networking",
        "--disable-component-update",
        "--force-color-profile=srgb",
        "--hide-scrollbars",
        f"--user-data-dir={folder}",
    ]
    environ = {**os.environ, "HOME": str(folder), "TZ": "UTC", "LANG": "en_GB.UTF-8"}

    def connect() -> None:
        # The browser reads from descriptor 3 and writes to 4. Copies above both keep one from overwriting the other.
        source, sink = fcntl.fcntl(theirs_read, fcntl.F_DUPFD, 64), fcntl.fcntl(theirs_write, fcntl.F_DUPFD, 64)
        os.dup2(source, 3)
        os.dup2(sink, 4)

    with subprocess.Popen(
        [found, *words],
        preexec_fn=connect,
        pass_fds=(3, 4),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
    ) as started:
        os.close(theirs_read)
        os.close(theirs_write)
        browser = Browser(ours_read, ours_write)
        try:
            yield browser
        finally:
            browser.close()
            started.terminate()
            started.wait(DEADLINE_S)
