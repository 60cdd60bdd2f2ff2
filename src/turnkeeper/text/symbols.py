"""Symbols of a source text: its functions, classes and constants, by their dotted names and lines.

Python is parsed by its own ``ast``, shell scripts by tree-sitter. A text that cannot be parsed has no symbols here, and
so has a text of another language: what is found is right, or nothing is found.
"""

import ast
import re
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, NamedTuple

from turnkeeper.text.shell_syntax import NotUnderstood, syntax_tree

if TYPE_CHECKING:
    from tree_sitter import Node

CLASS: Final = 5
METHOD: Final = 6
FUNCTION: Final = 12
VARIABLE: Final = 13
"""Kinds of symbols, as the language server protocol numbers them."""
NEAREST: Final = 3

# Lines end where the read tool ends them. Python and language servers take a lone carriage return for an end, too.
_LONE_RETURN: Final = re.compile(r"\r(?!\n)")
_warning_lock: Final = threading.Lock()


class Symbol(NamedTuple):
    """A symbol; ``names`` are those of the enclosing symbols and its own. Lines count from 1, the last one included."""

    names: tuple[str, ...]
    kind: int
    first: int
    last: int

    @property
    def name(self) -> str:
        """The dotted name."""
        return ".".join(self.names)


def symbols(suffix: str, text: str) -> tuple[Symbol, ...]:
    """The symbols of a text whose file name ends like this, in their order; nothing if it is not understood."""
    parse = _PARSERS.get(suffix.lower())
    return () if parse is None or _LONE_RETURN.search(text) else tuple(parse(text))


def find(known: Sequence[Symbol], name: str) -> tuple[Symbol, ...]:
    """The symbols that a name means: those whose whole name it is, or else those whose name ends with it.

    There are several if a symbol is defined more than once, or stands in several classes.
    """
    wanted = tuple(name.replace("::", ".").split("."))
    whole = tuple(one for one in known if one.names == wanted)
    return whole or tuple(one for one in known if one.names[-len(wanted) :] == wanted)


def nearest(known: Sequence[Symbol], name: str) -> tuple[str, ...]:
    """The names of symbols that a name was probably meant to be."""
    names = {one.name.lower(): one.name for one in known} | {one.names[-1].lower(): one.name for one in known}
    alike = get_close_matches(name.lower(), names, n=NEAREST, cutoff=0.6)
    return tuple(dict.fromkeys(names[one] for one in alike))


def _of_python(text: str) -> Iterator[Symbol]:
    try:
        # Warnings about the text are not ours to print. The filter is one for all threads, so one parses at a time.
        with _warning_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    yield from _in_body(tree.body, (), is_in_class=False)


def _in_body(body: Sequence[ast.stmt], outer: tuple[str, ...], *, is_in_class: bool) -> Iterator[Symbol]:
    for one in body:
        match one:
            case ast.ClassDef():
                yield _symbol(one, (*outer, one.name), CLASS)
                yield from _in_body(one.body, (*outer, one.name), is_in_class=True)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield _symbol(one, (*outer, one.name), METHOD if is_in_class else FUNCTION)
                yield from _nested(one.body, (*outer, one.name))
            case ast.Assign() | ast.AnnAssign():
                targets = one.targets if isinstance(one, ast.Assign) else [one.target]
                yield from (
                    _symbol(one, (*outer, name.id), VARIABLE)
                    for target in targets
                    for name in ast.walk(target)
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                )
            case ast.If() | ast.Try() | ast.With():  # As for a type checker or an older Python.
                for inner in _bodies(one):
                    yield from _in_body(inner, outer, is_in_class=is_in_class)


def _nested(body: Sequence[ast.stmt], outer: tuple[str, ...]) -> Iterator[Symbol]:
    """Functions and classes in a function; its variables are no symbols."""
    return (one for one in _in_body(body, outer, is_in_class=False) if one.kind != VARIABLE)


def _bodies(one: ast.If | ast.Try | ast.With) -> Iterator[Sequence[ast.stmt]]:
    yield one.body
    if isinstance(one, ast.Try):
        yield from (handler.body for handler in one.handlers)
        yield one.finalbody
    if not isinstance(one, ast.With):
        yield one.orelse


def _symbol(one: ast.stmt, names: tuple[str, ...], kind: int) -> Symbol:
    """A symbol with its decorators."""
    decorators = getattr(one, "decorator_list", [])
    first = min([one.lineno, *(decorator.lineno for decorator in decorators)])
    return Symbol(names, kind, first, one.end_lineno or one.lineno)


def _of_shell(text: str) -> Iterator[Symbol]:
    try:
        root, _ = syntax_tree(text)
    except NotUnderstood:
        return
    waiting: list[Node] = [root]
    while waiting:
        node = waiting.pop()
        name = node.child_by_field_name("name") if node.type == "function_definition" else None
        if name is not None and name.text is not None:
            yield Symbol((name.text.decode(),), FUNCTION, node.start_point.row + 1, node.end_point.row + 1)
        waiting += reversed(node.children)


_PARSERS: Final[Mapping[str, Callable[[str], Iterator[Symbol]]]] = {
    ".py": _of_python,
    ".pyi": _of_python,
    ".sh": _of_shell,
    ".bash": _of_shell,
}
