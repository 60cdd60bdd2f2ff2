"""Logs on disk: one entry a line in ``log/NAME.jsonl``, and an index with the fence and the end of each line.

A log is only written at its end, and only an incomplete last line is cut from it. The index holds numbers of 8 bytes:
the fence, a 0, then the end of each line; a lost index is made again from the lines.
"""

import os
import sys
from array import array
from base64 import b64decode, b64encode
from collections.abc import Callable
from itertools import accumulate

from turnkeeper.store.engine import StoreDamaged, StoreUnavailable, path
from turnkeeper.store.engines.files.disk import Disk, NotAFile, read, read_range, size_of
from turnkeeper.store.engines.files.names import LOG_DIRECTORY, LOG_SUFFIX, decoded, log_name

_HEAD = 2
"""Numbers in the index of a log without entries."""
_ENCODED = b"="
"""The first byte of a line with an entry in base64. No JSON begins with it."""


class Logs:
    """The logs of one store. ``Tree`` does the locking."""

    def __init__(self, directory: str, own: str, disk: Disk, set_aside: Callable[[str, bytes], None]) -> None:
        self.directory, self.indexes = f"{directory}/{LOG_DIRECTORY}", f"{own}/index"
        self._disk, self._set_aside = disk, set_aside

    def files(self, log: str) -> tuple[str, str]:
        """The file with the lines of a log, and its index. Raises InvalidKey."""
        name = log_name(path((log,)))
        return f"{self.directory}/{name}{LOG_SUFFIX}", f"{self.indexes}/{name}"

    def names(self) -> list[str]:
        """Every log that has lines, in order."""
        stems = [name.removesuffix(LOG_SUFFIX) for name in os.listdir(self.directory) if name.endswith(LOG_SUFFIX)]
        return sorted(log for log in (decoded(stem, top=False) for stem in stems) if log is not None)

    def length(self, log: str) -> int:
        """The number of entries of a log."""
        return len(self._index(log)) - _HEAD

    def fence(self, log: str) -> int:
        """The fence a log was last written with."""
        return self._index(log)[0]

    def read(self, log: str, after: int, limit: int | None) -> list[bytes]:
        """The entries from number ``after + 1`` on. Raises StoreUnavailable if the lines do not match the index."""
        index = self._index(log)
        length = len(index) - _HEAD
        last = length if limit is None else min(after + limit, length)
        if after >= last:
            return []
        start, end = index[after + 1], index[last + 1]
        size = size_of(self.files(log)[0]) or 0
        # From the line break before the first line, to detect an altered index that points into a line.
        data = read_range(self.files(log)[0], min(max(start - 1, 0), size), min(end, size))
        pieces = (data if start else b"\n" + data).split(b"\n")
        if len(pieces) != last - after + 2 or pieces[0] or pieces[-1]:
            raise self._damaged(log, f"it does not hold {length} lines where its index names them")
        return [_entry(line) for line in pieces[1:-1]]

    def prepare(self, log: str) -> None:
        """Check that a log can be appended to, and set aside an incomplete last line. Raises StoreUnavailable."""
        file, end = self.files(log)[0], self._index(log)[-1]
        size = size_of(file) or 0
        if size < end:
            raise self._damaged(log, f"{end} bytes were written and {size} are left")
        if size > end:
            behind = read_range(file, end, size)
            if b"\n" in behind:
                raise self._damaged(log, "whole lines stand behind the last entry that was acknowledged")
            self.cut(log, "line", end)

    def cut(self, log: str, what: str, end: int) -> None:
        """Set aside the bytes after an offset."""
        file = self.files(log)[0]
        self._set_aside(f"{what}.{os.path.basename(file)}", read_range(file, end, size_of(file) or 0))
        self._disk.truncate(file, end)

    def place(self, log: str, after: int, entries: list[bytes], fence: int | None) -> None:
        """Write lines and their index. Raises StoreUnavailable if other lines are in their place."""
        file, index = self.files(log)
        numbers = self._index(log)[: after + _HEAD]
        lines = [_line(entry) for entry in entries]
        body, start = b"".join(lines), numbers[-1]
        there = read_range(file, start, start + len(body))
        if len(numbers) < after + _HEAD or not body.startswith(there):
            raise self._damaged(log, f"other lines stand behind entry {after}, or those before it are missing")
        if len(there) < len(body):
            self._disk.write(file, body[len(there) :], start + len(there))
        if size_of(index) is None:
            self._disk.write(index, _packed(numbers))
        ends = array("Q", accumulate(map(len, lines[1:]), initial=start + len(lines[0])) if lines else [])
        self._disk.write(index, _packed(ends), 8 * (after + _HEAD))
        if fence is not None:
            self._disk.write(index, _packed(array("Q", [fence])), 0)

    def remove(self, log: str) -> None:
        """Remove a log and its fence."""
        for file in self.files(log):
            self._disk.unlink(file)

    def problems(self, log: str) -> list[str]:
        """The problems of the files of a log."""
        file, index = self.files(log)
        try:
            numbers, counted = self._index(log), self._ends(log)
            self.read(log, 0, None)
            read_range(index, 0, 0)
        except NotAFile as error:
            return [f"{error.filename} is damaged: it is not an ordinary file"]
        except (StoreUnavailable, ValueError) as error:
            return [str(error)]
        if numbers[_HEAD:] != counted[: len(numbers) - _HEAD]:
            return [f"{index} is damaged and {file} is whole: remove the index, it is made again"]
        if (size_of(file) or 0) > numbers[-1]:
            return [f"{file} goes on behind entry {len(numbers) - _HEAD}, the last that was acknowledged"]
        return []

    def _index(self, log: str) -> "array[int]":
        try:
            held = read(self.files(log)[1])
        except NotAFile:
            held = None
        if held is None or len(held) < 8 * _HEAD:
            return array("Q", [0, 0, *self._ends(log)])
        numbers = array("Q", held[: len(held) // 8 * 8])
        if sys.byteorder == "big":
            numbers.byteswap()
        numbers[1] = 0
        return numbers

    def _ends(self, log: str) -> "array[int]":
        """The end of each line, counted in the file."""
        lines = (read(self.files(log)[0]) or b"").split(b"\n")[:-1]
        return array("Q", accumulate(len(line) + 1 for line in lines))

    def _damaged(self, log: str, reason: str) -> StoreDamaged:
        return StoreDamaged(f"log {log!r} is damaged ({self.files(log)[0]}): {reason}")


def _packed(numbers: "array[int]") -> bytes:
    if sys.byteorder == "big":
        numbers = array("Q", numbers)
        numbers.byteswap()
    return numbers.tobytes()


def _line(entry: bytes) -> bytes:
    if not entry or b"\n" in entry or entry.startswith(_ENCODED):
        entry = _ENCODED + b64encode(entry)
    return entry + b"\n"


def _entry(line: bytes) -> bytes:
    return b64decode(line[1:], validate=True) if line.startswith(_ENCODED) else line
