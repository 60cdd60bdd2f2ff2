"""Patches: the envelope in which models write changes to several files, parsed, and applied to a text.

::

    *** Begin Patch
    *** Add File: new.py
    +a line of the new file
    *** Delete File: old.py
    *** Update File: changed.py
    *** Move to: renamed.py
    @@ def f():
     a line that stays
    -a line that goes
    +a line that comes
    *** End of File
    *** End Patch

A chunk says what is there and what shall be there. It is looked for from the end of the chunk before it: its ``@@``
lines first, each on a line of its own, then its lines that stay or go, by equality, without blanks at their ends,
without blanks around them, and with typographic punctuation made plain, in this order.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

BEGIN: Final = "*** Begin Patch"
END: Final = "*** End Patch"
END_OF_FILE: Final = "*** End of File"
_ADD: Final = "*** Add File: "
_DELETE: Final = "*** Delete File: "
_UPDATE: Final = "*** Update File: "
_MOVE: Final = "*** Move to: "

_PLAIN: Final = str.maketrans(
    {
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000", " "),
        "\u2026": "...",
    }
)

Operation: TypeAlias = Literal[" ", "-", "+"]


class PatchError(ValueError):
    """The text is no patch, or does not fit the file. The message is for who wrote it."""


class PatchLine(NamedTuple):
    """A line of a chunk: unchanged, removed or added."""

    operation: Operation
    text: str


class Chunk(NamedTuple):
    """One place of a file. ``contexts`` are lines above it, in order."""

    contexts: tuple[str, ...]
    lines: tuple[PatchLine, ...]
    is_at_end: bool = False


class AddFile(NamedTuple):
    """A new file."""

    path: str
    content: str


class DeleteFile(NamedTuple):
    """A deleted file."""

    path: str


class UpdateFile(NamedTuple):
    """A changed file, which may get another name."""

    path: str
    chunks: tuple[Chunk, ...]
    move_to: str | None = None


Section: TypeAlias = AddFile | DeleteFile | UpdateFile


def parse(text: str) -> tuple[Section, ...]:
    """The sections of a patch. Text around the envelope, such as a here-document, is left out. Raises PatchError."""
    lines = text.replace("\r\n", "\n").split("\n")
    stripped = [line.strip() for line in lines]
    if BEGIN not in stripped or END not in stripped[stripped.index(BEGIN) :]:
        raise PatchError(f"a patch begins with the line '{BEGIN}' and ends with '{END}'")
    first = stripped.index(BEGIN)
    last = len(stripped) - 1 - stripped[::-1].index(END)
    sections = tuple(_Parser(lines[first + 1 : last]).sections())
    if not sections:
        raise PatchError("the patch names no file")
    return sections


class _Parser:
    """One pass over the lines of an envelope."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines, self._at = lines, 0

    def sections(self) -> Iterator[Section]:
        while (line := self._peek()) is not None:
            self._at += 1
            if line.startswith(_ADD):
                yield AddFile(_path(line, _ADD), self._added())
            elif line.startswith(_DELETE):
                yield DeleteFile(_path(line, _DELETE))
            elif line.startswith(_UPDATE):
                yield self._update(_path(line, _UPDATE))
            elif line.strip():
                raise PatchError(f"expected '{_ADD}', '{_DELETE}' or '{_UPDATE}' with a path, not {line!r:.80}")

    def _peek(self) -> str | None:
        return self._lines[self._at] if self._at < len(self._lines) else None

    def _body(self) -> Iterator[str]:
        """The lines up to the next section."""
        while (line := self._peek()) is not None and not line.startswith((_ADD, _DELETE, _UPDATE)):
            self._at += 1
            yield line

    def _added(self) -> str:
        content = []
        for line in self._body():
            if line.startswith("+"):
                content.append(line[1:])
            elif line.strip():
                raise PatchError(f"each line of a new file begins with '+', not {line!r:.80}")
        return "".join(f"{line}\n" for line in content)

    def _update(self, path: str) -> UpdateFile:
        move_to = None
        if (line := self._peek()) is not None and line.startswith(_MOVE):
            move_to = _path(line, _MOVE)
            self._at += 1
        chunks = tuple(self._chunks())
        if not chunks and move_to is None:
            raise PatchError(f"the update of {path!r} has no chunk")
        return UpdateFile(path, chunks, move_to)

    def _chunks(self) -> Iterator[Chunk]:
        contexts: list[str] = []
        lines: list[PatchLine] = []
        for line in self._body():
            if line.startswith("@@"):
                if lines:
                    yield _chunk(contexts, lines)
                    contexts, lines = [], []
                if context := line[2:].removeprefix(" "):
                    contexts.append(context)
            elif line.strip() == END_OF_FILE:
                yield _chunk(contexts, lines, is_at_end=True)
                contexts, lines = [], []
            elif not line:
                lines.append(PatchLine(" ", ""))  # Editors and models strip the blank of an empty line that stays.
            elif line[0] == " " or line[0] == "-" or line[0] == "+":
                operation: Operation = " " if line[0] == " " else "-" if line[0] == "-" else "+"
                lines.append(PatchLine(operation, line[1:]))
            else:
                raise PatchError(f"each line of a chunk begins with ' ', '-', '+' or '@@', not {line!r:.80}")
        if any(line.text or line.operation != " " for line in lines):
            yield _chunk(contexts, lines)
        elif contexts:
            raise PatchError(f"nothing follows '@@ {contexts[-1]}'")


