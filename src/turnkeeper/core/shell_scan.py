"""The simple commands in a shell command: in lists, pipelines, subshells, groups, loops and substitutions.

This is a scanner, not a shell. What it does not know (``case``, functions, ``[[``, arrays, a quote without its end) it
says it does not understand, and the caller then trusts nothing of it.
"""

import re
from typing import Final, NamedTuple

from turnkeeper.core.shell_words import NotUnderstood, Word, WordReader

# Words after which a command begins, words after which nothing but redirections may stand, and those we leave alone.
_LEADING: Final = frozenset({"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time"})
_CLOSING: Final = frozenset({"fi", "done", "}"})
_UNKNOWN: Final = frozenset({"case", "esac", "select", "function", "coproc", "[[", "]]", "in"})

_REDIRECTION: Final = re.compile(r"\d*(?:&>>?|<<<|<<-?|<>|<&|>&|>>|>\||<|>)(?!\()")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_DESCRIPTOR: Final = re.compile(r"\d+-?|-")


class SimpleCommand(NamedTuple):
    """A command as it is written, with its redirections. Without words it only assigns or redirects."""

    source: str
    words: tuple[Word, ...]
    targets: tuple[Word, ...]
    """The files it is redirected to or from."""
    assigns: bool


def scan(command: str) -> tuple[SimpleCommand, ...] | None:
    """Every simple command, the inner ones after the one that holds them; None if the text is not understood."""
    try:
        return tuple(_Scanner(command, 0).scan_all())
    except NotUnderstood:
        return None


def fragments(command: str) -> tuple[str, ...]:
    """Every piece of a text that might be a command, quotes or not: more than there are, and none is missed."""
    pieces = re.split(r"[;&|\n(){}`]+|\b(?:then|do|else|elif|if|while|until|in|time)\b|!", command)
    return tuple(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


class _Heredoc(NamedTuple):
    delimiter: str
    is_literal: bool
    strips_tabs: bool


class _Scanner(WordReader):
    """One pass over a text. Commands in ``$(...)`` are scanned in place, those in backticks by another scanner."""

    def __init__(self, text: str, depth: int) -> None:
        super().__init__(text, depth)
        self.found: list[SimpleCommand] = []
        self.heredocs: list[_Heredoc] = []

    def scan_all(self) -> list[SimpleCommand]:
        self.scan_list("")
        return self.found

    def scan_inner(self, text: str) -> None:
        """The commands of a text of its own, after the ones found so far."""
        self.found += _Scanner(text, self.depth + 1).scan_all()

    def scan_list(self, end: str) -> None:
        """Commands up to a closing character, which is consumed; without one, up to the end of the text."""
        # Where a here-document meets a substitution, shells disagree about which of the two a line belongs to.
        if self.heredocs:
            raise NotUnderstood
        while True:
            self.skip_blanks()
            character = self.peek()
            if character == end:
                if self.heredocs:
                    raise NotUnderstood
                self.at += len(end)
                return
            if character == "":
                raise NotUnderstood
            if character == "\n":
                self.at += 1
                self.read_heredocs()
            elif self.text.startswith(";;", self.at) or character == ")":
                raise NotUnderstood
            elif character in ";&|" and not self.text.startswith("&>", self.at):
                self.at += 1
            else:
                self.scan_command()

    def scan_command(self) -> None:
        """One simple command, or the way into or out of a compound one."""
        place, start = len(self.found), self.at
        if self.scan_compound():
            return
        words: list[Word] = []
        targets: list[Word] = []
        assigns = False
        end = start
        while not self.is_command_end():
            if redirection := _REDIRECTION.match(self.text, self.at):
                self.at = redirection.end()
                targets += self.read_target(redirection[0].lstrip("0123456789"))
            else:
                word = self.read_word()
                if not words and _ASSIGNMENT.match(word.source):
                    assigns = True
                else:
                    words.append(word)
            end = self.at
            self.skip_blanks()
        if words or targets or assigns:
            command = SimpleCommand(self.text[start:end], tuple(words), tuple(targets), assigns)
            self.found.insert(place, command)

    def scan_compound(self) -> bool:
        """Whether the command was a subshell, or a word of the shell's grammar that is now behind us."""
        start = self.at
        if self.peek() == "(":
            self.at += 1
            self.nested()
            self.refuse_words()
            return True
        if self.is_command_end() or _REDIRECTION.match(self.text, self.at):
            return False
        reserved = re.compile(r"[a-z]+|[!{}\[\]]+").match(self.text, self.at)
        if reserved is None or not self.ends_word(reserved.end()):
            return False
        if reserved[0] in _UNKNOWN:
            raise NotUnderstood
        if reserved[0] == "for":
            self.at = reserved.end()
            self.skip_for()
        elif reserved[0] in _LEADING:
            self.at = reserved.end()
        elif reserved[0] in _CLOSING:
            self.at = reserved.end()
            self.refuse_words()
        return self.at > start

    def refuse_words(self) -> None:
        """After a compound command only redirections, or its end, may follow; they are scanned as a command."""
        self.skip_blanks()
        if not self.is_command_end() and not _REDIRECTION.match(self.text, self.at):
            raise NotUnderstood

    def ends_word(self, place: int) -> bool:
        return self.text[place : place + 1] in ("", " ", "\t", "\n", ";", "&", "|", "(", ")", "<", ">")

    def skip_for(self) -> None:
        """The variable and the words of a loop; only what they substitute is a command."""
        self.skip_blanks()
        self.read_word()
        self.skip_blanks()
        if self.is_command_end():
            return
        if self.read_word().source != "in":
            raise NotUnderstood
        self.skip_blanks()
        while not self.is_command_end():
            self.read_word()
            self.skip_blanks()

    def is_command_end(self) -> bool:
        character = self.peek()
        if character == "#":
            line_end = self.text.find("\n", self.at)
            self.at = line_end if line_end >= 0 else len(self.text)
            return True
        return character in ("", "\n", ";", "|", ")") or (character == "&" and not self.text.startswith("&>", self.at))

    def read_target(self, operator: str) -> list[Word]:
        """What a redirection points to, if that is a file."""
        self.skip_blanks()
        if self.is_command_end():
            raise NotUnderstood
        word = self.read_word()
        if operator in ("<<", "<<-"):
            if word.is_dynamic:
                raise NotUnderstood
            is_literal = word.source != word.value
            self.heredocs.append(_Heredoc(word.value, is_literal, operator == "<<-"))
            return []
        if operator == "<<<" or (operator in (">&", "<&") and _DESCRIPTOR.fullmatch(word.source)):
            return []
        return [word]

    def read_heredocs(self) -> None:
        """The bodies that follow a line on which here-documents were announced."""
        for delimiter, is_literal, strips_tabs in self.heredocs:
            start = self.at
            while True:
                if self.at >= len(self.text):
                    raise NotUnderstood
                line_end = self.text.find("\n", self.at)
                line = self.text[self.at : line_end if line_end >= 0 else None]
                begin, self.at = self.at, line_end + 1 if line_end >= 0 else len(self.text)
                if (line.lstrip("\t") if strips_tabs else line) == delimiter:
                    break
            if not is_literal:
                body = _Scanner(self.text[start:begin], self.depth + 1)
                body.scan_expansions()
                self.found += body.found
        self.heredocs = []
