"""The words of a shell command: quotes, escapes and expansions. What runs inside them is handed on to be scanned."""

import re
from abc import ABC, abstractmethod
from typing import Final, NamedTuple

DEPTH_MAX: Final = 32
"""How deep substitutions and subshells may nest; nobody writes more, and the reader calls itself for each."""

BLANK: Final = re.compile(r"(?:[ \t]|\\\n)+")
_PLAIN: Final = re.compile(r"[^ \t\n\\'\"$`;&|<>()*?\[{#]+")


class NotUnderstood(Exception):
    """The text has something in it that we do not know."""


class Word(NamedTuple):
    """One word. ``value`` has its quotes removed; ``is_dynamic``: the shell computes the rest when it runs.

    ``pattern_at`` is where in the value an unquoted wildcard or brace begins.
    """

    source: str
    value: str
    is_dynamic: bool
    pattern_at: int | None


class WordReader(ABC):
    """A place in a text, and how the words from there on are read."""

    def __init__(self, text: str, depth: int) -> None:
        self.text, self.at, self.depth = text, 0, depth - 1
        self.descend()

    @abstractmethod
    def scan_list(self, end: str) -> None:
        """Scan commands up to a closing character, and consume it."""

    @abstractmethod
    def scan_inner(self, text: str) -> None:
        """Scan a text of its own, one level deeper."""

    def read_word(self) -> Word:
        start = self.at
        value: list[str] = []
        is_dynamic = False
        pattern_at: int | None = None
        while (character := self.peek()) not in ("", " ", "\t", "\n", ";", "&", "|", ")"):
            if plain := _PLAIN.match(self.text, self.at):
                value.append(plain[0])
                self.at = plain.end()
            elif character == "(":
                raise NotUnderstood
            elif character in "<>":
                if not self.text.startswith("(", self.at + 1):
                    break
                self.at += 2
                self.nested()
                is_dynamic = True
            elif character in "*?[{#":
                if character != "#" and pattern_at is None:
                    pattern_at = sum(map(len, value))
                value.append(character)
                self.at += 1
            else:
                is_dynamic |= self.read_special(character, value)
        if self.at == start:
            raise NotUnderstood
        return Word(self.text[start : self.at], "".join(value), is_dynamic, pattern_at)

    def read_special(self, character: str, value: list[str]) -> bool:
        """A quoted or computed piece of a word, put into its value; whether it is computed."""
        if character == "\\":
            escaped = self.text[self.at + 1 : self.at + 2]
            value.append("" if escaped == "\n" else escaped)
            self.at += 2
            return False
        if character == "'":
            value.append(self.read_until("'"))
            return False
        if character == '"':
            return self.read_double_quoted(value)
        if character == "`":
            self.read_backticks()
            return True
        return self.read_dollar(value, is_quoted=False)

    def read_double_quoted(self, value: list[str]) -> bool:
        self.at += 1
        is_dynamic = False
        while (character := self.peek()) != '"':
            if character == "":
                raise NotUnderstood
            if character == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                value.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif character == "`":
                self.read_backticks()
                is_dynamic = True
            elif character == "$":
                is_dynamic |= self.read_dollar(value, is_quoted=True)
            else:
                value.append(character)
                self.at += 1
        self.at += 1
        return is_dynamic

    def read_dollar(self, value: list[str], *, is_quoted: bool) -> bool:
        following = self.text[self.at + 1 : self.at + 2]
        self.descend()
        if self.text.startswith("$((", self.at):
            self.at += 3
            self.read_arithmetic()
        elif following == "(":
            self.at += 2
            self.nested()
        elif following == "{":
            self.at += 2
            self.read_parameter()
        elif following == "'" and not is_quoted:
            self.at += 2
            while self.peek() not in ("'", ""):
                self.at += 2 if self.peek() == "\\" else 1
            self.expect("'")
        elif following == "[":
            raise NotUnderstood
        elif re.match(r"[A-Za-z0-9_@*#?!$-]", following):
            self.at += 2
        else:
            # A dollar for itself, or before a double-quoted string that the shell may translate.
            value.append("$")
            self.at += 1
        self.depth -= 1
        return following not in ("", " ")

    def read_parameter(self) -> None:
        """The rest of ``${...}``; what it substitutes may hold commands."""
        while (character := self.peek()) != "}":
            # Whether a single quote quotes here depends on quotes further out: nobody needs to know.
            if character in ("", "'"):
                raise NotUnderstood
            if character in "$`":
                self.read_expansion(character)
            elif character in '\\"':
                self.read_special(character, [])
            else:
                self.at += 1
        self.at += 1

    def read_expansion(self, character: str) -> None:
        """A substitution where quotes have no meaning."""
        if character == "`":
            self.read_backticks()
        else:
            self.read_dollar([], is_quoted=True)

    def read_arithmetic(self) -> None:
        """The rest of ``$((...))``."""
        open_count = 2
        while open_count:
            character = self.peek()
            if character in ("", ";", "'", '"', "\\", "\n"):
                raise NotUnderstood
            if character in "$`":
                self.read_expansion(character)
                continue
            open_count += {"(": 1, ")": -1}.get(character, 0)
            self.at += 1
        if self.text[self.at - 2] != ")":
            raise NotUnderstood

    def read_backticks(self) -> None:
        self.at += 1
        start = self.at
        while self.peek() not in ("`", ""):
            self.at += 2 if self.peek() == "\\" else 1
        self.expect("`")
        inner = re.sub(r"\\([\\`$])", r"\1", self.text[start : self.at - 1])
        self.scan_inner(inner)

    def scan_expansions(self) -> None:
        """The commands in a text that is otherwise only data."""
        while (character := self.peek()) != "":
            if character in "$`":
                self.read_expansion(character)
            else:
                self.at += 2 if character == "\\" else 1

    def nested(self) -> None:
        """A list up to its parenthesis, one level deeper."""
        self.descend()
        self.scan_list(")")
        self.depth -= 1

    def descend(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise NotUnderstood

    def skip_blanks(self) -> None:
        if blank := BLANK.match(self.text, self.at):
            self.at = blank.end()

    def read_until(self, quote: str) -> str:
        end = self.text.find(quote, self.at + 1)
        if end < 0:
            raise NotUnderstood
        quoted, self.at = self.text[self.at + 1 : end], end + 1
        return quoted

    def expect(self, character: str) -> None:
        if self.peek() != character:
            raise NotUnderstood
        self.at += 1

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]
