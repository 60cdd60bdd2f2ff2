"""What tests do on the web page: make a session, send a prompt, wait for an answer."""

from pathlib import Path
from typing import Any

from browser import Tab, post
from clients import Served


def session(served: Served, project: Path, title: str = "Tide tables") -> str:
    """A new session."""
    made = post(f"{served.url}/session", params={"directory": str(project)}, json={"title": title}).json()
    return str(made["id"])


def ask(served: Served, session_id: str, text: str, **given: Any) -> dict[str, Any]:
    """Send a prompt and wait for its answer."""
    body = {"parts": [{"type": "text", "text": text}], **given}
    answer = post(f"{served.url}/session/{session_id}/message", json=body).json()
    assert isinstance(answer, dict)
    return answer


def prompt(tab: Tab, text: str) -> None:
    """Type a prompt and send it."""
    tab.fill(".composer textarea", text)
    tab.until("!document.querySelector('.composer button.primary').disabled")
    tab.press("Enter")


def says(tab: Tab, words: str) -> None:
    """Wait until an answer has these words."""
    found = (
        f"[...document.querySelectorAll('.message-assistant .prose')].some(one => one.innerText.includes({words!r}))"
    )
    tab.until(found, f"an answer with {words!r}")
