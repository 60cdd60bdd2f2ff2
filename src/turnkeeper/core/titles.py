"""Titles a session has before anybody names it, and the title of its fork."""

import re
from datetime import datetime, timedelta
from typing import Final

PROMPT_CHARS: Final = 50
"""The length of a title that is made from a prompt."""
ROOT_PREFIX: Final = "New session - "
CHILD_PREFIX: Final = "Child session - "

_EPOCH: Final = datetime(1970, 1, 1)
_DEFAULT: Final = re.compile(
    rf"({ROOT_PREFIX}|{CHILD_PREFIX})[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}\.[0-9]{{3}}Z"
)
# Fifteen digits: enough for every fork there will be, and no title can make us parse a number without end.
_FORKED: Final = re.compile(r"(.+) \(fork #([0-9]{1,15})\)")


def default_title(now_ms: int, *, child: bool = False) -> str:
    """The title of a session created at this time without one."""
    # Whole milliseconds all the way: a float would show .689 for .690.
    created = (_EPOCH + timedelta(milliseconds=now_ms)).isoformat(timespec="milliseconds")
    return f"{CHILD_PREFIX if child else ROOT_PREFIX}{created}Z"


def is_default(title: str) -> bool:
    """Whether nobody, neither a person nor a model, has named this session yet."""
    return _DEFAULT.fullmatch(title) is not None


def prompt_title(text: str) -> str | None:
    """A title for a session that no model has named: the first words of its prompt; None if it is blank."""
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
    match = _FORKED.fullmatch(title) if title.endswith(")") else None  # A short look at what most titles are not.
    return int(match[2]) if match else 0


def fork_title(title: str) -> str:
    """The title of a fork: ``X`` gives ``X (fork #1)``, and that gives ``X (fork #2)``."""
    return f"{base_of_fork(title)} (fork #{number_of_fork(title) + 1})"
