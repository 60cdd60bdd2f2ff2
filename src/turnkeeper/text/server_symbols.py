"""Symbols from a language server: a tree or a flat list, with names in the form of each language."""

import re
from collections.abc import Iterator
from typing import Final

from turnkeeper.model.value import Json
from turnkeeper.text.symbols import Symbol

DEPTH_MAX: Final = 32
SYMBOLS_MAX: Final = 20_000

_RECEIVER: Final = re.compile(r"\(\*?([^)]*)\)\.")
"""The receiver before the name of a method in Go: ``(*App).Run``."""
_IMPLEMENTED: Final = re.compile(r"impl\b.*?\bfor\s+|impl\b(?:<[^>]*>)?\s*")
"""The words before the type of an implementation in Rust: ``impl Display for App``."""
_GENERIC: Final = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")


def server_symbols(answer: Json) -> tuple[Symbol, ...]:
    """The symbols of an answer to ``textDocument/documentSymbol``. Entries that are not symbols are left out."""
    found: list[Symbol] = []
    for one in _symbols(answer, (), 0):
        found.append(one)
        if len(found) == SYMBOLS_MAX:
            break
    return tuple(found)


def _symbols(listed: Json, outer: tuple[str, ...], depth: int) -> Iterator[Symbol]:
    if not isinstance(listed, list) or depth > DEPTH_MAX:
        return
    for one in listed:
        match one:
            case {"name": str(name), "location": {"range": place}}:
                container = one.get("containerName")
                around = _plain(container) if isinstance(container, str) else ()
            case {"name": str(name), "range": place}:
                around = outer
            case _:
                continue
        own, lines, kind = _plain(name), _lines(place), one.get("kind")
        if own and lines is not None:
            yield Symbol((*around, *own), kind if isinstance(kind, int) else 0, *lines)
        yield from _symbols(one.get("children"), (*around, *own), depth + 1)


def _lines(given: Json) -> tuple[int, int] | None:
    """The first and the last line. A range that ends before the first character of a line does not have that line."""
    match given:
        case {"start": {"line": int(first)}, "end": {"line": int(last), "character": int(character)}}:
            last -= character == 0 and last > first
            return (first + 1, last + 1) if 0 <= first <= last else None
    return None


def _plain(name: str) -> tuple[str, ...]:
    """The names in a name, as people write them after ``@``: without types, parameters and traits."""
    name = _RECEIVER.sub(r"\1.", name.strip(), count=1) if name.startswith("(") else name.strip()
    name = _IMPLEMENTED.sub("", name, count=1) if name.startswith("impl") else name
    name = _GENERIC.sub("", name).partition("(")[0].strip()
    return tuple(one for one in name.replace("::", ".").split(".") if one)
