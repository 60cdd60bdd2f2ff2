"""Globs over paths: ``*`` and ``?`` match in one segment, ``**`` across segments, ``[a-z]`` and ``{a,b}`` choose.

A pattern without a slash matches the last segment at any depth; one with a slash matches the whole path.
"""

import re
from itertools import product
from typing import Final

from turnkeeper.model.refusal import Invalid

SIZE_MAX: Final = 100_000
"""Characters of a glob, times the globs without braces that it stands for."""

_FOLDERS: Final = "(?:[^/]*+/)*"
"""Any number of whole segments, without backtracking into them."""


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A regular expression for ``fullmatch`` on a relative path with slashes. Raises Invalid for an invalid glob.

    The first match of a piece between two stars is as good as a later one, so each piece is an atomic group and
    matching takes linear time. Plain ``.*`` for the stars could take for ever, and all sessions would wait for it.
    """
    prefix = "" if "/" in pattern.removeprefix("./") else _FOLDERS
    globs = _Reader(pattern).read()
    try:
        return re.compile("|".join(prefix + _expression(glob) for glob in globs), re.DOTALL)
    except re.error as error:
        raise Invalid(f"the pattern {pattern!r} is not a glob: {error}") from error


class _Reader:
    """Reads a glob in one pass: each glob without braces that it stands for, as pieces.

    A piece is stars, a slash, or the expression of one character.
    """

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at = pattern.removeprefix("./").removeprefix("/"), 0

    def read(self) -> list[list[str]]:
        self._require_room(1)
        around: list[tuple[list[list[str]], list[list[str]]]] = []
        before_comma: list[list[str]] = []
        globs: list[list[str]] = [[]]
        while self.at < len(self.pattern):
            character = self.pattern[self.at]
            self.at += 1
            if character == "{":
                around.append((before_comma, globs))
                before_comma, globs = [], [[]]
            elif character == "," and around:
                before_comma, globs = before_comma + globs, [[]]
            elif character == "}" and around:
                inner = before_comma + globs
                before_comma, globs = around.pop()
                self._require_room(len(globs) * len(inner))
                globs = [[*one, *other] for one, other in product(globs, inner)]
            else:
                piece = self._piece(character)
                for glob in globs:
                    glob.append(piece)
        if around:
            raise Invalid(f"the pattern {self.pattern!r} opens a brace that it does not close")
        return globs

    def _require_room(self, count: int) -> None:
        if count * len(self.pattern) > SIZE_MAX:
            raise Invalid(f"the pattern {self.pattern[:100]!r}... is too long, or stands for too many others")

    def _piece(self, character: str) -> str:
        match character:
            case "*":
                start = self.at - 1
                while self.pattern.startswith("*", self.at):
                    self.at += 1
                return "*" if self.at - start == 1 else "**"
            case "?":
                return "[^/]"
            case "[":
                return self._choice()
            case "\\" if self.at < len(self.pattern):
                self.at += 1
                return re.escape(self.pattern[self.at - 1])
        return re.escape(character)

    def _choice(self) -> str:
        negated = self.pattern.startswith(("!", "^"), self.at)
        begin = self.at + negated
        # A closing bracket at the beginning is a literal.
        end = self.pattern.find("]", begin + 1)
        if end < 0:
            raise Invalid(f"the pattern {self.pattern!r} opens a bracket that it does not close")
        inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", self.pattern[begin:end])
        self.at = end + 1
        return f"(?!/)[{'^' if negated else ''}{inside}]"


def _expression(glob: list[str]) -> str:
    """A glob without braces. A whole segment ``**`` matches zero or more segments; other stars stay in theirs."""
    runs: list[list[str]] = [[]]
    for segment in _divided(glob, ("/",)):
        if segment != ["**"]:
            runs[-1].append(_segment(segment))
        elif runs[-1] or len(runs) == 1:
            runs.append([])
    first, *others = ("/".join(run) for run in runs)
    if not others:
        return first
    between = "".join(f"(?>{_FOLDERS}?{run}/)" for run in others[:-1])
    return (f"{first}/" if first else "") + between + (_FOLDERS + others[-1] if others[-1] else ".*")


def _segment(pieces: list[str]) -> str:
    first, *others = ("".join(run) for run in _divided(pieces, ("*", "**")))
    if not others:
        return first
    return first + "".join(f"(?>[^/]*?{run})" for run in others[:-1] if run) + "[^/]*" + others[-1]


def _divided(pieces: list[str], marks: tuple[str, ...]) -> list[list[str]]:
    found: list[list[str]] = [[]]
    for piece in pieces:
        if piece in marks:
            found.append([])
        else:
            found[-1].append(piece)
    return found
