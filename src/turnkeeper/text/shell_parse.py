"""Parses a shell command into its simple commands, wherever they stand: lists, pipelines, loops, substitutions.

Commands that run other commands are followed. A text that is not understood gives None, and the caller then trusts
nothing of it.
"""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from turnkeeper.text.shell_carried import carried, program, subscript_commands
from turnkeeper.text.shell_fragments import fragments
from turnkeeper.text.shell_pieces import WORDS, CommandPieces
from turnkeeper.text.shell_script import CHANGING_DIRECTORY, Script, SimpleCommand, Target
from turnkeeper.text.shell_syntax import (
    DEPTH_MAX,
    LENGTH_MAX,
    NotUnderstood,
    adjacent,
    expansions,
    parents,
    syntax_tree,
)
from turnkeeper.text.shell_tables import SHELLS
from turnkeeper.text.shell_words import HOME, SOMETHING, Word, braced_words, literal_word, read_word

if TYPE_CHECKING:
    from tree_sitter import Node


DIRECTORIES_MAX: Final = 32
"""Ways through the changes of directory in one text. With more of them it is not understood."""

INNER_LENGTH_MAX: Final = LENGTH_MAX // 2
"""Characters of all texts inside a text. One in another in a third is counted for each of them, as it is read."""

# Statements that only hold other statements and words.
_CONTAINER_NAMES: Final = (
    "program pipeline negated_command do_group if_statement elif_clause else_clause while_statement"
    " for_statement case_statement case_item function_definition"
)
_CONTAINERS: Final = frozenset(_CONTAINER_NAMES.split())
_REPEATED: Final = frozenset(["while_statement", "for_statement", "function_definition"])
_CONDITIONAL: Final = frozenset(["if_statement", "case_statement", "while_statement", "function_definition"])
# Statements that are asked about as they are written: what they do is not named by their first words.
_WHOLE: Final = frozenset(
    ["variable_assignment", "variable_assignments", "declaration_command", "unset_command", "test_command"]
)
_SETTING: Final = frozenset(["read", "mapfile", "readarray", "getopts", "printf", "let"])
"""Commands that set the variables named by their arguments."""

# Operators of ``${name...}`` that cut or replace a value, or give another one in its place.
_READING: Final = frozenset([":-", "-", ":+", "+", ":?", "?", "#", "##", "%", "%%", "/", "//"])
_IS_ELEMENT: Final = re.compile(r"\$\{#?[A-Za-z_]\w*\[(?:[@*]|\d+)\]\}")
"""Elements of an array with a constant subscript."""
_IS_CONSTANT: Final = re.compile(r"\s*\$\(\([\d\s+*/%-]*\)\)")
_QUOTES: Final = re.compile(r"[`'\"\\]")


def parse(command: str) -> Script | None:
    """The simple commands of a text; None if it is not understood."""
    shared = _Shared()
    try:
        _Walk(command, shared, 0, frozenset({()})).run()
    except NotUnderstood:
        return None
    everywhere = frozenset().union(*(simple.directories for simple in shared.found), shared.seen)
    return Script(
        tuple(
            simple._replace(directories=everywhere) if at in shared.in_functions else simple
            for at, simple in enumerate(shared.found)
        ),
        {name: tuple(values) for name, values in shared.variables.items()},
        frozenset(shared.functions),
    )


class _Shared:
    """The results collected from a text and from the texts inside it."""

    def __init__(self) -> None:
        self.inner_length = 0
        self.found: list[SimpleCommand] = []
        self.variables: dict[str, list[Word]] = {}
        self.functions: set[str] = set()
        self.in_functions: set[int] = set()
        self.assigned: frozenset[str] = frozenset()
        self.seen: frozenset[tuple[Word, ...]] = frozenset()

    def set(self, name: str, *values: Word) -> None:
        self.variables.setdefault(name, []).extend(values)
        self.assigned |= {name}


