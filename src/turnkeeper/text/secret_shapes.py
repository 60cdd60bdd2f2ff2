"""Secret shapes: finds tokens of vendors, private keys, and values at the places of secrets."""

import re
from collections.abc import Iterator
from typing import Final

from turnkeeper.text.named_values import named_values, passwords, variables
from turnkeeper.text.placed_shapes import PGPASS, PLACED_SHAPES
from turnkeeper.text.private_keys import KEY_SHAPES, keys_without_beginning
from turnkeeper.text.shape import LINE_NUMBER, PASSWORD, Found, entropy
from turnkeeper.text.vendor_shapes import VENDOR_SHAPES, keys_without_prefix

SHAPES: Final = (*KEY_SHAPES, *VENDOR_SHAPES, *PLACED_SHAPES)
_HINTS: Final = tuple((hint, shape) for shape in SHAPES for hint in shape.hints)

_COLOUR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BREAK: Final = re.compile(
    rf"(?<=[A-Za-z0-9+/_=.-]{{2}})\r?\n(?:[ \t]*{LINE_NUMBER}[ \t]?|[+>|-][ \t]?)?"
    r"(?P<rest>(?=[A-Za-z+/_=.-]{0,60}[0-9+/_=]|[a-z]{0,30}[A-Z])[A-Za-z0-9+/_=.~-]{3,400}+)(?![ \t]*[=(])"
)
"""A line break after a word, and a next line that begins with something else than a plain word."""
_LINE_CHARS_MAX, _REST_CHARS = 400, 40
"""Characters that are read before the line break, and after the word that follows it."""


def shapes_in(text: str) -> Iterator[Found]:
    """The secrets in a text that their shape or their place gives away. They may overlap."""
    if "\x1b" in text:
        text = _COLOUR.sub(lambda match: " " * len(match[0]), text)
    yield from _shapes(text)
    if "\n" in text:
        yield from _wrapped(text)


def _shapes(text: str) -> Iterator[Found]:
    lower = text.lower()
    if len(lower) != len(text):  # A few letters are two in lower case; places would not agree.
        lower = re.sub("[A-Z]", lambda match: match[0].lower(), text)
    for hint, shape in [one for one in _HINTS if one[0] in lower]:
        place = lower.find(hint)
        while place >= 0:
            end = place + 1
            if (match := shape.pattern.match(text, place)) is not None:
                start, end = match.span("v" if "v" in match.re.groupindex else 0)
                if shape.is_secret(text[start:end]):
                    yield Found(start, end, shape.kind)
                end = max(place + 1, end)
            place = lower.find(hint, end)
    yield from keys_without_prefix(text, lower)
    yield from named_values(text, lower)
    yield from passwords(text, lower)
    yield from variables(text)
    yield from keys_without_beginning(text)
    if ":" in text:
        yield from (Found(*match.span("v"), PASSWORD) for match in PGPASS.finditer(text))


def _wrapped(text: str) -> Iterator[Found]:
    """Secrets that a line break divides: a terminal breaks a long line anywhere."""
    for match in _BREAK.finditer(text):
        end, gap = match.start(), match.start("rest") - match.start()
        begin = text.rfind("\n", max(0, end - _LINE_CHARS_MAX), end) + 1 or max(0, end - _LINE_CHARS_MAX)
        rest = text[match.start("rest") : match.end() + _REST_CHARS].partition("\n")[0]
        for one in _shapes(text[begin:end] + rest):
            if one.start + begin < end < one.end + begin:
                yield Found(one.start + begin, one.end + begin + gap, one.kind)


_LONG: Final = re.compile(r"(?<![\w+/=-])[\w+/=-]{32,200}(?![\w+/=-])")


_OWN_ID: Final = re.compile(r"(?:ses|msg|prt|per|que|evt)_[0-9a-f]{12}")
"""Ids of sessions, messages and the like."""


def doubtful_in(text: str) -> Iterator[tuple[int, str]]:
    """Long words that look random, with their positions. They are as often hashes as secrets."""
    for match in _LONG.finditer(text):
        word = match[0]
        kinds = (any(map(str.islower, word)), any(map(str.isupper, word)), any(map(str.isdigit, word)))
        if all(kinds) and entropy(word) >= 4.2 and not _OWN_ID.search(word):
            yield match.start(), word
