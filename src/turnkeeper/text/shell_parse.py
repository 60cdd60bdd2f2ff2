"""Parses a shell command into its simple commands, including those in lists, pipelines, loops and substitutions.

The result is None for a text that cannot be parsed safely.
"""

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from turnkeeper.text.shell_syntax import (
    DEPTH_MAX,
    NotUnderstood,
    adjacent,
    heredoc_text,
    parents,
    substitutions,
    syntax_tree,
)

if TYPE_CHECKING:
    from tree_sitter import Node


# Statements that contain only other statements and words.
_CONTAINER_NAMES: Final = (
    "program list pipeline negated_command subshell do_group if_statement elif_clause else_clause while_statement"
    " for_statement case_statement case_item function_definition"
)
_CONTAINERS: Final = frozenset(_CONTAINER_NAMES.split())
_WORD_NAMES: Final = (
    "word number raw_string ansi_c_string string concatenation simple_expansion expansion command_substitution"
    " process_substitution arithmetic_expansion brace_expression command_name variable_name special_variable_name"
    " extglob_pattern $"
)
_WORDS: Final = frozenset(_WORD_NAMES.split())
# Statements for which permission is asked as a whole, because their first words do not name a command.
_WHOLE: Final = frozenset(
    ["variable_assignment", "variable_assignments", "declaration_command", "unset_command", "test_command"]
)

# Operators of ``${name...}`` that cut or replace a value, or substitute a default.
_READING: Final = frozenset([":-", "-", ":+", "+", ":?", "?", "#", "##", "%", "%%", "/", "//"])
_IS_CONSTANT: Final = re.compile(r"\s*\$\(\([\d\s+*/%-]*\)\)")
_EXPANDS: Final = re.compile(r"(?<!\\)(?:\$[({\[]|`)")
_FRAGMENT_ENDS: Final = re.compile(r"[;&|\n(){}`]+|\b(?:then|do|else|elif|if|while|until|in|time)\b|!")
_DESCRIPTOR: Final = re.compile(r"\d+-?|-")


class Word(NamedTuple):
    """One word. ``value`` has no quotes; ``is_dynamic``: the shell computes a part of it at run time.

    ``pattern_at`` is the index in ``value`` of the first unquoted wildcard or brace.
    """

    source: str
    value: str
    is_dynamic: bool
    pattern_at: int | None


class SimpleCommand(NamedTuple):
    """The source text of a command with its redirections.

    A command without words is an assignment, a redirection, a test, or an expansion that can run code.
    """

    source: str
    words: tuple[Word, ...]
    targets: tuple[Word, ...]
    """The files of its redirections."""
    assigns: bool


def parse(command: str) -> tuple[SimpleCommand, ...] | None:
    """Every simple command, nested ones after the outer one; None for a text that cannot be parsed safely."""
    try:
        return tuple(_commands(command, depth=0))
    except NotUnderstood:
        return None


def fragments(text: str) -> tuple[str, ...]:
    """Every piece of a text that may be a command, quoted or not; some are not commands, but none is missed."""
    pieces = (piece.strip() for piece in _FRAGMENT_ENDS.split(text))
    return tuple(dict.fromkeys(piece for piece in pieces if piece))


def _commands(command: str, depth: int) -> list[SimpleCommand]:
    if depth > DEPTH_MAX:
        raise NotUnderstood
    root, source = syntax_tree(command)
    walk = _Walk(source, depth)
    walk.statement(root, 0)
    return walk.found