class _Walk:
    """Collects the simple commands of one text, each before those inside its words.

    ``where`` are the directories in which the next statement may run, each as the words of the ``cd`` commands before.
    """

    def __init__(self, text: str, shared: _Shared, depth: int, where: frozenset[tuple[Word, ...]]) -> None:
        shared.inner_length += len(text) if depth else 0
        if depth > DEPTH_MAX or shared.inner_length > INNER_LENGTH_MAX:
            raise NotUnderstood
        self.root, self.source = syntax_tree(text)
        self.shared, self.depth, self.where = shared, depth, where
        self.repeats = self.functions = 0

    def run(self) -> None:
        self.statement(self.root, 0)

    def statement(self, node: "Node", level: int) -> frozenset[tuple[Word, ...]]:
        """Collect from a statement, or from a word in its place. Returns the directories after it if it succeeded."""
        if level > DEPTH_MAX:
            raise NotUnderstood
        kind = node.type
        if kind == "command" or kind == "redirected_statement":
            return self.command(node)
        if kind == "list":
            return self.chain(node, level)
        if kind == "subshell":
            self.apart(node.named_children, level)
        elif kind in _WHOLE:
            self.add(SimpleCommand(self.text(node), assigns=kind != "test_command"))
            self.embedded(node)
            self.assign(node)
            self.quoted_subscripts(node)
        elif kind == "c_style_for_statement":
            self.counted(node, level)
        elif kind == "compound_statement" and node.children[0].type == "((":
            self.evaluated(node)
        elif kind in _CONTAINERS or kind == "compound_statement":
            return self.container(node, level)
        elif kind in WORDS:
            self.embedded_in(node)
        elif kind != "comment":
            raise NotUnderstood
        return self.where

    def container(self, node: "Node", level: int) -> frozenset[tuple[Word, ...]]:
        """Collect from a statement that holds others. Loops and functions may run them more than once."""
        kind = node.type
        succeeded = self.where
        if kind == "for_statement":
            names = [child for child in node.children if child.type == "variable_name"]
            words = [child for child in node.named_children if child.type in WORDS][1:]
            self.shared.set(self.text(names[0]), *(read_word(self.source, [word]) for word in words))
        if kind == "function_definition":
            self.shared.functions.add(self.text(node.named_children[0]))
        assigned = self.shared.assigned
        self.repeats += kind in _REPEATED
        self.functions += kind == "function_definition"
        for child in node.named_children:
            succeeded = self.statement(child, level + 1)
        self.repeats -= kind in _REPEATED
        self.functions -= kind == "function_definition"
        if kind in _CONDITIONAL:
            self.shared.assigned = assigned
        return succeeded if kind in ("program", "compound_statement") else self.where

    def chain(self, node: "Node", level: int) -> frozenset[tuple[Word, ...]]:
        """Collect from ``a && b`` or ``a || b``."""
        left, right = node.named_children[0], node.named_children[-1]
        is_and = any(child.type == "&&" for child in node.children)
        succeeded = self.statement(left, level + 1)
        after_left = self.where
        self.where = succeeded if is_and else after_left
        assigned = self.shared.assigned
        both = self.statement(right, level + 1)
        if not is_and:
            self.shared.assigned = assigned
        self.where |= after_left
        return both if is_and else both | succeeded

    def apart(self, nodes: "Iterable[Node]", level: int) -> None:
        """Collect statements that run in a shell of their own, whose directory is lost with it."""
        where = self.where
        assigned = self.shared.assigned
        for node in nodes:
            self.statement(node, level + 1)
        self.where, self.shared.assigned = where, assigned

    def command(self, node: "Node") -> frozenset[tuple[Word, ...]]:
        """Collect a simple command with its redirections, or the redirections of a compound one."""
        collected = CommandPieces(self.source, node)
        body = collected.body
        succeeded = self.where
        if body is not None:
            if collected.words or collected.assigns:
                raise NotUnderstood
            succeeded = self.statement(body, 1)
        start = node.start_byte if body is None else body.end_byte
        words = tuple(word for pieces in adjacent(collected.words) for word in self.words(pieces))
        targets = tuple(Target(read_word(self.source, nodes), written) for nodes, written in collected.targets)
        if words and words[0].source == "time":
            words, start = self.timed(collected.words, words, start)
        if words and words[0].source == "coproc":
            raise NotUnderstood
        if words or targets or collected.assigns or collected.redirects:
            source = self.source[start : collected.end].decode().strip()
            simple = SimpleCommand(source, words, targets, collected.assigns, is_redirection=body is not None)
            succeeded = self.run_by(simple, collected.input)
        for piece in collected.expanding:
            self.embedded_in(piece)
            if piece.type == "variable_assignment":
                self.assign(piece)
        for statement in collected.following:
            self.statement(statement, 1)
        return succeeded

    def words(self, nodes: "list[Node]") -> list[Word]:
        """The words of adjacent pieces, with their braces expanded."""
        words = braced_words(read_word(self.source, nodes))
        if words is None:
            raise NotUnderstood
        return words

    def run_by(self, simple: SimpleCommand, input: str | None = None, *, depth: int = 0) -> frozenset[tuple[Word, ...]]:
        """Collect a command and the commands that it runs. Returns the directories after it if it succeeded."""
        if depth > DEPTH_MAX:
            raise NotUnderstood
        runs = carried(simple.words)
        is_shell = program(simple.words) in SHELLS or program(simple.words) in ("source", ".", "at", "batch")
        is_known = runs.runs_input and is_shell and input is not None
        self.add(simple._replace(runs_input=runs.runs_input and not is_known, is_opaque=bool(runs.computed)))
        for words in runs.commands:
            source = " ".join(word.written for word in words if word.written)
            self.run_by(SimpleCommand(source, words), depth=depth + 1)
        if runs.removed:
            source = " ".join(word.source for word in runs.removed)
            self.add(SimpleCommand(source, runs.removed, is_opaque=True))
        for text in (*runs.texts, *((input,) if is_known and input is not None else ())):
            self.inner(text)
        for text in runs.computed:
            self.add(SimpleCommand(text, is_opaque=True))
        if program(simple.words) in ("source", ".", "eval") and not runs.texts:
            self.shared.set("*", SOMETHING)
        if simple.words and simple.words[0].value in _SETTING:
            for word in simple.words[1:]:
                self.shared.set(word.value, SOMETHING)
        return self.moved(simple)

    def inner(self, text: str) -> None:
        """Collect the commands of a text that a command gives to a shell."""
        try:
            walk = _Walk(text, self.shared, self.depth + 1, self.where)
            walk.repeats, walk.functions = self.repeats, self.functions
            walk.run()
            self.where |= walk.where
        except NotUnderstood:
            self.pieces_of(text, is_opaque=True)

    def moved(self, simple: SimpleCommand) -> frozenset[tuple[Word, ...]]:
        """The directories after a command succeeded. ``where`` keeps those before it as well: the command may fail."""
        words = list(simple.words)
        while len(words) > 1 and words[0].value in ("command", "builtin"):
            del words[0]
        if not words or words[0].value not in CHANGING_DIRECTORY:
            return self.where
        operands = [word for word in words[1:] if not re.fullmatch(r"-[LPe@n]+|--", word.value)]
        self.shared.seen |= self.where
        if words[0].value == "popd" or (operands and re.match(r"[-+]\d*$", operands[0].value)):
            succeeded = self.shared.seen
        else:
            target = operands[0] if operands else HOME
            succeeded = frozenset((*way, target) for way in self.where)
        self.where |= succeeded
        if len(self.where) > DIRECTORIES_MAX:
            raise NotUnderstood
        self.shared.seen |= self.where
        return succeeded

    def timed(self, nodes: "list[Node]", words: tuple[Word, ...], start: int) -> tuple[tuple[Word, ...], int]:
        """The command behind the shell's own ``time``, with the place where it starts."""
        skipped = 2 if len(words) > 1 and words[1].source == "-p" else 1
        if len(words) <= skipped:
            return words, start
        return words[skipped:], list(adjacent(nodes))[skipped][0].start_byte

    def quoted_subscripts(self, node: "Node") -> None:
        """Collect the commands that a quoted subscript runs once its variable is set, tested or counted with."""
        for child in node.children:
            if child.type in ("raw_string", "string"):
                for text in subscript_commands(self.text(child)):
                    self.inner(text)
            else:
                self.quoted_subscripts(child)

    def embedded(self, node: "Node") -> None:
        """Collect the commands inside the words of a node."""
        for child in node.children:
            self.embedded_in(child)

    def embedded_in(self, node: "Node") -> None:
        """Collect the commands that a word runs when the shell expands it."""
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
        """Whether an expansion only reads a variable, apart from the substitutions inside it.

        In the others, text from a variable may become code: ``${x@P}`` expands it as a prompt, and subscripts are
        arithmetic. A single quote inside may or may not quote, depending on quotes further out.
        """
        if node.type == "arithmetic_expansion":
            return _IS_CONSTANT.fullmatch(self.text(node)) is not None
        if "'" in self.text(node):
            return False
        if _IS_ELEMENT.fullmatch(self.text(node)):
            return True
        kinds = [child.type for child in node.children]
        if kinds[1:2] == ["#"]:
            del kinds[1]
        return kinds[1:2] == ["variable_name"] and (kinds[2:] == ["}"] or kinds[2] in _READING)

    def counted(self, node: "Node", level: int) -> None:
        """Collect ``for ((...))``: its arithmetic, and the statements that it repeats."""
        body = node.children[-1]
        self.evaluated(node, until=body.start_byte)
        self.repeats += 1
        self.statement(body, level + 1)
        self.repeats -= 1

    def evaluated(self, node: "Node", until: int | None = None) -> None:
        """Collect an expansion that can run code: itself, and each piece of it that might be a command."""
        text = self.source[node.start_byte : until or node.end_byte].decode().strip(" \t\n")
        # Without quotes every command in it is a substitution, which is found by itself, unless the grammar takes it
        # for a pattern, as in ``${x^^$(rm y)}``.
        if _QUOTES.search(text) or len(re.findall(r"\$\(", text)) > sum(
            self.text(one).startswith("$(") for one in (node, *expansions(node))
        ):
            self.pieces_of(text, is_opaque=False)
        else:
            self.add(SimpleCommand(text))
        for name in re.findall(r"[A-Za-z_]\w*", text):
            self.shared.set(name, SOMETHING)
        for child in node.children:
            if until is None or child.start_byte < until:
                self.embedded_in(child)

    def pieces_of(self, text: str, *, is_opaque: bool) -> None:
        """Collect a text as it is, with each piece of it that might be a command."""
        for piece in dict.fromkeys([text, *fragments(text)]):
            self.add(SimpleCommand(piece, is_opaque=is_opaque))

    def substitution(self, node: "Node") -> None:
        """Collect the commands of a substitution. Those in backticks are a text of their own, with escapes."""
        text = self.text(node)
        if text.startswith("`"):
            in_string = any(parent.type == "string" for parent in parents(node))
            inner = re.sub(r'\\([\\`$"])' if in_string else r"\\([\\`$])", r"\1", text[1:-1])
            _Walk(inner, self.shared, self.depth + 1, self.where).run()
        elif any(child.type == "file_redirect" for child in node.named_children):
            self.command(node)
        else:
            self.apart(node.named_children, 1)

    def assign(self, node: "Node") -> None:
        """Record the variables of an assignment, a declaration or ``unset``, with their new values."""
        if node.type != "variable_assignment":
            is_flagged = any(self.text(child).startswith("-") for child in node.named_children)
            for child in node.named_children:
                if child.type == "variable_assignment" and not is_flagged:
                    self.assign(child)
                elif node.type != "test_command":
                    name = re.match(r"\w*", self.text(child))
                    unset = node.type == "unset_command" and not is_flagged
                    self.shared.set(name[0] if name else "", literal_word("") if unset else SOMETHING)
            return
        variable, operator, *value = node.children
        is_known = variable.type == "variable_name" and operator.type == "=" and all(one.type in WORDS for one in value)
        self.shared.set(
            re.split(r"\W", self.text(variable), maxsplit=1)[0],
            SOMETHING if not is_known else read_word(self.source, value) if value else literal_word(""),
        )

    def add(self, simple: SimpleCommand) -> None:
        if self.functions:
            self.shared.in_functions.add(len(self.shared.found))
        self.shared.found.append(
            simple._replace(directories=self.where, is_repeated=self.repeats > 0, assigned=self.shared.assigned)
        )

    def text(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode().strip(" \t\n")
