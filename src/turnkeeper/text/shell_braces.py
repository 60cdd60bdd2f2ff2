"""Braces of a shell: ``a{b,c}`` stands for ``ab`` and ``ac``, and ``{1..3}`` for ``1``, ``2`` and ``3``."""

import re
from typing import Final

EXPANSIONS_MAX: Final = 64
"""Values of one word. A word with more of them counts as computed."""

_SEQUENCE: Final = re.compile(
    r"(?P<first>-?\d{1,18})\.\.(?P<last>-?\d{1,18})(?:\.\.(?P<step>-?\d{1,18}))?"
    r"|(?P<begin>[A-Za-z])\.\.(?P<end>[A-Za-z])(?:\.\.(?P<by>-?\d{1,18}))?",
    re.ASCII,
)
_NUMBERS: Final = "[-0-9]*"
"""A wildcard that replaces too many numbers."""


def braced(text: str) -> list[str]:
    """The texts that a text stands for, a few more than EXPANSIONS_MAX at the most. A lone brace stands for itself."""
    for start in (brace.start() for brace in re.finditer("{", text)):
        depth, commas = 0, [start]
        for at in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if depth == 1 and text[at] == ",":
                commas.append(at)
            if depth == 0:
                break
        if depth:
            continue
        parts = [text[one + 1 : other] for one, other in zip(commas, [*commas[1:], at], strict=True)]
        if len(parts) == 1:
            parts = _sequence(parts[0])
        found: list[str] = []
        for part in parts:
            found += braced(text[:start] + part + text[at + 1 :])
            if len(found) > EXPANSIONS_MAX:
                break
        if found:
            return found
    return [text]


def _sequence(text: str) -> list[str]:
    """The letters or numbers of ``a..c`` or ``1..3``; nothing for another text."""
    found = _SEQUENCE.fullmatch(text)
    if found is None:
        return []
    is_number = found["first"] is not None
    ends = (found["first"], found["last"]) if is_number else (found["begin"], found["end"])
    first, last = map(int if is_number else ord, ends)
    step = abs(int(found["step"] or found["by"] or 1)) or 1
    steps = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    if not is_number:
        return [chr(one) for one in steps]
    if len(steps) > EXPANSIONS_MAX:
        return [_NUMBERS]
    has_zeros = any(re.match(r"-?0\d", end) for end in ends)
    width = max(map(len, ends)) if has_zeros else 0
    return [f"{one:0{width}d}" for one in steps]
