"""Recall: pages of the text of a handle, and search hits. The decisions; ``store/recall.py`` reads the store."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal

from turnkeeper.core.handles import RecallText
from turnkeeper.core.limits import RECALL_PAGE_BYTES, RECALL_PAGE_CHARS, RECALL_SNIPPET_CHARS
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Value

TOOL: Final = "recall"
"""The name of the tool. Its outputs are copies, so they are neither searched nor pruned."""

_WORD: Final = re.compile(r"[^\W_]+")
_BEFORE: Final = 60


class NamedFile(Value):
    """A file in the same part as a text, with its own handle."""

    handle: str
    label: str


class Recalled(Value):
    """The text of a handle, its message, and the files in the same part."""

    message_id: str
    piece: RecallText
    files: tuple[NamedFile, ...] = ()


class RecallPage(Value):
    """Characters of a text from ``offset`` on. ``next_offset`` is None on the last page."""

    handle: str
    label: str
    message_id: str
    part_id: str | None = None
    text: str
    offset: int
    next_offset: int | None = None
    total: int
    mime: str | None = None
    """Set for a file that is not text; ``text`` is then its ``data:`` URL."""
    files: tuple[NamedFile, ...] = ()


class RecallHit(Value):
    """A text that matches a search, with the handle that recalls it."""

    handle: str
    label: str
    message_id: str
    part_id: str | None = None
    snippet: str
    total: int
    hidden: Literal["compacted", "pruned", "bounded"] | None = None
    """Why requests do not have the whole text."""


def page(
    recalled: Recalled,
    offset: int = 0,
    *,
    chars_max: int | None = RECALL_PAGE_CHARS,
    bytes_max: int | None = RECALL_PAGE_BYTES,
) -> RecallPage:
    """The characters from ``offset`` on, within both limits; None is no limit. Raises Invalid beyond the end."""
    if chars_max is not None and chars_max < 1:
        raise Invalid(f"a page holds at least one character, not {chars_max}; without a limit it holds them all")
    piece = recalled.piece
    total = len(piece.text)
    if not 0 <= offset < total:
        raise Invalid(f"offset {offset} is outside the text, which has {total} characters")
    text = piece.text[offset : offset + chars_max] if chars_max is not None else piece.text[offset:]
    if bytes_max is not None:
        text = _within(text, bytes_max)
    end = offset + len(text)
    return RecallPage(
        handle=piece.handle,
        label=piece.label,
        message_id=recalled.message_id,
        part_id=piece.part_id,
        text=text,
        offset=offset,
        next_offset=end if end < total else None,
        total=total,
        mime=piece.mime,
        files=recalled.files,
    )


def words_of(query: str) -> tuple[str, ...]:
    """The distinct words of a query. Raises Invalid if there are none."""
    words = tuple(dict.fromkeys(_WORD.findall(query)))
    if not words:
        raise Invalid(f"{query!r} holds no word to look for")
    return words


def holding(pieces: Iterable[RecallText], words: Sequence[str]) -> list[RecallText]:
    """The texts that hold, for each word, a word with this prefix. Files are not searched."""
    patterns = [_beginning(word) for word in words]
    return [one for one in pieces if one.mime is None and all(pattern.search(one.text) for pattern in patterns)]


def snippet(text: str, words: Sequence[str]) -> str:
    """One line around the first match of these words; the beginning of the text without a match."""
    found = (match.start() for word in words if (match := _beginning(word).search(text)))
    start = max(next(found, 0) - _BEFORE, 0)
    end = start + RECALL_SNIPPET_CHARS
    line = " ".join(text[start:end].split())
    return f"{'…' if start else ''}{line}{'…' if end < len(text) else ''}"


def _beginning(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_]){re.escape(word)}", re.IGNORECASE)


def _within(text: str, bytes_max: int) -> str:
    """As many whole characters as fit into ``bytes_max``, at least one."""
    content = text.encode("utf-8", "surrogatepass")
    if len(content) <= bytes_max:
        return text
    while bytes_max > 0 and content[bytes_max] & 0xC0 == 0x80:
        bytes_max -= 1
    return content[:bytes_max].decode("utf-8", "surrogatepass") or text[0]
