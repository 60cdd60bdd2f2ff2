"""Globs over paths: ``*`` and ``?`` match in one segment, ``**`` across segments, ``[a-z]`` and ``{a,b}`` choose.

A pattern without a slash matches the last segment at any depth; one with a slash matches the whole path.
"""

import re

from turnkeeper.model.refusal import Invalid


def compile_glob(pattern: str) -> re.Pattern[str]:
    """A regular expression for ``fullmatch`` on a relative path with slashes. Raises Invalid for an invalid glob."""
    anchored = pattern.removeprefix("./").removeprefix("/")
    expression = _Translator(anchored).translate()
    prefix = "" if "/" in pattern.removeprefix("./") else "(?:.*/)?"
    try:
        return re.compile(prefix + expression, re.DOTALL)
    except re.error as error:
        raise Invalid(f"the pattern {pattern!r} is not a glob: {error}") from error


class _Translator:
    """Translates a glob into a regular expression in one pass."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.open_braces = pattern, 0, 0

    def translate(self) -> str:
        pieces = []
        while self.at < len(self.pattern):
            pieces.append(self._next())
        if self.open_braces:
            raise Invalid(f"the pattern {self.pattern!r} opens a brace that it does not close")
        return "".join(pieces)

    def _next(self) -> str:
        character = self.pattern[self.at]
        start, self.at = self.at, self.at + 1
        match character:
            case "*":
                return self._stars(start)
            case "?":
                return "[^/]"
            case "[":
                return self._choice()
            case "{":
                self.open_braces += 1
                return "(?:"
            case "}" if self.open_braces:
                self.open_braces -= 1
                return ")"
            case "," if self.open_braces:
                return "|"
            case "\\" if self.at < len(self.pattern):
                self.at += 1
                return re.escape(self.pattern[self.at - 1])
        return re.escape(character)

    def _stars(self, start: int) -> str:
        """A whole segment ``**`` matches zero or more segments; other stars match inside one segment."""
        while self.pattern.startswith("*", self.at):
            self.at += 1
        begins = start == 0 or self.pattern[start - 1] in "/{,"
        if self.at - start == 1 or not begins:
            return "[^/]*"
        if self.pattern.startswith("/", self.at):
            self.at += 1
            return "(?:.*/)?"
        return ".*" if self.at == len(self.pattern) or self.pattern[self.at] in "}," else "[^/]*"

    def _choice(self) -> str:
        negated = self.pattern.startswith(("!", "^"), self.at)
        begin = self.at + negated
        # A closing bracket at the beginning is a literal.
        end = self.pattern.find("]", begin + 1)
        if end < 0:
            raise Invalid(f"the pattern {self.pattern!r} opens a bracket that it does not close")
        self.at = end + 1
        inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", self.pattern[begin:end])
        return f"(?!/)[{'^' if negated else ''}{inside}]"
