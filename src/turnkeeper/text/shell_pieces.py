"""The pieces of a simple command as nodes of the syntax tree: words, redirections, assignments, here-documents."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from turnkeeper.text.shell_syntax import NotUnderstood, adjacent, expansions, heredoc_text
from turnkeeper.text.shell_words import read_word

if TYPE_CHECKING:
    from tree_sitter import Node

_WORD_NAMES: Final = (
    "word number raw_string ansi_c_string string translated_string concatenation simple_expansion expansion"
    " command_substitution process_substitution arithmetic_expansion brace_expression command_name"
    " variable_name special_variable_name extglob_pattern $"
)
WORDS: Final = frozenset(_WORD_NAMES.split())
"""Nodes that are words, or pieces of words."""

_EXPANDS: Final = re.compile(r"(?<!\\)(?:\$[({\[]|`)")
_DESCRIPTOR: Final = re.compile(r"\d+-?|-")
_NAME: Final = re.compile(rb"\{[A-Za-z_]\w*(?:\[[^\]]*\])?\}")
_BEFORE_WORDS: Final = frozenset([b"", *(bytes([sign]) for sign in b" \t\n;&|()")])


class CommandPieces:
    """The pieces of one command."""

    def __init__(self, source: bytes, node: "Node") -> None:
        self.source = source
        self.words: list[Node] = []
        self.targets: list[tuple[list[Node], bool]] = []
        self.expanding: list[Node] = []
        """Everything in which a substitution may stand."""
        self.following: list[Node] = []
        """Statements that the grammar puts into a here-document because they stand behind it on its line."""
        self.body: Node | None = None
        self.assigns = False
        self.redirects = False
        self.input: str | None = None
        """The text of its input, if the command holds it."""
        self.end = 0
        self.collect(node)

    def collect(self, node: "Node") -> None:
        """Split a command into its words, redirections and other pieces."""
        if node.type == "command":
            self.require_one_line(node)
        for child in node.children:
            kind = child.type
            if kind in ("file_redirect", "herestring_redirect"):
                self.redirect(child)
            elif kind == "heredoc_redirect":
                self.heredoc(child)
            elif kind == "variable_assignment":
                self.assigns = True
                self.expanding.append(child)
                self.end = max(self.end, child.end_byte)
            elif kind in WORDS:
                self.words.append(child)
                self.expanding.append(child)
                self.end = max(self.end, child.end_byte)
            elif kind == "command":
                self.collect(child)
            elif child.is_named and node.type == "redirected_statement" and self.body is None:
                self.body = child
            else:
                raise NotUnderstood

    def redirect(self, node: "Node") -> None:
        """Collect the target of a redirection. Words after it belong to the command in bash, but not in the grammar."""
        self.require_no_name(node)
        self.require_one_line(node)
        pieces = [child for child in node.children if child.type in WORDS]
        operators = [child.type for child in node.children if child.type not in WORDS | {"file_descriptor"}]
        words = list(adjacent(pieces))
        if len(operators) != 1 or not (words or operators[0] in (">&-", "<&-")):
            raise NotUnderstood
        if words and node.type == "file_redirect":
            first = self.source[words[0][0].start_byte : words[0][-1].end_byte].decode()
            if not (operators[0] in (">&", "<&") and _DESCRIPTOR.fullmatch(first)):
                self.targets.append((words[0], ">" in operators[0]))
        elif words:
            given = read_word(self.source, words[0])
            self.input = None if given.is_dynamic else given.value
        for word in words[1:]:
            self.words += word
        self.words.sort(key=lambda piece: piece.start_byte)
        self.expanding += pieces
        self.redirects = True
        self.end = max(self.end, node.end_byte)

    def require_one_line(self, node: "Node") -> None:
        """Refuse a line break between words. It ends a command, also where the grammar ignores it."""
        for one, other in pairwise(node.children):
            if b"\n" in self.source[one.end_byte : other.start_byte].replace(b"\\\n", b""):
                raise NotUnderstood

    def require_no_name(self, node: "Node") -> None:
        """Refuse ``{name}>file``, which sets a variable. The grammar reads a word."""
        at = self.source.rfind(b"{", 0, node.start_byte)
        before, name = self.source[max(at - 1, 0) : max(at, 0)], self.source[max(at, 0) : node.start_byte]
        if before in _BEFORE_WORDS and _NAME.fullmatch(name):
            raise NotUnderstood

    def heredoc(self, node: "Node") -> None:
        """Collect a here-document: its text is data, except for expansions where its delimiter is not quoted."""
        self.require_no_name(node)
        self.redirects = True
        start = body = end = None
        for child in node.children:
            kind = child.type
            if kind == "heredoc_start":
                start = child
                self.end = max(self.end, child.end_byte)
            elif kind == "heredoc_body":
                body = child
            elif kind == "heredoc_end":
                end = child
            elif kind == "file_redirect":
                self.redirect(child)
            elif kind in WORDS:
                self.words.append(child)
                self.expanding.append(child)
                self.end = max(self.end, child.end_byte)
            elif child.is_named:
                self.following.append(child)
        if start is None or end is None:
            raise NotUnderstood
        text = heredoc_text(self.source, start, end)
        is_plain = self.source[start.start_byte : start.end_byte].decode().isidentifier()
        if is_plain and _EXPANDS.search(text):
            counted = 0 if body is None else sum(1 for _ in expansions(body))
            if body is None or "`" in text or len(re.findall(r"(?<!\\)\$[({]", text)) != counted:
                raise NotUnderstood
            self.expanding.append(body)
        elif not (is_plain and re.search(r"[\\$]", text)):
            self.input = text
