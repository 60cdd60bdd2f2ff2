"""A real Chromium without a window, driven over pipes. Tests skip where none is installed."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_S = 120


class Tab:
    """One page of a browser."""

    def __init__(self, to: int, came: int) -> None:
        self._to, self._came, self._number, self._rest = to, came, 0, b""
        self._session: str | None = None
        self.console: list[str] = []
        """What the page wrote to its console, and what went wrong in it."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **given: object) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            heard = self._next()
            if heard.get("id") == self._number:
                assert "error" not in heard, heard
                answer: dict[str, Any] = heard["result"]
                return answer
            if heard.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
                self.console.append(json.dumps(heard["params"]))

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """What an expression is in the page."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def wait(self, script: str) -> Any:
        """Wait until an expression is true in the page, which looks at it itself again and again."""
        looked = f"const look = () => {{ const found = {script}; if (found) done(found); else setTimeout(look, 20) }}"
        ended = f"setTimeout(() => done(null), {DEADLINE_S * 1000})"
        promise = f"new Promise((done) => {{ {looked}; {ended}; look() }})"
        found = self.call("Runtime.evaluate", expression=promise, returnByValue=True, awaitPromise=True)
        value = found["result"].get("value")
        assert value, (script, self.value("document.body.innerText"), self.console)
        return value

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._came, 1 << 16)
            assert more, "the browser has ended"
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\0")
        heard: dict[str, Any] = json.loads(line)
        return heard


@contextmanager
def chromium(home: Path) -> Iterator[Tab]:
    """A browser with a profile of its own."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        pytest.skip(f"no browser is installed: {', '.join(NAMES)}")
    (its_in, to), (came, its_out) = os.pipe(), os.pipe()

    def place() -> None:  # The browser reads from 3 and writes to 4.
        kept_in, kept_out = os.dup(its_in), os.dup(its_out)
        os.dup2(kept_in, 3)
        os.dup2(kept_out, 4)

    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
    started = subprocess.Popen(
        [program, *words, f"--user-data-dir={home}", "about:blank"],
        preexec_fn=place,
        close_fds=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(its_in)
    os.close(its_out)
    try:
        yield Tab(to, came)
    finally:
        started.kill()
        started.wait()
        os.close(to)
        os.close(came)
