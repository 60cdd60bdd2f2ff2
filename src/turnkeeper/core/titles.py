"""Titles of sessions: the default, the title in a model's answer, and the title of a fork."""

import re
from datetime import datetime, timedelta
from typing import Final

from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.view import SessionView
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import CompactionPart, Part, TextPart

PROMPT_CHARS: Final = 50
"""The length of a title that is made from a prompt."""
TITLE_CHARS_MAX: Final = 100
ROOT_PREFIX: Final = "New session - "
CHILD_PREFIX: Final = "Child session - "

_THOUGHT: Final = re.compile(r"<think>.*?</think>", re.DOTALL)
_EPOCH: Final = datetime(1970, 1, 1)
_DEFAULT: Final = re.compile(
    rf"({ROOT_PREFIX}|{CHILD_PREFIX})[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}\.[0-9]{{3}}Z"
)
# At most fifteen digits, so that no title makes us parse an endless number.
_FORKED: Final = re.compile(r"(.+) \(fork #([0-9]{1,15})\)")


def default_title(now_ms: int, *, child: bool = False) -> str:
    """The title of a session that is created without one."""
    # Computed with integers: a float would show .689 for .690.
    created = (_EPOCH + timedelta(milliseconds=now_ms)).isoformat(timespec="milliseconds")
    return f"{CHILD_PREFIX if child else ROOT_PREFIX}{created}Z"


def is_default(title: str) -> bool:
    """Whether a title is the default title."""
    return _DEFAULT.fullmatch(title) is not None


def prompt_title(text: str) -> str | None:
    """A title made of the first words of a prompt; None if the prompt is blank."""
    line = " ".join(text[: PROMPT_CHARS * 20].split())
    if len(line) <= PROMPT_CHARS:
        return line or None
    whole, space, _ = line[: PROMPT_CHARS + 1].rpartition(" ")
    return f"{whole if space else line[:PROMPT_CHARS]}…"


def base_of_fork(title: str) -> str:
    """The title without its fork number."""
    match = _FORKED.fullmatch(title)
    return match[1] if match else title


def number_of_fork(title: str) -> int:
    """The fork number in a title; 0 if it has none."""
    match = _FORKED.fullmatch(title) if title.endswith(")") else None  # Most titles fail this cheap test.
    return int(match[2]) if match else 0


def fork_title(title: str) -> str:
    """The title of a fork: ``X`` gives ``X (fork #1)``, and that gives ``X (fork #2)``."""
    return f"{base_of_fork(title)} (fork #{number_of_fork(title) + 1})"


def wants_title(view: SessionView, history: History) -> bool:
    """Whether to make a title now: for a root session with a default title, once there is a prompt."""
    if view.session.parent_id is not None or not is_default(view.session.title):
        return False
    return any(map(_is_real, history.entries))


def cleaned(answer: str) -> str | None:
    """The title in a model's answer: its first line that is not blank, cut to TITLE_CHARS_MAX; None without one."""
    lines = (line.strip() for line in _THOUGHT.sub("", answer).splitlines())
    title = next((line for line in lines if line), None)
    if title is not None and len(title) > TITLE_CHARS_MAX:
        return title[: TITLE_CHARS_MAX - 3] + "..."
    return title


def first_prompt(history: History) -> HistoryItem:
    """The first prompt of a history for which ``wants_title`` holds."""
    return next(entry for entry in history.entries if _is_real(entry))


def own_title(history: History) -> str | None:
    """A title made of the first prompt, if no model gives one."""
    texts = [part.text for part in first_prompt(history).parts if isinstance(part, TextPart) and not part.synthetic]
    return prompt_title("\n".join(texts))


def _is_real(entry: HistoryItem) -> bool:
    """Whether a message is a prompt of the user, not one that the runtime made."""
    if not isinstance(entry.message, UserMessage):
        return False
    return not all(isinstance(part, CompactionPart) or _is_synthetic(part) for part in entry.parts)


def _is_synthetic(part: Part) -> bool:
    return isinstance(part, TextPart) and bool(part.synthetic)
