"""Documents on disk: formatted JSON files, or raw files for bodies that JSON formatting would change."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreDamaged
from turnkeeper.store.engines.files.disk import Disk, NotAFile, read
from turnkeeper.store.engines.files.names import JSON, RAW, decoded, relative


@dataclass(frozen=True)
class Staged:
    """A document in the staging directory; without a file it is to be removed."""

    place: str
    file: str | None
    suffix: str


class FileDocuments:
    """The documents of one store. ``Tree`` does the locking."""

    def __init__(self, directory: str, staging: str, disk: Disk) -> None:
        self._directory, self._staging, self._disk = directory, staging, disk

    def read(self, place: str) -> bytes | None:
        """The body under a path; empty bytes, which no decoder accepts, if its file is damaged."""
        try:
            return self.sound(place)
        except StoreDamaged:
            return b""

    def sound(self, place: str) -> bytes | None:
        """The body under a path. Raises StoreDamaged if its file cannot be read, or is not JSON."""
        file = self._file(place)
        try:
            formatted = read(file + JSON)
            if formatted is None:
                return read(file + RAW)
            return msgspec.json.format(formatted, indent=-1)
        except NotAFile as error:
            raise StoreDamaged(f"{error.filename} is damaged: it is not an ordinary file") from error
        except (msgspec.DecodeError, RecursionError) as error:
            raise StoreDamaged(f"{file + JSON} is damaged: {error}") from error

    def stage(self, documents: Iterable[tuple[str, bytes | None]]) -> list[Staged]:
        """Write bodies to the staging directory, and make their target directories."""
        staged: list[Staged] = []
        for number, (place, body) in enumerate(documents):
            if body is None:
                staged.append(Staged(place, None, ""))
                continue
            suffix, content = _encoded(body)
            file = f"{self._staging}/{number}"
            self._disk.write(file, content)
            self._disk.make_directory(os.path.dirname(self._file(place)))
            staged.append(Staged(place, file, suffix))
        return staged

    def place(self, staged: list[Staged]) -> None:
        """Rename staged documents into place, then remove documents and empty directories."""
        for document in sorted(staged, key=lambda document: document.file is None):
            file = self._file(document.place)
            if document.file is not None:
                self._disk.rename(document.file, file + document.suffix)
            for suffix in (JSON, RAW):
                if suffix != document.suffix:
                    self._disk.unlink(file + suffix)
            if document.file is None:
                self._remove_empty(os.path.dirname(file))
            crash_point("files.document-placed")

    def files(self, place: str) -> Iterator[str]:
        """The files to sync after a change of this document: its file, and every directory above."""
        file = self._file(place)
        yield from (file + JSON, file + RAW)
        while file != self._directory:
            file = os.path.dirname(file)
            yield file

    def _file(self, place: str) -> str:
        return f"{self._directory}/{relative(place)}"

    def _remove_empty(self, folder: str) -> None:
        while folder != self._directory and self._disk.remove_directory(folder):
            folder = os.path.dirname(folder)


class Listings:
    """Caches the names in the directories of a store at one version."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._names: dict[str, list[str]] = {}

    def walk(
        self, parent: str, after: str | None = None, before: str | None = None, *, reverse: bool = False
    ) -> Iterator[str]:
        """The paths of the documents strictly below a directory and strictly between two paths, in order."""
        prefix = parent + "/" if parent else ""
        names = self._names_in(parent)
        for name in reversed(names) if reverse else names:
            place = prefix + name
            is_begun = after is None or place > after
            is_over = before is not None and place >= before
            if name.endswith("/"):
                if not is_over and (is_begun or (after is not None and after.startswith(place))):
                    yield from self.walk(place[:-1], after, before, reverse=reverse)
            elif is_begun and not is_over:
                yield place

    def _names_in(self, parent: str) -> list[str]:
        """The sorted names of documents, and of directories with ``/``, which gives the order of keys."""
        names = self._names.get(parent)
        if names is None:
            names = sorted({name for _, name in entries(self._directory, parent) if name is not None})
            self._names[parent] = names
        return names


def entries(directory: str, parent: str) -> Iterator[tuple[str, str | None]]:
    """Each file and directory in the directory of a path, with its key segment; None if the name is no key."""
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


def _encoded(body: bytes) -> tuple[str, bytes]:
    """The suffix and content of the file for a body: JSON only if it can be restored byte for byte."""
    try:
        formatted = msgspec.json.format(body, indent=2)
        if msgspec.json.format(formatted, indent=-1) == body:
            body.decode()
            return JSON, formatted
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    return RAW, body
