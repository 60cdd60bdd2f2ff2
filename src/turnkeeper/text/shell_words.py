"""The words of a shell command: their text without quotes, and the parts that the shell computes when it runs."""

import re
from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from turnkeeper.text.shell_braces import EXPANSIONS_MAX, braced

if TYPE_CHECKING:
    from tree_sitter import Node

_PATTERN: Final = re.compile(r"[*?\[{]")
_ANSI_C: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|[\s\S])")
_HELD: Final = 0xE100
_HELD_MAX: Final = 0x1000
_HELD_SIGN: Final = re.compile(f"([{chr(_HELD)}-{chr(_HELD + _HELD_MAX)}])")
"""A placeholder, from a private plane, for a piece of a word in which braces have no meaning."""
_ANSI_C_LETTERS: Final = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))


class Piece(NamedTuple):
    """A piece of a word.

    ``bare`` and ``quoted`` pieces are text; wildcards count in bare ones only. A ``variable`` piece holds the name of a
    variable, ``split`` one whose value is divided into words. A ``computed`` piece can be anything.
    """

    text: str
    kind: Literal["bare", "quoted", "variable", "split", "computed"]


class Word(NamedTuple):
    """One word. ``value`` has its quotes removed; ``is_dynamic``: the shell computes part of it when it runs.

    ``pattern_at`` is where in the value an unquoted wildcard or brace begins. ``braces`` are those that it comes from;
    empty for all but the first word of them.
    """

    source: str
    value: str
    is_dynamic: bool
    pattern_at: int | None
    pieces: tuple[Piece, ...]
    braces: str | None = None

    @property
    def written(self) -> str:
        """The word as it stands in the text, with its braces."""
        return self.source if self.braces is None else self.braces


HOME: Final = Word("~", "~", is_dynamic=False, pattern_at=None, pieces=(Piece("~", "bare"),))
SOMETHING: Final = Word("", "", is_dynamic=True, pattern_at=None, pieces=(Piece("", "computed"),))
"""A placeholder for unknown words: a value from elsewhere, or a command's input."""


def literal_word(text: str) -> Word:
    """A word that is exactly this text."""
    return Word(text, text, is_dynamic=False, pattern_at=None, pieces=(Piece(text, "quoted"),))


def read_word(source: bytes, nodes: "list[Node]") -> Word:
    """One word from its adjacent nodes."""
    text = source[nodes[0].start_byte : nodes[-1].end_byte].decode()
    return _word(text, tuple(piece for node in nodes for piece in _pieces(source, node)))


def braced_words(word: Word) -> list[Word] | None:
    """The words that the braces of a word make of it: ``{rm,x}`` is ``rm`` and ``x``. None if they are too many."""
    held = [piece for piece in word.pieces if piece.kind != "bare"]
    places = iter(range(_HELD, _HELD + len(held)))
    text = "".join(piece.text if piece.kind == "bare" else chr(next(places)) for piece in word.pieces)
    if "{" not in text or not re.search(r",|\.\.", text):
        return [word]
    is_clear = len(held) <= _HELD_MAX and len(_HELD_SIGN.findall(text)) == len(held)
    found = braced(text) if is_clear and text.count("{") <= EXPANSIONS_MAX else []
    if not 0 < len(found) <= EXPANSIONS_MAX:
        return None
    if found == [text]:
        return [word]
    # The shell forgets a word of which nothing is left.
    words = [_put_back(one, held) for one in found if one]
    return [one._replace(braces="" if place else word.source) for place, one in enumerate(words)]


def _put_back(text: str, held: list[Piece]) -> Word:
    pieces = tuple(
        held[ord(one) - _HELD] if _HELD_SIGN.fullmatch(one) else Piece(one, "bare")
        for one in _HELD_SIGN.split(text)
        if one
    )
    return _word("".join(map(_spelt, pieces)), pieces)


def _spelt(piece: Piece) -> str:
    match piece.kind:
        case "quoted":
            return quote(piece.text)
        case "variable" | "split":
            return f"${{{piece.text}}}"
        case _:
            return piece.text


def _word(source: str, pieces: tuple[Piece, ...]) -> Word:
    at, pattern_at = 0, None
    for piece in pieces:
        found = _PATTERN.search(piece.text) if piece.kind == "bare" else None
        if found and pattern_at is None:
            pattern_at = at + found.start()
        at += len(piece.text)
    return Word(
        source=source,
        value="".join(piece.text for piece in pieces),
        is_dynamic=any(piece.kind not in ("bare", "quoted") for piece in pieces),
        pattern_at=pattern_at,
        pieces=pieces,
    )


def _pieces(source: bytes, node: "Node") -> Iterator[Piece]:
    text = source[node.start_byte : node.end_byte].decode().strip(" \t\n")
    match node.type:
        case "word":
            # An escaped character stands for itself.
            for part in re.findall(r"\\.|[^\\]+", text):
                yield Piece(part[1:], "quoted") if part[0] == "\\" else Piece(part, "bare")
        case "number" | "variable_name":
            yield Piece(text, "quoted")
        case "raw_string":
            yield Piece(text[1:-1], "quoted")
        case "ansi_c_string":
            yield Piece(_ANSI_C.sub(_ansi_c, text[2:-1]), "quoted")
        case "string":
            yield from _string_pieces(source, node)
        case "concatenation" | "command_name" | "translated_string":
            for child in node.children:
                yield from _pieces(source, child)
        case "brace_expression":
            yield Piece(text, "bare")
        case "$" if source[node.end_byte : node.end_byte + 1] == b'"':
            pass  # ``$"..."`` is a string that may be translated.
        case "$":
            yield Piece("$", "quoted")
        case "simple_expansion" | "expansion":
            yield _expansion_piece(source, node, "split")
        case _:
            yield Piece(text, "computed")


def _string_pieces(source: bytes, node: "Node") -> Iterator[Piece]:
    """The pieces of a double-quoted string. The grammar leaves blanks out, or counts them to the next expansion."""
    at = node.start_byte + 1
    for child in node.children[1:-1]:
        text = source[child.start_byte : child.end_byte].decode()
        start = child.start_byte
        if child.type not in ("string_content", "$"):
            start += len(text) - len(text.lstrip(" \t\n"))
            yield from _quoted(source[at:start].decode())
            yield (
                _expansion_piece(source, child, "variable")
                if child.type in ("simple_expansion", "expansion")
                else Piece(text, "computed")
            )
            at = child.end_byte
    yield from _quoted(source[at : node.end_byte - 1].decode())


def _quoted(text: str) -> Iterator[Piece]:
    if text:
        yield Piece(re.sub(r'\\([$`"\\])|\\\n', r"\1", text), "quoted")


def _expansion_piece(source: bytes, node: "Node", kind: Literal["variable", "split"]) -> Piece:
    """``$NAME`` and ``${NAME}`` are variables; everything else is computed."""
    text = source[node.start_byte : node.end_byte].decode().strip(" \t\n")
    found = re.fullmatch(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})", text)
    return Piece(found[1] or found[2], kind) if found else Piece(text, "computed")


def _ansi_c(escape: re.Match[str]) -> str:
    code = escape[1]
    if code[0] in "xuU" and len(code) > 1:
        return chr(min(int(code[1:], 16), 0x10FFFF))
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF)
    if code[0] == "c" and len(code) > 1:
        return chr(ord(code[1]) & 0x1F)
    return _ANSI_C_LETTERS.get(code, code)
