"""The ways an edit's text is looked for, from strict to loose. Each proposes stretches of the file, best first."""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

EditStrategy: TypeAlias = Callable[[str, str], Iterator[str]]

SIMILARITY_MIN: Final = 0.65
"""How alike the lines between two anchors must be, on average."""

SIMILARITY_MARGIN: Final = 0.05
"""How much more alike than all others a block must be to be the one that is meant."""

COMPARED_MAX: Final = 1_000_000
"""How many pairs of characters one edit may compare, some half a second of work. Further blocks are left out."""

_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "\n": "\n"}
_ESCAPE: Final = re.compile(r"\\([ntr'\"`\\\n$])")


def exact(content: str, search: str) -> Iterator[str]:
    """The text itself."""
    if search in content:
        yield search


def trimmed_lines(content: str, search: str) -> Iterator[str]:
    """The same lines but for blanks at their ends."""
    wanted = [line.strip() for line in _search_lines(search)]
    lines = content.split("\n")
    stripped = [line.strip() for line in lines]
    for start in _places(stripped, wanted):
        yield _block(lines, start, len(wanted))


def anchored_block(content: str, search: str) -> Iterator[str]:
    """The same first and last line with alike ones between, and nearly as many."""
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
    """The same words with other blanks between them: a line, a piece of one, or as many lines."""
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
    """The same lines, shifted as a whole."""
    wanted = _dedented(_search_lines(search))
    lines = content.split("\n")
    stripped = [line.strip() for line in lines]
    for start in _places(stripped, [line.strip() for line in wanted]):
        if _dedented(lines[start : start + len(wanted)]) == wanted:
            yield _block(lines, start, len(wanted))


def unescaped(content: str, search: str) -> Iterator[str]:
    r"""The text with ``\n``, ``\t`` and the like turned into what they stand for, in the search or in the file."""
    wanted = _unescape(search)
    if wanted != search and wanted in content:
        yield wanted
    lines = content.split("\n")
    count = wanted.count("\n") + 1
    decoded = [_unescape(line) for line in lines]
    for start in _places(decoded, wanted.split("\n")):
        yield _block(lines, start, count)


def trimmed_ends(content: str, search: str) -> Iterator[str]:
    """The text without the blanks around it."""
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
    """The same first and last line, as many lines, and at least half of those between equal."""
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
"""In the order they are tried. Every exact occurrence, for an edit of all of them, is the first strategy's answer."""


def similarity(one: str, other: str) -> float:
    """1 for equal texts, 0 for texts with nothing in common: by how few single-character edits they are apart."""
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
    """The lines looked for. A line break at the very end closes a line and opens none."""
    lines = search.split("\n")
    return lines[:-1] if len(lines) > 1 and not lines[-1].strip() else lines


def _places(lines: list[str], wanted: list[str]) -> Iterator[int]:
    """Where a run of lines begins."""
    first, count = wanted[0], len(wanted)
    for start in range(len(lines) - count + 1):
        if lines[start] == first and lines[start : start + count] == wanted:
            yield start


def _block(lines: list[str], start: int, count: int) -> str:
    return "\n".join(lines[start : start + count])


def _dedented(lines: list[str]) -> list[str]:
    """The lines without the indentation they share; blank ones are empty."""
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    shared = min(indents, default=0)
    return [line[shared:] if line.strip() else "" for line in lines]


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[1]), text)
