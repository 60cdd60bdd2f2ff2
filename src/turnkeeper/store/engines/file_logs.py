"""Logs on disk: one entry per line in ``log/NAME.jsonl``, and an index that says how many lines count.

Lines behind the last one of the index are not there yet for a reader: a writer puts them down first, and the index
follows when they are to be seen. The index holds numbers of 8 bytes: the fence, a 0, then the end of each line.
"""

import os
import sys
from array import array
from base64 import b64decode, b64encode
from dataclasses import dataclass
from itertools import accumulate

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines import file_disk
from turnkeeper.store.engines.file_disk import Disk
from turnkeeper.store.engines.file_journal import LogChange
from turnkeeper.store.engines.file_names import LOG_DIRECTORY, LOG_SUFFIX, OWN_DIRECTORY, decoded, log_name

_NUMBER = 8
_EMPTY_INDEX = 2
"""Numbers in the index of a log without entries."""
_ENCODED = b"="
"""Begins a line whose entry could not be a line by itself. No JSON begins like this."""


@dataclass(frozen=True)
class StagedLog:
    """Lines that are written and do not count yet."""

    log: str
    change: LogChange
    ends: bytes
    """What the index gets behind the entries that stay."""
    lines: str | None
    """A new file of lines that is still to be put in its place."""


class Logs:
    """The logs of one store. Who may call what, and when, is the tree's business."""

    def __init__(self, directory: str, disk: Disk) -> None:
        self.directory = f"{directory}/{LOG_DIRECTORY}"
        self.indexes = f"{directory}/{OWN_DIRECTORY}/index"
        self._disk = disk

    def files(self, log: str) -> tuple[str, str]:
        """Where the lines of a log are, and its index."""
        name = log_name(log)
        return f"{self.directory}/{name}{LOG_SUFFIX}", f"{self.indexes}/{name}"

    def names(self) -> list[str]:
        """Every log that has lines, in order."""
        stems = [name.removesuffix(LOG_SUFFIX) for name in os.listdir(self.directory) if name.endswith(LOG_SUFFIX)]
        return sorted(log for log in (decoded(stem, top=False) for stem in stems) if log is not None)

    def length(self, log: str) -> int:
        """How many entries a log has."""
        held = file_disk.size(self.files(log)[1])
        if held is None:
            return len(self._index_of_lines(log)) - _EMPTY_INDEX
        return max(held // _NUMBER - _EMPTY_INDEX, 0)

    def fence(self, log: str) -> int:
        """The fence a log was last written with."""
        return self._numbers(log, 0, 1)[0]

    def read(self, log: str, after: int, limit: int | None) -> list[bytes]:
        """The entries from number ``after + 1`` on. Raises StoreUnavailable if the lines are damaged."""
        length = self.length(log)
        last = length if limit is None else min(after + limit, length)
        if after >= last:
            return []
        ends = self._numbers(log, after + 1, last + 2)
        lines, start, end = self.files(log)[0], ends[0], ends[-1]
        data = file_disk.read_range(lines, start, end) if os.path.exists(lines) else b""
        found = data.split(b"\n")
        if len(data) != end - start or len(found) != last - after + 1:
            raise StoreUnavailable(f"log {log!r} is damaged: {lines} does not hold what its index says")
        return [_entry(line) for line in found[:-1]]

    def stage(self, log: str, change: LogChange, temporary: str) -> StagedLog:
        """Write new lines where no reader looks."""
        start = 0
        if change.base:
            self._restore_index(log, temporary)
            if self.length(log) < change.base:
                raise StoreUnavailable(
                    f"log {log!r} is damaged: {change.base} entries were written and {self.length(log)} are left"
                )
            start = self._numbers(log, change.base + 1, change.base + 2)[0]
        lines = [_line(entry) for entry in change.entries]
        ends = list(accumulate(map(len, lines), initial=start))[1:]
        if lines and change.base:
            self._disk.extend(self.files(log)[0], start, b"".join(lines))
        elif lines:
            self._disk.create(temporary, b"".join(lines))
        is_new_file = bool(lines) and not change.base
        return StagedLog(log, change, _packed(ends), temporary if is_new_file else None)

    def place(self, staged: StagedLog) -> None:
        """Make staged lines count, or a removed log be gone."""
        change, (lines, index) = staged.change, self.files(staged.log)
        if change.is_new:
            self._disk.unlink(index)
            if not change.entries:
                self._disk.unlink(lines)
        if staged.lines is not None:
            self._disk.rename(staged.lines, lines)
        if change.is_new and not change.entries and change.fence is None:
            return
        fence = change.fence if change.fence is not None else self._numbers(staged.log, 0, 1)[0]
        if change.base == 0:
            self._disk.extend(index, 0, _packed([fence, 0]) + staged.ends)
            return
        self._disk.extend(index, (change.base + _EMPTY_INDEX) * _NUMBER, staged.ends)
        if change.fence is not None:
            self._disk.overwrite(index, _packed([fence]))

    def problems(self, log: str) -> list[str]:
        """What is wrong with the files of a log."""
        try:
            self.read(log, 0, None)
        except (StoreUnavailable, ValueError) as error:
            return [str(error)]
        return []

    def _numbers(self, log: str, start: int, end: int) -> "array[int]":
        index = self.files(log)[1]
        if file_disk.size(index) is None:
            return self._index_of_lines(log)[start:end]
        numbers = array("Q", file_disk.read_range(index, start * _NUMBER, end * _NUMBER))
        if sys.byteorder == "big":
            numbers.byteswap()
        return numbers

    def _index_of_lines(self, log: str) -> "array[int]":
        """The index that a log has lost, or never had because it came from elsewhere."""
        lines = (file_disk.read(self.files(log)[0]) or b"").split(b"\n")[:-1]
        return array("Q", [0, 0, *accumulate(len(line) + 1 for line in lines)])

    def _restore_index(self, log: str, temporary: str) -> None:
        index = self.files(log)[1]
        if file_disk.size(index) is None:
            self._disk.create(temporary, _packed(self._index_of_lines(log)))
            self._disk.rename(temporary, index)


def _packed(numbers: "list[int] | array[int]") -> bytes:
    packed = array("Q", numbers)
    if sys.byteorder == "big":
        packed.byteswap()
    return packed.tobytes()


def _line(entry: bytes) -> bytes:
    if not entry or b"\n" in entry or entry.startswith(_ENCODED):
        entry = _ENCODED + b64encode(entry)
    return entry + b"\n"


def _entry(line: bytes) -> bytes:
    return b64decode(line[1:], validate=True) if line.startswith(_ENCODED) else line
