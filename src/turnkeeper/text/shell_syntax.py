"""The syntax tree of a shell command, refused if bash may parse the text differently.

tree-sitter-bash parses some texts unlike bash (line continuations, comments, here-documents). Such a difference could
hide a command from the permission rules, so every token is checked against bash's syntax.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LENGTH_MAX: Final = 100_000
"""Maximum number of characters of a command. A longer command is not parsed."""
DEPTH_MAX: Final = 64
"""Maximum depth of the syntax tree, and of nested backticks. A deeper command is refused."""

_GAP: Final = re.compile(r"(?:[ \t\n]|\\\n)*")
_BARE: Final = re.compile(r"(?:\\[^\n]|[^\s;&|<>()$`'\"\\])+")
_TOKENS: Final = {
    "word": _BARE,
    "number": re.compile(r"-?[\w#]+"),
    "raw_string": re.compile(r"'[^']*'"),
    "ansi_c_string": re.compile(r"\$'(?:\\[\s\S]|[^'\\])*'"),
    "string_content": re.compile(r"(?:\\[\s\S]|[^\"\\`$]|\$(?![\w@*#?!$({\['-]))*"),
    "variable_name": re.compile(r"\w+"),
    "special_variable_name": re.compile(r"[@*#?!$_0-9-]"),
}
_HEREDOC_WORD: Final = re.compile(r"\\?(?P<plain>\w+)|'(?P<single>[^'\n]+)'|\"(?P<double>[^\"\n\\$`]+)\"")
_REST_OF_LINE: Final = re.compile(r"(?:[^'\"()`\\#\n]|'[^'\n]*'|\"[^\"\n\\`$]*\")*\n")


class NotUnderstood(Exception):
    """The text has unknown syntax, or bash may parse it differently."""


def syntax_tree(command: str) -> "tuple[Node, bytes]":
    """The root of the tree, and the source bytes to which its offsets refer. Raises NotUnderstood."""
    if len(command) > LENGTH_MAX or "\0" in command:
        raise NotUnderstood
    try:
        source = command.encode()
    except UnicodeEncodeError:
        raise NotUnderstood from None
    root = _parser().parse(source).root_node
    if root.has_error:
        raise NotUnderstood
    _check_tokens(root, source)
    return root, source


def heredoc_text(source: bytes, start: "Node", end: "Node") -> str:
    """The text of a here-document. Raises NotUnderstood if bash would end it elsewhere."""
    delimiter = _HEREDOC_WORD.fullmatch(_text(source, start))
    line = _REST_OF_LINE.match(source[start.end_byte :].decode())
    if delimiter is None or line is None:
        raise NotUnderstood
    name = delimiter["plain"] or delimiter["single"] or delimiter["double"]
    at = begin = start.end_byte + len(line[0].encode())
    operator = source[: start.start_byte].rstrip()
    for one in source[begin:].decode().split("\n"):
        if (one.lstrip("\t") if operator.endswith(b"<<-") else one) == name:
            if end.start_byte != at + len(one) - len(one.lstrip("\t")) or _text(source, end) != name:
                raise NotUnderstood
            return source[begin:at].decode()
        at += len(one.encode()) + 1
    raise NotUnderstood


def adjacent(pieces: "list[Node]") -> Iterator["list[Node]"]:
    """Groups of pieces without a gap between them: each is one word in bash, even if the grammar has several."""
    word: list[Node] = []
    for piece in pieces:
        if word and word[-1].end_byte != piece.start_byte:
            yield word
            word = []
        word.append(piece)
    if word:
        yield word


def parents(node: "Node") -> Iterator["Node"]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def substitutions(node: "Node") -> Iterator["Node"]:
    """Every ``$(...)`` and ``$((...))`` below a node."""
    for child in node.children:
        if child.type in ("command_substitution", "arithmetic_expansion"):
            yield child
        yield from substitutions(child)


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _check_tokens(root: "Node", source: bytes) -> None:
    """Raise NotUnderstood for a tree with tokens that bash would parse differently."""
    end = 0
    for leaf in _leaves(root, 0):
        gap = source[end : leaf.start_byte].decode()
        # The grammar skips more kinds of white space than bash. Bash joins a continued line without white space to the
        # word before it, and then ``#`` begins no comment.
        if not _GAP.fullmatch(gap) or (gap and not gap.replace("\\\n", "")):
            raise NotUnderstood
        text = source[leaf.start_byte : leaf.end_byte].decode()
        token = _TOKENS.get(leaf.type)
        if token is not None and not token.fullmatch(text):
            raise NotUnderstood
        if leaf.type in ("word", "number") and text.startswith("#") and gap:
            raise NotUnderstood
        # ``$[...]`` is an old form of arithmetic that the grammar does not support.
        if leaf.type == "$" and source[leaf.end_byte :].startswith((b"[", b"(", b"{")):
            raise NotUnderstood
        end = leaf.end_byte
    if source[end:].replace(b"\\\n", b"").strip(b" \t\n"):
        raise NotUnderstood


def _leaves(node: "Node", depth: int) -> Iterator["Node"]:
    if depth > DEPTH_MAX:
        raise NotUnderstood
    if not node.child_count:
        yield node
    for child in node.children:
        yield from _leaves(child, depth + 1)


def _text(source: bytes, node: "Node") -> str:
    return source[node.start_byte : node.end_byte].decode()
