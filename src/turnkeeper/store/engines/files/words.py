"""The text index: one file with a line of words for each text, the newest last; a search scans it from the end.

A line begins with its line break, so an incomplete line ends where the next one begins. Of several lines for one path
the last counts. The file is rewritten without outdated lines once it has doubled.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from turnkeeper.store.engines.files.disk import Disk, read, read_range, size_of

SLACK_BYTES = 1 << 20
"""A file is not rewritten before it has doubled and grown by this much."""

_GONE, _GONE_BELOW = b"-", b"*"


class FileWords:
    """The text index of one store."""

    def __init__(self, file: str, disk: Disk) -> None:
        self.file, self._disk = file, disk

    def add(self, removed: Sequence[str], texts: Sequence[tuple[str, str | None]]) -> None:
        """Remove the texts at and below paths, and add others (None removes). Idempotent."""
        lines = [_line(place, _GONE_BELOW) for place in removed]
        lines += [_line(place, _GONE if words is None else f" {words} ".encode()) for place, words in texts]
        if lines:
            self._disk.write(self.file, b"".join(lines), size_of(self.file) or 0)

    def search(self, wanted: Sequence[str], below: str, limit: int) -> list[str]:
        """Paths below a prefix whose text has, for each wanted word, a word with this prefix; newest first."""
        if not wanted or limit < 1:
            return []
        starts = [b" " + word.encode() for word in wanted]
        matches = (path for path, words in self._live(below) if all(start in words for start in starts))
        return list(islice(filter(None, map(_place, matches)), limit))

    def is_due(self) -> bool:
        """Whether the file has doubled since it was rewritten. A rewritten file begins with its size."""
        size = size_of(self.file) or 0
        first = read_range(self.file, 0, 32).partition(b"\n")[0]
        return size > 2 * (int(first) if first.isdigit() else 0) + SLACK_BYTES

    def rewritten(self) -> bytes:
        """The content of the file without outdated lines."""
        body = b"".join(b"\n" + path + b"\t" + words for path, words in reversed([*self._live()]))
        return b"%d" % len(body) + body

    def _live(self, below: str = "") -> Iterator[tuple[bytes, bytes]]:
        """The path, as JSON, and the words of each current line below a prefix, newest first."""
        decided: set[bytes] = set()
        removed: tuple[bytes, ...] = ()
        prefix = msgspec.json.encode(below)[:-1]
        for line in reversed((read(self.file) or b"").split(b"\n")):
            # First, because the doctor searches once for each text, and most lines are those of other sessions.
            if not line.startswith(prefix) and not line.endswith(_GONE_BELOW):
                continue
            path, _, words = line.partition(b"\t")
            if not words or path in decided or path.startswith(removed):
                continue
            decided.add(path)
            if words == _GONE_BELOW:
                # JSON escapes each character separately, so a common prefix stays one when it is encoded.
                removed += (path[:-1] + b"/" if path != b'""' else b'"',)
            elif words != _GONE:
                yield path, words


def _line(place: str, words: bytes) -> bytes:
    return b"\n" + msgspec.json.encode(place) + b"\t" + words


def _place(path: bytes) -> str | None:
    """The path of a line; None for a damaged line."""
    try:
        return msgspec.json.decode(path, type=str)
    except msgspec.DecodeError:
        return None
