"""The syntax tree of a shell command, refused where bash would read the text in another way.

tree-sitter-bash gives the tree. It accepts some texts that bash reads differently (line continuations, comments,
here-documents), and such a difference could hide a command from the permission rules. So every token is checked against
what bash reads there.
"""

import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LENGTH_MAX: Final = 100_000
"""Characters of a command. A longer one is not parsed."""
DEPTH_MAX: Final = 64
"""Levels of the syntax tree, or of commands inside backticks. A deeper command is not understood."""

_GAP: Final = re.compile(r"(?:[ \t\n]|\\\n)*")
_DASH: Final = re.compile(r"[ \t]+-[ \t]+")
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
    """The text has syntax that we do not know, or that bash may read in another way."""


def syntax_tree(command: str) -> "tuple[Node, bytes]":
    """The root of the tree and the text that its positions count in; NotUnderstood if bash may read it differently."""
    if len(command) > LENGTH_MAX or "\0" in command:
        raise NotUnderstood
    try:
        source = command.encode()
    except UnicodeEncodeError:
        raise NotUnderstood from None
    root = _parser().parse(source).root_node
    ended = _with_ends(root, source)
    if ended != source:
        source, root = ended, _parser().parse(ended).root_node
    if root.has_error:
        raise NotUnderstood
    _check_tokens(root, source)
    return root, source


def heredoc_text(source: bytes, start: "Node", end: "Node") -> str:
    """The text of a here-document, if bash ends it where the grammar does."""
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
    """Pieces without a gap between them are one word, also where the grammar takes them for several."""
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


def expansions(node: "Node") -> Iterator["Node"]:
    """Every ``$(...)``, ``$((...))`` and ``${...}`` below a node."""
    for child in node.children:
        if child.type in ("command_substitution", "arithmetic_expansion", "expansion"):
            yield child
        yield from expansions(child)


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _with_ends(root: "Node", source: bytes) -> bytes:
    """The text with ``;`` for each line break that the grammar overlooks, as behind a pipe if ``&&`` follows."""
    ended, nodes = bytearray(source), [root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        for one, other in pairwise(node.children if node.type == "command" else ()):
            gap = source[one.end_byte : other.start_byte]
            if b"\n" in gap and not gap.strip(b" \t\n") and one.type != "comment":
                ended[one.end_byte + gap.index(b"\n")] = ord(";")
    return bytes(ended)


def _check_tokens(root: "Node", source: bytes, *, within: bool = False) -> None:
    """Refuse a tree whose tokens are not those that bash reads. ``within``: the tree is a piece of the text."""
    end = root.start_byte if within else 0
    for leaf in _leaves(root, 0):
        gap = source[end : leaf.start_byte].decode()
        # The grammar skips more kinds of blanks than bash, which takes the others for letters. Bash joins a continued
        # line without a blank to the word before it, and then ``#`` begins no comment.
        # The grammar skips a lone ``-`` before a here-document, as in ``python3 - <<EOF``.
        is_dash = leaf.type in ("<<", "<<-") and _DASH.fullmatch(gap)
        if not (is_dash or _GAP.fullmatch(gap)) or (gap and not gap.replace("\\\n", "")):
            raise NotUnderstood
        # The grammar takes ``$ x`` for ``$x``, also where the ``x`` is a command on the next line.
        holder = leaf.parent
        is_expanded = holder is not None and holder.type in ("simple_expansion", "expansion")
        if gap and is_expanded and holder is not None and leaf.start_byte > holder.start_byte:
            raise NotUnderstood
        text = source[leaf.start_byte : leaf.end_byte].decode()
        token = _TOKENS.get(leaf.type)
        if token is not None and not token.fullmatch(text):
            raise NotUnderstood
        if leaf.type in ("word", "number") and text.startswith("#") and gap:
            raise NotUnderstood
        # The text of a here-document is data; only the expansions in it have tokens.
        for expansion in leaf.children:
            _check_tokens(expansion, source, within=True)
        # ``$[...]`` is arithmetic in an old spelling that the grammar does not know.
        if leaf.type == "$" and source[leaf.end_byte :].startswith((b"[", b"(", b"{")):
            raise NotUnderstood
        end = leaf.end_byte
    if not within and source[end:].replace(b"\\\n", b"").strip(b" \t\n"):
        raise NotUnderstood


def _leaves(node: "Node", depth: int) -> Iterator["Node"]:
    if depth > DEPTH_MAX:
        raise NotUnderstood
    if node.type == "heredoc_body" or not node.child_count:
        yield node
        return
    for child in node.children:
        yield from _leaves(child, depth + 1)


def _text(source: bytes, node: "Node") -> str:
    return source[node.start_byte : node.end_byte].decode()
