"""Encoded runs: pieces of a text that are base64, hexadecimal digits or escapes, with their decoded content."""

import html
import re
from base64 import b64decode
from binascii import Error, unhexlify
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]{16,}+(?:(?:\r?\n[ \t+>|]*|\\r?\\n)[A-Za-z0-9+/_-]{4,}+)*+={0,2}")
_HEX: Final = re.compile(r"(?<![0-9A-Za-z])(?:0x)?(?P<v>(?:[0-9a-fA-F]{2}){8,}+)(?![0-9A-Za-z])")
_PAIRS: Final = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{2}(?:[ :][0-9a-fA-F]{2}){7,}+(?![0-9A-Za-z])")
_PERCENT: Final = re.compile(r"(?<![\w.~!*'()+/@:%-])[\w.~!*'()+/@:-]*+%[0-9a-fA-F]{2}[\w.~!*'()+/@:%-]*+")
_WORD: Final = r"[\w.~+/@:=-]*+"
_ESCAPED: Final = re.compile(
    rf"(?<![\w.~+/@:=-])(?:{_WORD}(?:\\u[0-9a-fA-F]{{4}}|\\x[0-9a-fA-F]{{2}}|&#x?[0-9a-fA-F]{{1,6}};))++{_WORD}"
)
_ONE_ESCAPE: Final = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_LAYOUT: Final = re.compile(r"\\r|\\n|[\s+>|]*\n[\s+>|]*")

PRINTABLE_MIN: Final = 0.9
"""Bytes of which fewer are printable are no text."""


class Run(NamedTuple):
    """An encoded piece of a text from ``start`` to ``end``, and its decoded content."""

    start: int
    end: int
    decoded: str
    is_text: bool
    """Whether the decoded content is readable text, and not an image or the like."""


def runs(text: str) -> Iterator[Run]:
    """The encoded pieces of a text. A piece that can be decoded in several ways is given for each of them."""
    for match in _BASE64.finditer(text):
        yield from _base64(match)
    for match in _HEX.finditer(text):
        yield _run(match, unhexlify(match["v"]))
    for match in _PAIRS.finditer(text):
        yield _run(match, bytes.fromhex(match[0].replace(":", " ")))
    if "%" in text:
        for match in _PERCENT.finditer(text):
            yield _run(match, unquote_to_bytes(match[0]))
    if "\\u" in text or "\\x" in text or "&#" in text:
        for match in _ESCAPED.finditer(text):
            yield Run(match.start(), match.end(), html.unescape(_ONE_ESCAPE.sub(_unescaped, match[0])), True)


def _base64(match: re.Match[str]) -> Iterator[Run]:
    """The base64 decoded from each of four offsets: a text before it, such as a path, may be of the same alphabet."""
    joined = _LAYOUT.sub("", match[0]).rstrip("=").replace("-", "+").replace("_", "/")
    for skipped in range(min(4, len(joined))):
        piece = joined[skipped:]
        piece = piece[:-1] if len(piece) % 4 == 1 else piece
        try:
            yield _run(match, b64decode(piece + "=" * (-len(piece) % 4)))
        except Error:
            continue


def _run(match: re.Match[str], decoded: bytes) -> Run:
    printable = sum(32 <= byte < 127 or byte in b"\r\n\t" or byte >= 0xC2 for byte in decoded[:4096])
    is_text = printable >= PRINTABLE_MIN * len(decoded[:4096])
    return Run(match.start(), match.end(), decoded.decode("utf-8" if is_text else "latin-1", "replace"), is_text)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1] or match[2], 16))
