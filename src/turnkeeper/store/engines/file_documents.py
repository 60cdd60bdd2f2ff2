"""Documents on disk: formatted JSON where the seeds draw it, and any other body as it is under another suffix."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import msgspec

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines import file_disk
from turnkeeper.store.engines.file_disk import Disk
from turnkeeper.store.engines.file_listing import Listings
from turnkeeper.store.engines.file_names import JSON, RAW, relative


@dataclass(frozen=True)
class StagedDocument:
    """A body that is written and not yet in its place; None for a document that is going to be removed."""

    place: str
    staged: str | None
    suffix: str
    is_in_new_directory: bool


class Documents:
    """The documents of one store. Who may call what, and when, is the tree's business."""

    def __init__(self, directory: str, disk: Disk) -> None:
        self.directory = directory
        self.listings = Listings(directory)
        self._disk = disk

    def read(self, place: str) -> bytes | None:
        """The body under a path. Raises StoreUnavailable if somebody made its file unreadable."""
        file = self._file(place)
        formatted = file_disk.read(file + JSON)
        if formatted is None:
            return file_disk.read(file + RAW)
        try:
            return msgspec.json.format(formatted, indent=-1)
        except (msgspec.DecodeError, RecursionError) as error:
            raise StoreUnavailable(f"{file + JSON} is damaged: {error}") from error

    def stage(self, documents: Mapping[str, bytes | None], staging: str) -> list[StagedDocument]:
        """Write bodies where no reader looks, and make the directories they will be put into."""
        staged: list[StagedDocument] = []
        for number, (place, body) in enumerate(documents.items()):
            if body is None:
                staged.append(StagedDocument(place, None, "", False))
                continue
            suffix, content = _encoded(body)
            temporary = f"{staging}/{number}"
            self._disk.create(temporary, content)
            folder = os.path.dirname(self._file(place))
            is_new = not os.path.isdir(folder)
            if is_new:
                self._disk.make_directory(folder)
            staged.append(StagedDocument(place, temporary, suffix, is_new))
        return staged

    def place(self, staged: list[StagedDocument]) -> None:
        """Put staged bodies in their places, then take away what is removed and the directories this empties."""
        for document in staged:
            if document.staged is not None:
                file = self._file(document.place)
                self._disk.rename(document.staged, file + document.suffix)
                self._disk.unlink(file + (RAW if document.suffix == JSON else JSON))
                self.listings.note(document.place, is_there=True)
                if document.is_in_new_directory:
                    self.listings.forget(document.place.rpartition("/")[0])
                crash_point("files.document-placed")
        for document in staged:
            if document.staged is None:
                self._remove(document.place)
                crash_point("files.document-placed")

    def files(self, place: str) -> Iterator[str]:
        """What must be flushed for a change of this document to last: its file, and every directory above."""
        file = self._file(place)
        yield from (file + JSON, file + RAW)
        while file != self.directory:
            file = os.path.dirname(file)
            yield file

    def _file(self, place: str) -> str:
        return f"{self.directory}/{relative(place)}"

    def _remove(self, place: str) -> None:
        file = self._file(place)
        for suffix in (JSON, RAW):
            self._disk.unlink(file + suffix)
        self.listings.note(place, is_there=False)
        parent = place.rpartition("/")[0]
        while parent and self._disk.remove_directory(self._file(parent)):
            self.listings.forget(parent)
            parent = parent.rpartition("/")[0]


def _encoded(body: bytes) -> tuple[str, bytes]:
    """The suffix and content of the file for a body: JSON only if it comes back byte for byte."""
    try:
        formatted = msgspec.json.format(body, indent=2)
        if msgspec.json.format(formatted, indent=-1) == body:
            body.decode()
            return JSON, formatted
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    return RAW, body
