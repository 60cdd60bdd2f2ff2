"""Marks: the line and column at which each value of a JSONC or TOML text is written.

The texts are valid: a parser has read them. Of a text that is not, the marks up to the fault are given.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from turnkeeper.text import jsonc

Path: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""


class Mark(NamedTuple):
    """A place in a text. Both count from 1."""

    line: int
    column: int


Marks: TypeAlias = Mapping[Path, Mark]

_SPACE: Final = re.compile(r"\s*")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_REFERENCE: Final = re.compile(r"\{(?:env|file):[^{}\n]+\}")
_SCALAR: Final = re.compile(r"(?:\{(?:env|file):[^{}\n]+\}|[^,\]}\s])+")

_TOML_GAP: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_TOML_KEY: Final = re.compile(r"\s*(?:([A-Za-z0-9_-]+)|(\"(?:[^\"\\\n]|\\.)*\")|'([^'\n]*)')\s*")
_TOML_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|' + r"'''.*?'{3,5}|" + r'"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*'", re.DOTALL
)
_TOML_SCALAR: Final = re.compile(r"[^,\]}\n#]+")


def of_jsonc(text: str) -> Marks:
    """The marks of a JSONC text: of a member that of its key, of an entry of an array that of its value."""
    return _walked(text).marks


def repeated(text: str) -> Marks:
    """The members of a JSONC text that are followed by one with the same key, which is the one that counts."""
    return _walked(text).repeated


def of_toml(text: str) -> Marks:
    """The marks of a TOML text."""
    walk = _TomlWalk(text)
    with suppress(_Fault, RecursionError, ValueError):  # TOML has escapes in keys that JSON has not.
        walk.document()
    return walk.marks


def nearest(marks: Marks, path: Path) -> Mark | None:
    """The mark of a value, or that of the innermost object around it that has one."""
    for length in range(len(path), 0, -1):
        if (found := marks.get(path[:length])) is not None:
            return found
    return None


def _walked(text: str) -> "_JsonWalk":
    walk = _JsonWalk(jsonc.plain(text))
    with suppress(_Fault, RecursionError):
        walk.value(())
    return walk


class _Fault(Exception):
    """The text is not what was expected."""


class _Walk:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.marks: dict[Path, Mark] = {}
        self._lines = [0, *(found.end() for found in re.finditer("\n", text))]

    def mark(self, path: Path, at: int) -> None:
        line = bisect_right(self._lines, at)
        self.marks[path] = Mark(line, at - self._lines[line - 1] + 1)

    def skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            raise _Fault
        self.at = found.end()
        return found[0]

    def is_next(self, sign: str) -> bool:
        """Whether the text continues with ``sign``, which is then skipped."""
        if not self.text.startswith(sign, self.at):
            return False
        self.at += len(sign)
        return True


class _JsonWalk(_Walk):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: dict[Path, Mark] = {}

    def value(self, path: Path) -> None:
        self.skip(_SPACE)
        if _REFERENCE.match(self.text, self.at):
            self.skip(_SCALAR)
        elif self.is_next("{"):
            self._members(path)
        elif self.is_next("["):
            self._entries(path)
        elif self.text.startswith('"', self.at):
            self.skip(_STRING)
        else:
            self.skip(_SCALAR)

    def _members(self, path: Path) -> None:
        seen: set[Path] = set()
        self.skip(_SPACE)
        while not self.is_next("}"):
            at, key = self.at, self.skip(_STRING)
            here = (*path, str(json.loads(key, strict=False)))
            if here in seen:
                self.repeated.setdefault(here, self.marks[here])
            seen.add(here)
            self.mark(here, at)
            self.skip(_SPACE)
            if not self.is_next(":"):
                raise _Fault
            self.value(here)
            self._next("}")

    def _entries(self, path: Path) -> None:
        self.skip(_SPACE)
        index = 0
        while not self.is_next("]"):
            self.mark((*path, index), self.at)
            self.value((*path, index))
            index += 1
            self._next("]")

    def _next(self, end: str) -> None:
        self.skip(_SPACE)
        if not self.is_next(",") and not self.text.startswith(end, self.at):
            raise _Fault
        self.skip(_SPACE)


class _TomlWalk(_Walk):
    def document(self) -> None:
        table: Path = ()
        tables: dict[Path, int] = {}
        while self.skip(_TOML_GAP) is not None and self.at < len(self.text):
            at = self.at
            if self.is_next("[["):
                named = self._key(())
                tables[named] = tables.get(named, -1) + 1
                table = (*named, tables[named])
                for path in ({named} - self.marks.keys()) | {table}:
                    self.mark(path, at)
                self.at = self._behind("]]")
            elif self.is_next("["):
                table = self._key((), at)
                self.at = self._behind("]")
            else:
                self._pair(table)

    def _pair(self, table: Path) -> None:
        here = self._key(table, self.at)
        if not self.is_next("="):
            raise _Fault
        self._value(here)

    def _key(self, table: Path, at: int | None = None) -> Path:
        """A dotted key; ``at`` marks each of its steps there."""
        path = table
        while True:
            found = _TOML_KEY.match(self.text, self.at)
            if found is None:
                raise _Fault
            bare, basic, literal = found.groups()
            path = (*path, bare or (str(json.loads(basic, strict=False)) if basic else literal))
            if at is not None and (path not in self.marks or not self.text.startswith(".", found.end())):
                self.mark(path, at)
            self.at = found.end()
            if not self.is_next("."):
                return path

    def _value(self, path: Path) -> None:
        self.skip(_TOML_GAP)
        if self.is_next("{"):
            self.skip(_TOML_GAP)
            while not self.is_next("}"):
                self._pair(path)
                self._next("}")
        elif self.is_next("["):
            self.skip(_TOML_GAP)
            index = 0
            while not self.is_next("]"):
                self.mark((*path, index), self.at)
                self._value((*path, index))
                index += 1
                self._next("]")
        else:
            self.skip(_TOML_STRING if self.text[self.at : self.at + 1] in ("'", '"') else _TOML_SCALAR)

    def _next(self, end: str) -> None:
        self.skip(_TOML_GAP)
        if not self.is_next(",") and not self.text.startswith(end, self.at):
            raise _Fault
        self.skip(_TOML_GAP)

    def _behind(self, sign: str) -> int:
        found = self.text.find(sign, self.at)
        if found < 0:
            raise _Fault
        return found + len(sign)
