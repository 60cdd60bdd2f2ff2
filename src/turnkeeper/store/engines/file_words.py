"""The text index of the files engine: a line with the words of each text, the newest last; searched from the end.

A search finds the longest word of the query with one pass of the C library over the file, and looks closer only at the
lines that hold it. That is a scan, of words only: fast, with nothing to keep in memory and nothing but an append to
write. Lines that are out of date stay until they outweigh the others, then the file is written anew.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from turnkeeper.store.engines import file_disk
from turnkeeper.store.engines.file_disk import Disk

SLACK_BYTES = 1 << 20
"""A file is not written anew before it has grown by this much, or doubled."""

Line = tuple[str, str | None, bool]
"""Path, words (None removes), and whether everything below the path is removed too."""

_GONE, _GONE_BELOW = b"-", b"*"


class Words:
    """The text index in one file. A line begins with its line break, so a torn one ends where the next begins."""

    def __init__(self, file: str, disk: Disk) -> None:
        self.file = file
        self._disk = disk

    def add(self, lines: Sequence[Line]) -> None:
        """Write lines. Doing so twice changes nothing: for each path the last line counts."""
        size = file_disk.size(self.file) or 0
        self._disk.extend(self.file, size, b"".join(_encoded(line) for line in lines))

    def search(self, wanted: Sequence[str], below: str, limit: int) -> list[str]:
        """Paths that begin with ``below`` and whose text has a word beginning with each wanted one, newest first."""
        if not wanted or limit < 1 or not file_disk.size(self.file):
            return []
        data = file_disk.read(self.file) or b""
        matches = _matches(data, [b" " + word.encode() for word in wanted], below)
        return list(islice(matches, limit))

    def is_due(self) -> bool:
        """Whether the file has grown so much that it should be written anew."""
        size = file_disk.size(self.file) or 0
        return size > SLACK_BYTES and size > 2 * self._size_when_new() + SLACK_BYTES

    def rewritten(self) -> bytes:
        """The file without the lines that no longer count."""
        live: dict[str, bytes] = {}
        for line in (file_disk.read(self.file) or b"").split(b"\n"):
            path, _, words = line.partition(b"\t")
            if not words:
                continue
            place = msgspec.json.decode(path, type=str)
            live.pop(place, None)
            if words == _GONE_BELOW:
                for held in [held for held in live if not place or held.startswith(place + "/")]:
                    del live[held]
            elif words != _GONE:
                live[place] = line
        body = b"".join(b"\n" + line for line in live.values())
        return b"%d" % len(body) + body

    def _size_when_new(self) -> int:
        """A file that was written anew begins with its size."""
        first = file_disk.read_range(self.file, 0, 32).partition(b"\n")[0]
        return int(first) if first.isdigit() else 0


def _encoded(line: Line) -> bytes:
    place, words, is_below = line
    kept = _GONE_BELOW if is_below else _GONE if words is None else f" {words} ".encode()
    return b"\n" + msgspec.json.encode(place) + b"\t" + kept


def _matches(data: bytes, wanted: list[bytes], below: str) -> Iterator[str]:
    """Paths of the lines that count and hold every word, from the end of the file."""
    rarest = max(wanted, key=len)
    removals = list(_removals(data))
    decided: set[bytes] = set()
    position = data.rfind(rarest)
    while position >= 0:
        start = data.rfind(b"\n", 0, position) + 1
        end = data.find(b"\n", position)
        path, _, words = data[start : end if end >= 0 else len(data)].partition(b"\t")
        if words and path not in decided and all(word in words for word in wanted):
            decided.add(path)
            place = msgspec.json.decode(path, type=str)
            # Later lines of this path that match were met before this one, so any later line means it has changed.
            is_newest = place.startswith(below) and data.find(b"\n" + path + b"\t", start) < 0
            if is_newest and not any(at > start and _is_at_or_below(place, gone) for at, gone in removals):
                yield place
        position = data.rfind(rarest, 0, start)


def _removals(data: bytes) -> Iterator[tuple[int, str]]:
    """Where everything below a path was removed, and which path."""
    mark = b"\t" + _GONE_BELOW
    position = data.find(mark)
    while position >= 0:
        start = data.rfind(b"\n", 0, position) + 1
        yield start, msgspec.json.decode(data[start:position], type=str)
        position = data.find(mark, position + 1)


def _is_at_or_below(place: str, prefix: str) -> bool:
    return not prefix or place == prefix or place.startswith(prefix + "/")
