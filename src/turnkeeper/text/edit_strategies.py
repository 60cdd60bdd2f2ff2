"""Search strategies of an edit, from strict to loose. Each proposes passages of the file, best first."""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

EditStrategy: TypeAlias = Callable[[str, str], Iterator[str]]

SIMILARITY_MIN: Final = 0.65
"""Minimum average similarity of the lines between two anchors."""

SIMILARITY_MARGIN: Final = 0.05
"""The lead in similarity that a block must have over all others to be the only match."""

COMPARED_MAX: Final = 1_000_000
"""Maximum number of character pairs to compare, about half a second of work. Further blocks are left out."""

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\n": "\n"}
_ESCAPE: Final = re.compile(r"\\([ntr'\"`\\\n$])")


def exact(content: str, search: str) -> Iterator[str]:
    """The exact text."""
    if search in content:
        yield search


def trimmed_lines(content: str, search: str) -> Iterator[str]:
    """Lines that are equal except for white space at their ends."""
    wanted = [line.strip() for line in _search_lines(search)]
    lines = content.split("\n")
    stripped = [line.strip() for line in lines]
    for start in _places(stripped, wanted):
        yield _block(lines, start, len(wanted))


def anchored_block(content: str, search: str) -> Iterator[str]:
    """A block with equal first and last lines, similar lines between them, and nearly as many lines."""
    wanted = [line.strip() for line in _search_lines(search)]
    if len(wanted) < 3:
        return
    lines = content.split("\n")
    stripped = [line.strip() for line in lines]
    slack = max(1, len(wanted) // 4)
    scored: list[tuple[float, int, int, int]] = []
    compared = 0
    for start in (place for place, line in enumerate(stripped) if line == wanted[0]):
        for length in range(max(3, len(wanted) - slack), len(wanted) + slack + 1):
            if stripped[start + length - 1 : start + length] != wanted[-1:]:
                continue
            pairs = list(zip(stripped[start + 1 : start + length - 1], wanted[1:-1], strict=False))
            compared += sum(len(one) * len(other) for one, other in pairs if one != other)
            if compared <= COMPARED_MAX:
                scored.append(
                    (-_alikeness(pairs, max(length, len(wanted)) - 2), abs(length - len(wanted)), start, length)
                )
    scored.sort()
    for distance, _, start, length in scored:
        # Blocks that are about as alike as the best are proposed as well: the best is not taken for the only one.
        if -distance >= max(SIMILARITY_MIN, -scored[0][0] - SIMILARITY_MARGIN):
            yield _block(lines, start, length)


def collapsed_blanks(content: str, search: str) -> Iterator[str]:
    """A line, a piece of a line or a block with equal words and other white space between them."""
    words = search.split()
    lines = content.split("\n")
    wanted = _search_lines(search)
    collapsed = [" ".join(line.split()) for line in lines]
    if len(wanted) > 1:
        for start in _places(collapsed, [" ".join(line.split()) for line in wanted]):
            yield _block(lines, start, len(wanted))
        return
    yield from (line for line, plain in zip(lines, collapsed, strict=True) if plain == " ".join(words))
    piece = re.compile(r"[^\S\n]+".join(map(re.escape, words)))
    yield from (found[0] for found in piece.finditer(content))


def other_indentation(content: str, search: str) -> Iterator[str]:
    """A block of equal lines with another indentation."""
    wanted = _dedented(_search_lines(search))
    lines = content.split("\n")
    stripped = [line.strip() for line in lines]
    for start in _places(stripped, [line.strip() for line in wanted]):
        if _dedented(lines[start : start + len(wanted)]) == wanted:
            yield _block(lines, start, len(wanted))


def unescaped(content: str, search: str) -> Iterator[str]:
    r"""The text with escapes such as ``\n`` and ``\t`` decoded, in the search or in the file."""
    wanted = _unescape(search)
    if wanted != search and wanted in content:
        yield wanted
    lines = content.split("\n")
    count = wanted.count("\n") + 1
    decoded = [_unescape(line) for line in lines]
    for start in _places(decoded, wanted.split("\n")):
        yield _block(lines, start, count)


def trimmed_ends(content: str, search: str) -> Iterator[str]:
    """The text without white space at its ends."""
    trimmed = search.strip()
    if trimmed == search:
        return
    if trimmed in content:
        yield trimmed
    lines = content.split("\n")
    wanted = trimmed.split("\n")
    for start in _places([line.strip() for line in lines], [line.strip() for line in wanted]):
        block = _block(lines, start, len(wanted))
        if block.strip() == trimmed:
            yield block


def context_lines(content: str, search: str) -> Iterator[str]:
    """A block with equal first and last lines, as many lines, and at least half of the lines between equal."""
    wanted = [line.strip() for line in _search_lines(search)]
    if len(wanted) < 3:
        return
    lines = content.split("\n")
    stripped = [line.strip() for line in lines]
    for start in range(len(lines) - len(wanted) + 1):
        if stripped[start] != wanted[0] or stripped[start + len(wanted) - 1] != wanted[-1]:
            continue
        pairs = zip(stripped[start + 1 : start + len(wanted) - 1], wanted[1:-1], strict=True)
        between = [here == there for here, there in pairs if here or there]
        if sum(between) * 2 >= len(between):
            yield _block(lines, start, len(wanted))


STRATEGIES: Final[tuple[tuple[str, EditStrategy], ...]] = (
    ("exact", exact),
    ("trimmed lines", trimmed_lines),
    ("anchored block", anchored_block),
    ("collapsed blanks", collapsed_blanks),
    ("other indentation", other_indentation),
    ("unescaped", unescaped),
    ("trimmed ends", trimmed_ends),
    ("context lines", context_lines),
)
"""The strategies in the order in which they are tried."""


def similarity(one: str, other: str) -> float:
    """1 minus the edit distance relative to the longer text: 1 for equal texts."""
    longest = max(len(one), len(other))
    if one == other:
        return 1.0
    row = list(range(len(other) + 1))
    for place, character in enumerate(one, 1):
        diagonal, row[0] = row[0], place
        for column, candidate in enumerate(other, 1):
            diagonal, row[column] = (
                row[column],
                min(row[column] + 1, row[column - 1] + 1, diagonal + (character != candidate)),
            )
    return 1 - row[-1] / longest


def _alikeness(pairs: list[tuple[str, str]], count: int) -> float:
    """The average over this many lines side by side, of which some may have no counterpart."""
    return sum(similarity(one, other) for one, other in pairs) / count if count else 1.0


def _search_lines(search: str) -> list[str]:
    """The lines of the search. A line break at its end does not start another line."""
    lines = search.split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1].strip() else lines


def _places(lines: list[str], wanted: list[str]) -> Iterator[int]:
    """The indexes at which the wanted lines begin."""
    first, count = wanted[0], len(wanted)
    for start in range(len(lines) - count + 1):
        if lines[start] == first and lines[start : start + count] == wanted:
            yield start


def _block(lines: list[str], start: int, count: int) -> str:
    return "\n".join(lines[start : start + count])


def _dedented(lines: list[str]) -> list[str]:
    """The lines without their common indentation; blank lines become empty."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    shared = min(indents, default=0)
    return [line[shared:] if line.strip() else "" for line in lines]


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)
