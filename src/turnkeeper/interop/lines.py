"""Read files with one JSON object on each line, and account for every line."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from turnkeeper.core.limits import IMPORTED_LINE_BYTES_MAX
from turnkeeper.interop.raw import RawObject, Unreadable, parse
from turnkeeper.interop.report import Finding, LineCounts
from turnkeeper.model.value import Json

NUMBERS_SHOWN: Final = 5
"""Line numbers that a finding names."""
CHUNK: Final = 1024 * 1024

_REPORTED, _FOREIGN, _UNDERSTOOD = 1, 2, 3
NO_OBJECT: Final = "is not a JSON object"
_UNUSED = "in a file without a message"


class Account:
    """The outcome of each line of a file: understood, kept unchanged, or reported. A line without one is reported."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._fates: dict[int, int] = {}
        self._problems: dict[tuple[str, bool], list[int]] = {}

    def read(self, number: int) -> None:
        """A line was read."""
        self._fates.setdefault(number, 0)

    def understood(self, number: int) -> None:
        """The line became a message, a part or a field."""
        self._fates[number] = _UNDERSTOOD

    def foreign(self, number: int) -> None:
        """The line is kept unchanged. A line of which we understand a part stays understood."""
        self._fates[number] = max(self._fates.get(number, 0), _FOREIGN)

    def report(self, number: int, reason: str, *, is_expected: bool = False) -> None:
        """The line is not imported, or not as it is. ``is_expected``: it is no sign of damage."""
        self._fates[number] = max(self._fates.get(number, 0), _REPORTED)
        self._problems.setdefault((reason, is_expected), []).append(number)

    def nothing(self) -> None:
        """Count no line as kept: the file has no message."""
        self._fates = {number: 0 if fate != _REPORTED else fate for number, fate in self._fates.items()}

    def counts(self) -> LineCounts:
        """The counts of all lines so far."""
        fates = list(self._fates.values())
        understood, foreign = fates.count(_UNDERSTOOD), fates.count(_FOREIGN)
        return LineCounts(
            read=len(fates), understood=understood, foreign=foreign, reported=len(fates) - understood - foreign
        )

    def findings(self) -> tuple[list[Finding], list[Finding]]:
        """The skipped and the unreadable lines: one finding for each reason."""
        problems = dict(self._problems)
        if unused := [number for number, fate in self._fates.items() if not fate]:
            problems[_UNUSED, True] = unused
        skipped: list[Finding] = []
        unreadable: list[Finding] = []
        for (reason, is_expected), numbers in problems.items():
            found = Finding(reason=f"{_numbered(numbers)} {reason}", place=self.place)
            (skipped if is_expected else unreadable).append(found)
        return skipped, unreadable


def read_lines(file: Path, account: Account) -> Iterator[tuple[int, RawObject]]:
    """The objects of a file with their line numbers. Other lines are reported. Raises OSError and Unreadable."""
    if file.exists() and not file.is_file():
        raise Unreadable("is not an ordinary file")
    with file.open("rb") as opened:
        for number, line in enumerate(_bounded(opened), 1):
            if line is not None and not line.strip():
                continue
            account.read(number)
            if line is None:
                account.report(number, f"is longer than {IMPORTED_LINE_BYTES_MAX:,} bytes")
            elif (found := _object(line, number, account)) is not None:
                yield number, found


def items_of(found: Sequence[Json], account: Account) -> Iterator[tuple[int, RawObject]]:
    """The objects of a list, which an older layout has in place of lines, with their numbers. Others are reported."""
    for number, item in enumerate(found, 1):
        account.read(number)
        if isinstance(item, dict):
            yield number, item
        else:
            account.report(number, NO_OBJECT)


def files_below(place: Path, problems: list[Finding]) -> Iterator[Path]:
    """Every file below a directory in order of its name. Links are followed, and each directory is entered once."""
    seen: set[tuple[int, int]] = set()
    pending = [place]
    while pending:
        folder = pending.pop()
        try:
            found = folder.stat()
            if (found.st_dev, found.st_ino) in seen:
                continue
            seen.add((found.st_dev, found.st_ino))
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(Finding(reason=f"cannot be read: {error.strerror}", place=str(folder)))
            continue
        folders = []
        for entry in entries:
            try:
                is_folder, is_file = entry.is_dir(), entry.is_file()
            except OSError as error:
                problems.append(Finding(reason=f"cannot be read: {error.strerror}", place=entry.path))
                continue
            if is_folder:
                folders.append(Path(entry.path))
            elif is_file:
                yield Path(entry.path)
        pending.extend(reversed(folders))


def _bounded(opened: BinaryIO) -> Iterator[bytes | None]:
    """The lines of a file; None for one that is too long, which is not kept in memory."""
    while line := opened.readline(IMPORTED_LINE_BYTES_MAX + 1):
        if len(line) <= IMPORTED_LINE_BYTES_MAX:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = opened.readline(CHUNK)
        yield None


def _object(line: bytes, number: int, account: Account) -> RawObject | None:
    try:
        found = parse(line)
    except Unreadable as error:
        found = _repaired(line, number, account)
        if found is None:
            if not line.endswith(b"\n"):
                account.report(number, "is incomplete: its program may still be writing it", is_expected=True)
            else:
                account.report(number, str(error).partition(":")[0])
            return None
    if isinstance(found, dict):
        return found
    account.report(number, NO_OBJECT)
    return None


def _repaired(line: bytes, number: int, account: Account) -> RawObject | None:
    """The object of a line whose only fault are bytes that are not UTF-8."""
    try:
        line.decode()
    except UnicodeDecodeError:
        try:
            found = parse(line.decode("utf-8", "replace"))
        except Unreadable:
            return None
        if isinstance(found, dict):
            account.report(number, "has bytes that are not UTF-8; they became U+FFFD", is_expected=True)
            return found
    return None


def _numbered(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:NUMBERS_SHOWN]))
    more = f" and {len(numbers) - NUMBERS_SHOWN:,} more" if len(numbers) > NUMBERS_SHOWN else ""
    return f"line{'s' if len(numbers) > 1 else ''} {shown}{more}:"
