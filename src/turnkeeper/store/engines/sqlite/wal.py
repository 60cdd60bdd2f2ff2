"""Detects commits in a damaged write-ahead log that SQLite discards, and copies the log.

When a store is opened after a crash, SQLite reads the write-ahead log up to the first frame with a wrong checksum, and
the next write overwrites the rest. If later frames of the same generation end a commit, that commit is lost. The log is
copied before it is overwritten, and ``doctor`` reports the copy.

Not detected: damage in the last frame, which looks like a process that ended while it wrote; and damage in pages that
were copied into the file. A power cut may write later frames and not an earlier one: then a commit is reported that was
not acknowledged.
"""

import glob
import logging
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import apsw

HEADER_BYTES: Final = 32
FRAME_HEADER_BYTES: Final = 24
_CHECKED_WORDS: Final = {
    b"\x37\x7f\x06\x82": struct.Struct("<II"),
    b"\x37\x7f\x06\x83": struct.Struct(">II"),
}
"""The byte order of the checksums, by the magic number of the log."""
_SUMS: Final = struct.Struct(">II")
_ENDING: Final = ".damaged"

log = logging.getLogger(__name__)


class _Lost(NamedTuple):
    """The number of lost commits of a generation."""

    salt: bytes
    commits: int


class _Log:
    """The file of a write-ahead log."""

    def __init__(self, file: int, page_bytes: int) -> None:
        self._file, self._frame_bytes = file, FRAME_HEADER_BYTES + page_bytes
        self._header = os.pread(file, HEADER_BYTES, 0)
        self._words = _CHECKED_WORDS.get(self._header[:4])
        self._is_sound = self._words is not None and self._checksum(self._header[:24]) == self._header[24:]
        # With a damaged header SQLite ignores the log; then the first frame has the generation.
        self.salt = self._header[16:24] if self._is_sound else self._frame(1)[8:16]

    def commits(self) -> list[int]:
        """The numbers of the frames of this generation that end a commit."""
        found: list[int] = []
        number = 1
        while len(frame := self._frame(number)) == FRAME_HEADER_BYTES:
            if frame[8:16] == self.salt and any(frame[:4]) and any(frame[4:8]):
                found.append(number)
            number += 1
        return found

    def first_bad(self, known: int) -> int:
        """The number of the first frame with a wrong checksum; the first ``known`` frames are right."""
        if not self._is_sound:
            return 0
        number, checksum = known, self._frame(known)[16:24] if known else self._header[24:]
        while True:
            number += 1
            whole = os.pread(self._file, self._frame_bytes, self._place(number))
            if len(whole) < self._frame_bytes or whole[8:16] != self.salt:
                return number
            checksum = self._checksum(whole[:8] + whole[FRAME_HEADER_BYTES:], checksum)
            if checksum != whole[16:24]:
                return number

    def _frame(self, number: int) -> bytes:
        return os.pread(self._file, FRAME_HEADER_BYTES, self._place(number))

    def _place(self, number: int) -> int:
        return HEADER_BYTES + (number - 1) * self._frame_bytes

    def _checksum(self, checked: bytes, before: bytes = bytes(8)) -> bytes:
        assert self._words is not None, "only a log with a known byte order is checked"
        first, second = _SUMS.unpack(before)
        for one, two in self._words.iter_unpack(checked):
            first = (first + one + second) & 0xFFFFFFFF
            second = (second + two + first) & 0xFFFFFFFF
        return _SUMS.pack(first, second)


def keep_lost(connection: apsw.Connection, path: Path) -> None:
    """Copy the write-ahead log of a store that was just opened, if SQLite found fewer commits than it has."""
    try:
        with open(companion(path), "rb") as file:
            if (lost := _lost(connection, file.fileno())) is not None:
                _copy(file.fileno(), path, lost)
    except FileNotFoundError:
        return
    except OSError as error:
        log.warning("the write-ahead log of %s is damaged and cannot be copied: %s", path, error)


def kept(path: Path) -> Iterator[str]:
    """A sentence for ``doctor`` about each damaged log that was copied."""
    for copy in sorted(companion(path).parent.glob(f"{glob.escape(companion(path).name)}.*{_ENDING}")):
        yield (
            f"the write-ahead log was damaged, and commits behind the damage were lost when the store was opened; "
            f"{str(copy)!r} is a copy of it: remove it once you know what is missing"
        )


def companion(path: Path, ending: str = "-wal") -> Path:
    """A companion file of a store, such as its write-ahead log. It is in another directory if the store is a link."""
    return Path(os.path.realpath(path) + ending)


def _lost(connection: apsw.Connection, file: int) -> _Lost | None:
    page_bytes = int(connection.pragma("page_size"))
    found = _Log(file, page_bytes)
    commits = found.commits()
    if not commits or commits[-1] <= _frames_known(connection):
        return None
    # Another process may have written a commit that is not published yet. It holds the lock until then.
    connection.execute("BEGIN IMMEDIATE; ROLLBACK")
    # The header is read anew: the log may have been empty at the first read.
    bad = _Log(file, page_bytes).first_bad(_frames_known(connection))
    # A bad frame at the end was being written when its process ended: its commit was not acknowledged.
    lost = sum(number > bad for number in commits)
    # A log with a new salt was restarted after a complete checkpoint, so nothing is lost.
    return _Lost(found.salt, lost) if lost and _Log(file, page_bytes).salt == found.salt else None


def _frames_known(connection: apsw.Connection) -> int:
    return connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)[0]


def _copy(file: int, path: Path, lost: _Lost) -> None:
    """Copy the log once: the name has the generation, so another process does not copy it again."""
    copy = companion(path).with_name(f"{companion(path).name}.{lost.salt.hex()}{_ENDING}")
    log.warning(
        "the write-ahead log of %s is damaged: %d commits behind the damage are lost; a copy of it is %s",
        path,
        lost.commits,
        copy,
    )
    with suppress(FileExistsError):
        target = os.open(copy, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with open(target, "wb") as written:
            place = 0
            while piece := os.pread(file, 1 << 20, place):
                written.write(piece)
                place += len(piece)
            written.flush()
            os.fsync(written.fileno())