def _chunk(contexts: list[str], lines: list[PatchLine], *, is_at_end: bool = False) -> Chunk:
    if not any(line.operation != " " for line in lines):
        raise PatchError("a chunk has neither a line that goes ('-') nor one that comes ('+')")
    return Chunk(tuple(contexts), tuple(lines), is_at_end)


def _path(line: str, marker: str) -> str:
    path = line.removeprefix(marker).strip()
    if not path:
        raise PatchError(f"'{marker.strip()}' names no file")
    return path


# --- Applying ----------------------------------------------------------------------------------------------------


class _Line(NamedTuple):
    """A line of a file and what ends it: a line break, or nothing at the end of the file."""

    text: str
    end: str


def apply(content: str, chunks: Sequence[Chunk]) -> str:
    """The content after all chunks. Unchanged lines keep every character that they have in the file.

    Raises PatchError with the lines that are not there.
    """
    lines = _lines(content)
    end = "\r\n" if any(line.end == "\r\n" for line in lines) else "\n"
    texts = [line.text for line in lines]
    result: list[_Line] = []
    at = 0
    for chunk in chunks:
        place, operations = _locate(texts, chunk, at)
        result += lines[at:place]
        at = place
        for operation, text in operations:
            if operation == "+":
                result.append(_Line(text, end))
            else:
                result += lines[at : at + 1] if operation == " " else []
                at += 1
    result += lines[at:]
    # A file that did not end in a line break may go on behind what was its last line.
    whole = [
        line if line.end or number == len(result) - 1 else _Line(line.text, end) for number, line in enumerate(result)
    ]
    return "".join(f"{line.text}{line.end}" for line in whole)


def _lines(content: str) -> list[_Line]:
    *whole, rest = content.split("\n")
    lines = [_Line(line[:-1], "\r\n") if line.endswith("\r") else _Line(line, "\n") for line in whole]
    return [*lines, _Line(rest, "")] if rest else lines


def _locate(texts: Sequence[str], chunk: Chunk, start: int) -> tuple[int, tuple[PatchLine, ...]]:
    """The index at which the lines of a chunk begin, and the lines to apply there."""
    for context in chunk.contexts:
        found = _seek(texts, [context], start, is_at_end=False)
        if found is None:
            raise PatchError(f"the line {context!r} was not found from line {start + 1} on")
        start = found + 1
    operations = chunk.lines
    wanted = [line.text for line in operations if line.operation != "+"]
    if not wanted:
        return len(texts), operations
    found = _seek(texts, wanted, start, chunk.is_at_end)
    if found is None and not wanted[-1] and len(wanted) > 1:
        operations = _without_last_blank(operations)
        found = _seek(texts, wanted[:-1], start, chunk.is_at_end)
    if found is None:
        shown = "\n".join(wanted)
        raise PatchError(f"these lines were not found from line {start + 1} on:\n{shown}")
    return found, operations


def _without_last_blank(operations: tuple[PatchLine, ...]) -> tuple[PatchLine, ...]:
    last = max(number for number, line in enumerate(operations) if line.operation != "+")
    return (*operations[:last], *operations[last + 1 :])


def _seek(texts: Sequence[str], wanted: Sequence[str], start: int, is_at_end: bool) -> int | None:
    latest = len(texts) - len(wanted)
    for simplify in _PASSES:
        plain = [simplify(line) for line in texts]
        sought = [simplify(line) for line in wanted]
        places: list[int] = [*([latest] if is_at_end and latest >= start else []), *range(start, latest + 1)]
        for place in places:
            if plain[place] == sought[0] and plain[place : place + len(sought)] == sought:
                return place
    return None


_PASSES: Final[tuple[Callable[[str], str], ...]] = (
    lambda line: line,
    str.rstrip,
    str.strip,
    lambda line: line.translate(_PLAIN).strip(),
)
