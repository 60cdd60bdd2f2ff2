"""Think tags: extracts reasoning that a host sends inside the content, between ``<think>`` and ``</think>``.

Only a tag at the beginning of an answer starts reasoning. A later tag is text.
"""

from enum import Enum, auto
from typing import Final

OPEN: Final = "<think>"
CLOSE: Final = "</think>"


class _State(Enum):
    BEFORE = auto()
    INSIDE = auto()
    BEHIND = auto()
    OVER = auto()


class ThinkTags:
    """Splits content, which arrives in pieces split anywhere, into reasoning and text."""

    def __init__(self) -> None:
        self._state = _State.BEFORE
        self._held = ""
        """The end of the content so far, while it may be the beginning of a tag."""
        self._has_thought = False

    @property
    def is_over(self) -> bool:
        """Whether all further content is text."""
        return self._state is _State.OVER

    def feed(self, content: str) -> tuple[str, str]:
        """The reasoning and the text of the next piece of content; the reasoning comes first."""
        content, self._held = self._held + content, ""
        match self._state:
            case _State.BEFORE:
                return self._before(content)
            case _State.INSIDE:
                return self._inside(content)
            case _State.BEHIND:
                return "", self._behind(content)
            case _State.OVER:
                return "", content

    def end(self) -> tuple[str, str]:
        """The held reasoning and text, at the end of the content."""
        held, self._held = self._held, ""
        is_inside, self._state = self._state is _State.INSIDE, _State.OVER
        return (held, "") if is_inside else ("", held)

    def _before(self, content: str) -> tuple[str, str]:
        begun = content.lstrip()
        if begun.startswith(OPEN):
            self._state = _State.INSIDE
            return self._inside(begun.removeprefix(OPEN))
        if OPEN.startswith(begun):
            self._held = content
            return "", ""
        self._state = _State.OVER
        return "", content

    def _inside(self, content: str) -> tuple[str, str]:
        if not self._has_thought:
            content = content.lstrip()
        thought, tag, text = content.partition(CLOSE)
        if tag:
            self._state = _State.BEHIND
            return thought, self._behind(text)
        kept = next(size for size in range(min(len(CLOSE), len(content)), -1, -1) if content.endswith(CLOSE[:size]))
        thought, self._held = content[: len(content) - kept], content[len(content) - kept :]
        self._has_thought = self._has_thought or bool(thought)
        return thought, ""

    def _behind(self, content: str) -> str:
        """The text after the closing tag, without leading white space."""
        text = content.lstrip()
        if text:
            self._state = _State.OVER
        return text
