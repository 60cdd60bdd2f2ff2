"""Sorted listings of the store's directories, kept in memory while nobody else has written to the store."""

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from turnkeeper.store.engines.file_names import JSON, RAW, decoded, relative

NAMES_MAX = 200_000
"""More names than this are not kept; a directory is then listed again when it is needed."""


class Listings:
    """What lies in each directory: a document by its segment, a directory by its segment and ``/``.

    Sorted as text, these names are in the order of the keys below them, because code points are ordered like UTF-8.
    """

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._kept: dict[str, list[str]] = {}
        self._names = 0
        self._version: int | None = None

    def expect(self, version: int) -> None:
        """Forget everything unless this is the version that was listed."""
        if version != self._version:
            self._kept, self._names, self._version = {}, 0, version

    def follow(self, before: int, after: int) -> None:
        """Our own write made this version of that one, and ``note`` was told what it did."""
        if self._version == before:
            self._version = after

    def note(self, place: str, *, is_there: bool) -> None:
        """A document appeared or went."""
        parent, _, name = place.rpartition("/")
        names = self._kept.get(parent)
        if names is None:
            return
        at = bisect_left(names, name)
        is_listed = at < len(names) and names[at] == name
        if is_there and not is_listed:
            names.insert(at, name)
        elif is_listed and not is_there:
            del names[at]

    def forget(self, place: str) -> None:
        """A directory appeared or went, so those above it are listed again, and it too."""
        while True:
            self._names -= len(self._kept.pop(place, ()))
            if not place:
                return
            place = place.rpartition("/")[0]

    def walk(self, parent: str, after: str | None, before: str | None, *, reverse: bool) -> Iterator[str]:
        """The documents strictly below a directory and strictly between two paths, in order."""
        prefix = parent + "/" if parent else ""
        names = self._names_in(parent)
        start, end = 0, len(names)
        if after is not None:
            start = bisect_right(names, after, key=prefix.__add__)
            if start and names[start - 1].endswith("/") and after.startswith(prefix + names[start - 1]):
                start -= 1
        if before is not None:
            end = bisect_left(names, before, key=prefix.__add__)
        for at in reversed(range(start, end)) if reverse else range(start, end):
            name = names[at]
            if name.endswith("/"):
                yield from self.walk(prefix + name[:-1], after, before, reverse=reverse)
            else:
                yield prefix + name

    def _names_in(self, parent: str) -> list[str]:
        names = self._kept.get(parent)
        if names is None:
            names = sorted({name for _, name in entries(self._directory, parent) if name is not None})
            if self._names + len(names) > NAMES_MAX:
                self._kept, self._names = {}, 0
            self._kept[parent] = names
            self._names += len(names)
        return names


def entries(directory: str, parent: str) -> Iterator[tuple[str, str | None]]:
    """Each thing in a directory, and the name under which it is listed."""
    folder = f"{directory}/{relative(parent)}" if parent else directory
    try:
        with os.scandir(folder) as found:
            things = [(thing.name, thing.is_dir(follow_symlinks=False)) for thing in found]
    except (FileNotFoundError, NotADirectoryError):
        return
    for name, is_directory in things:
        if is_directory:
            segment = decoded(name, top=not parent)
            yield name, None if segment is None else segment + "/"
        elif name.endswith((JSON, RAW)):
            yield name, decoded(name.rpartition(".")[0], top=not parent)
        else:
            yield name, None