class _Walk:
    """Collects the simple commands of one syntax tree, each before the commands nested in its words."""

    def __init__(self, source: bytes, depth: int) -> None:
        self.source, self.depth = source, depth
        self.found: list[SimpleCommand] = []

    def statement(self, node: "Node", level: int) -> None:
        """Collect the commands of a statement, or of a word in the position of a statement."""
        if level > DEPTH_MAX:
            raise NotUnderstood
        kind = node.type
        if kind == "command" or kind == "redirected_statement":
            self.command(node)
        elif kind in _WHOLE:
            self.add(self.text(node), assigns=kind != "test_command")
            self.embedded(node)
        elif kind == "c_style_for_statement" or (kind == "compound_statement" and node.children[0].type == "(("):
            self.evaluated(node)
        elif kind in _CONTAINERS or kind == "compound_statement":
            for child in node.named_children:
                self.statement(child, level + 1)
        elif kind in _WORDS:
            self.embedded_in(node)
        elif kind != "comment":
            raise NotUnderstood

    def command(self, node: "Node") -> None:
        """Collect a simple command with its redirections, or the redirections of a compound command."""
        collected = _Pieces()
        self.collect(node, collected)
        body = collected.body
        if body is not None:
            if collected.words or collected.assigns:
                raise NotUnderstood
            self.statement(body, 1)
        start = node.start_byte if body is None else body.end_byte
        words = tuple(self.word(pieces) for pieces in adjacent(collected.words))
        targets = tuple(self.word(pieces) for pieces in collected.targets)
        if words and words[0].source == "time":
            words, start = self.timed(collected.words, words, start)
        if words and words[0].source == "coproc":
            raise NotUnderstood
        if words or targets or collected.assigns or collected.redirects:
            source = self.source[start : collected.end].decode().strip()
            self.found.append(SimpleCommand(source, words, targets, collected.assigns))
        for piece in collected.expanding:
            self.embedded_in(piece)
        for statement in collected.following:
            self.statement(statement, 1)

    def timed(self, nodes: "list[Node]", words: tuple[Word, ...], start: int) -> tuple[tuple[Word, ...], int]:
        """The words after the shell keyword ``time``, and the offset where they start."""
        skipped = 2 if len(words) > 1 and words[1].source == "-p" else 1
        if len(words) <= skipped:
            return words, start
        return words[skipped:], list(adjacent(nodes))[skipped][0].start_byte

    def collect(self, node: "Node", into: "_Pieces") -> None:
        """Sort the nodes of a command into words, redirections, assignments and a compound body."""
        for child in node.children:
            kind = child.type
            if kind in ("file_redirect", "herestring_redirect"):
                self.redirect(child, into)
            elif kind == "heredoc_redirect":
                self.heredoc(child, into)
            elif kind == "variable_assignment":
                into.assigns = True
                into.expanding.append(child)
                into.end = max(into.end, child.end_byte)
            elif kind in _WORDS:
                into.add_word(child)
            elif kind == "command":
                self.collect(child, into)
            elif child.is_named and node.type == "redirected_statement" and into.body is None:
                into.body = child
            else:
                raise NotUnderstood

    def redirect(self, node: "Node", into: "_Pieces") -> None:
        """Add a redirection. The grammar includes the words after its target, which belong to the command."""
        pieces = [child for child in node.children if child.type in _WORDS]
        operator = next(child for child in node.children if child.type not in _WORDS | {"file_descriptor"})
        words = list(adjacent(pieces))
        if words and node.type == "file_redirect":
            first = self.source[words[0][0].start_byte : words[0][-1].end_byte].decode()
            if not (operator.type in (">&", "<&") and _DESCRIPTOR.fullmatch(first)):
                into.targets.append(words[0])
        for word in words[1:]:
            into.words += word
        into.words.sort(key=lambda piece: piece.start_byte)
        into.expanding += pieces
        into.redirects = True
        into.end = max(into.end, node.end_byte)

    def heredoc(self, node: "Node", into: "_Pieces") -> None:
        """Add a here-document. Its text is data, except expansions if its delimiter is not quoted."""
        into.redirects = True
        start = body = end = None
        for child in node.children:
            kind = child.type
            if kind == "heredoc_start":
                start = child
                into.end = max(into.end, child.end_byte)
            elif kind == "heredoc_body":
                body = child
            elif kind == "heredoc_end":
                end = child
            elif kind == "file_redirect":
                self.redirect(child, into)
            elif kind in _WORDS:
                into.add_word(child)
            elif child.is_named:
                into.following.append(child)
        if start is None or end is None:
            raise NotUnderstood
        text = heredoc_text(self.source, start, end)
        if self.text(start).isidentifier() and _EXPANDS.search(text):
            counted = 0 if body is None else sum(1 for _ in substitutions(body))
            if body is None or "`" in text or len(re.findall(r"(?<!\\)\$\(", text)) != counted:
                raise NotUnderstood
            into.expanding.append(body)

    def embedded(self, node: "Node") -> None:
        """Collect the commands nested in the children of a node."""
        for child in node.children:
            self.embedded_in(child)

    def embedded_in(self, node: "Node") -> None:
        """Collect the commands that the shell runs when it expands a word."""
        kind = node.type
        if kind in ("command_substitution", "process_substitution"):
            self.substitution(node)
        elif kind in ("expansion", "arithmetic_expansion") and not self.only_reads(node):
            self.evaluated(node)
        elif kind == "extglob_pattern" and re.search(r"[$`]", self.text(node)):
            raise NotUnderstood
        else:
            self.embedded(node)

    def only_reads(self, node: "Node") -> bool:
        """Whether an expansion only reads a variable, apart from nested substitutions.

        Other expansions may run a variable's value as code: ``${x@P}`` expands it as a prompt, and subscripts are
        arithmetic. Whether a single quote inside quotes depends on outer quotes, so it counts as unsafe.
        """
        if node.type == "arithmetic_expansion":
            return _IS_CONSTANT.fullmatch(self.text(node)) is not None
        if "'" in self.text(node):
            return False
        kinds = [child.type for child in node.children]
        if kinds[1:2] == ["#"]:
            del kinds[1]
        return kinds[1:2] == ["variable_name"] and (kinds[2:] == ["}"] or kinds[2] in _READING)

    def evaluated(self, node: "Node") -> None:
        """Collect an expansion that can run code, and each of its pieces that may be a command."""
        text = self.text(node)
        self.add(text)
        for fragment in fragments(text):
            self.add(fragment)
        self.embedded(node)

    def substitution(self, node: "Node") -> None:
        """Collect the commands of a substitution. The text in backticks is unescaped and parsed separately."""
        text = self.text(node)
        if text.startswith("`"):
            in_string = any(parent.type == "string" for parent in parents(node))
            inner = re.sub(r'\\([\\`$"])' if in_string else r"\\([\\`$])", r"\1", text[1:-1])
            self.found += _commands(inner, self.depth + 1)
            return
        for child in node.named_children:
            if child.type == "file_redirect":
                self.command(node)
                return
            self.statement(child, 1)

    def word(self, pieces: "list[Node]") -> Word:
        """One word from its adjacent pieces."""
        values: list[tuple[str, bool]] = []
        is_dynamic = False
        for piece in pieces:
            is_dynamic |= self.read(piece, values)
        value = "".join(text for text, _ in values)
        at, pattern_at = 0, None
        for text, is_bare in values:
            found = re.search(r"[*?\[{]", text) if is_bare else None
            if found and pattern_at is None:
                pattern_at = at + found.start()
            at += len(text)
        source = self.source[pieces[0].start_byte : pieces[-1].end_byte].decode()
        return Word(source, value, is_dynamic, pattern_at)

    def read(self, node: "Node", values: list[tuple[str, bool]]) -> bool:
        """Add the text of a piece of a word, and whether wildcards in it are active; returns whether it is dynamic."""
        text = self.text(node)
        match node.type:
            case "word":
                # An escaped character is literal.
                parts = re.findall(r"\\.|[^\\]+", text)
                values += [(part[-1], False) if part[0] == "\\" else (part, True) for part in parts]
            case "number" | "variable_name" | "$":
                values.append((text, False))
            case "raw_string":
                values.append((text[1:-1], False))
            case "string":
                return self.read_string(node, values)
            case "concatenation" | "command_name":
                computed = [self.read(child, values) for child in node.children]
                return any(computed)
            case "brace_expression":
                values.append((text, True))
            case _:
                return True
        return False

    def read_string(self, node: "Node", values: list[tuple[str, bool]]) -> bool:
        """Add the text of a double-quoted string; returns whether it is dynamic."""
        inside = self.source[node.start_byte : node.end_byte].decode()[1:-1]
        values.append((re.sub(r'\\([$`"\\])|\\\n', r"\1", inside), False))
        return any(child.type not in ('"', "string_content", "$") for child in node.children)

    def add(self, source: str, *, assigns: bool = False) -> None:
        self.found.append(SimpleCommand(source, (), (), assigns))

    def text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode().strip(" \t\n")


class _Pieces:
    """The nodes of a command, by their role."""

    def __init__(self) -> None:
        self.words: list[Node] = []
        self.targets: list[list[Node]] = []
        self.expanding: list[Node] = []
        """The nodes that may contain substitutions."""
        self.following: list[Node] = []
        """Statements after a here-document on its line, which the grammar puts into the here-document."""
        self.body: Node | None = None
        self.assigns = False
        self.redirects = False
        self.end = 0

    def add_word(self, node: "Node") -> None:
        self.words.append(node)
        self.expanding.append(node)
        self.end = max(self.end, node.end_byte)
