"""The kind of a file: text, binary, an image or a PDF, by its name and its first bytes."""

from pathlib import Path
from typing import Final

from turnkeeper.text import file_text

SNIFFED_BYTES: Final = 4096
"""Number of bytes that are read to determine the type of a file."""
_BINARY: Final = (
    "zip tar gz exe dll so class jar war 7z doc docx xls xlsx ppt pptx odt ods odp bin dat obj o a lib wasm pyc pyo"
)
_BINARY_SUFFIXES: Final = frozenset(f".{name}" for name in _BINARY.split())
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\b\x1b"))


def is_binary(path: Path, head: bytes) -> bool:
    """Whether a file is no text, by its name and its beginning."""
    if path.suffix.lower() in _BINARY_SUFFIXES:
        return True
    if file_text.is_utf16(head):
        return False
    if b"\0" in head:
        return True
    controls = len(head) - len(head.translate(None, _CONTROLS))
    return controls * 10 > len(head) * 3


def media_type(head: bytes) -> str | None:
    """The media type of an image or PDF, from its first bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if head.startswith(b"%PDF-") else None
