"""Restore: puts the files of a project back, each atomically, and only if it is still what was planned.

Files go in batches: the new ones are written and made durable together, before the first one takes its place. Doing it
twice is the same as doing it once, so a restore that was cut off is simply done again.
"""

import os
import stat
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import msgspec
from anyio import to_thread

from turnkeeper.model.refusal import Conflict, Invalid
from turnkeeper.model.restore import OTHER_MODE, FileRestore, FileState
from turnkeeper.workspace.exchange import Exchange, exchange
from turnkeeper.workspace.file_states import EXECUTABLE, LINK, PLAIN, blob_name
from turnkeeper.workspace.files import CheckedPath, holding, is_moved
from turnkeeper.workspace.restored_file import RestoredFile, open_folder, open_root

READ_AT_ONCE: Final = 64
"""Maximum number of file contents in memory."""

Contents: TypeAlias = Callable[[Sequence[str]], Awaitable[Mapping[str, bytes]]]
"""Reads blobs. Those that are no longer stored are left out."""

Progress: TypeAlias = Callable[[int, int], None]
"""Receives the number of finished files and the number of all files."""

_SYNCS_AT_ONCE: Final = 16
"""Number of concurrent ``fsync`` calls: a file system writes its journal once for all of them."""


def no_progress(_done: int, _all: int) -> None:
    """Ignore the progress."""


class DiskFile(NamedTuple):
    """The content of a file, or the target of a link. ``link`` is the folder of its path that has become a link."""

    mode: str
    content: bytes
    link: str | None = None


def read(root: Path, names: Iterable[str]) -> dict[str, DiskFile]:
    """The files of these names, as ``OTHER_MODE`` if they may not be read. Those that do not exist are left out."""
    with _Root(root) as top:
        found = {name: _look(root, top.descriptor, name) for name in names}
    return {name: one for name, one in found.items() if one is not None}


class Restorer(msgspec.Struct, frozen=True):
    """Puts files below a root back."""

    root: Path
    contents: Contents
    keep: Path | None = None
    """The folder in which the session works: it is kept even if it becomes empty."""
    crash: Callable[[str], None] = lambda _: None
    """Called around each step, for tests that kill the process there."""
    permissions: Mapping[str, int] = {}
    """The permission bits of files that are created again; other files get the usual ones."""
    progress: Progress = no_progress
    exchange: Exchange = exchange

    async def restore(self, files: Sequence[FileRestore]) -> dict[str, str]:
        """Bring files to their new states; returns the names of unchanged files with the reasons.

        A file that is in its new state already is done. Folders that become empty are removed. Raises Conflict if the
        root is not there.
        """
        wanted = sorted((one for one in files if one.writes), key=lambda one: one.file)
        left: dict[str, str] = {}
        coming = [one for one in wanted if one.to is not None]
        done = 0
        with _Root(self.root) as top:
            links = {one.file: one.to for one in coming if one.to is not None and one.to.mode == LINK}
            # An interrupted restore has replaced a folder by a link: the files in the folder are gone.
            wanted = [one for one in wanted if not _is_behind(self.root, top.descriptor, one, links)]
            going = [one for one in reversed(wanted) if one.to is None]
            # Files are removed before others are created, and inner ones first: a file may replace a folder.
            for some in (*_batches(going), None, *_batches(coming)):
                if some is None:
                    gone = [one.file for one in going if one.file not in left]
                    await to_thread.run_sync(_remove_empty_folders, self.root, top.descriptor, gone, self.keep)
                    continue
                left |= await self._batch(some, top.descriptor)
                done += len(some)
                self.progress(done, len(wanted))
            await to_thread.run_sync(_sync_folders, top.descriptor, [one.file for one in wanted])
        return left

    async def _batch(self, files: Sequence[FileRestore], root: int) -> dict[str, str]:
        blobs = sorted({one.to.blob for one in files if one.to is not None})
        stored = await self.contents(blobs) if blobs else {}
        left: dict[str, str] = {}
        paths: list[CheckedPath] = []
        batch: list[RestoredFile] = []
        for one in files:
            try:
                paths.append(CheckedPath.below(self.root, one.file))
            except Invalid as error:
                left[one.file] = str(error)
                continue
            content = stored.get(one.to.blob) if one.to is not None else None
            permissions = self.permissions.get(one.file) if one.now is None else None
            batch.append(RestoredFile(one, content, permissions, self.crash, self.exchange))
        async with holding(*paths):
            await to_thread.run_sync(_put, batch, root)
        return left | {each.one.file: each.reason for each in batch if each.reason is not None}


class _Root:
    """The open root directory; Conflict if it does not exist."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.descriptor = -1

    def __enter__(self) -> "_Root":
        if is_moved(self._root):
            raise Conflict(
                f"the files of {str(self._root)!r} are not touched, because a part of that path has become a link; put "
                "the directory back, or let the session go on elsewhere with `turnkeeper session move`"
            )
        try:
            self.descriptor = open_root(str(self._root))
        except OSError as error:
            raise Conflict(
                f"the files of {str(self._root)!r} cannot be put back, because it is not there ({error.strerror}); "
                "bring the directory back and say it again"
            ) from error
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)


def _is_behind(root: Path, top: int, one: FileRestore, links: Mapping[str, FileState]) -> bool:
    """Whether the folder of a file to remove has already been replaced by one of these links."""
    for folder in _folders([one.file]) & links.keys() if one.to is None else ():
        found, link = _look(root, top, folder), links[folder]
        if found is not None and found.mode == LINK and blob_name(found.content, len(link.blob)) == link.blob:
            return True
    return False


def _batches(files: Sequence[FileRestore]) -> Iterable[Sequence[FileRestore]]:
    return (files[begin : begin + READ_AT_ONCE] for begin in range(0, len(files), READ_AT_ONCE))


def _put(batch: Sequence[RestoredFile], root: int) -> None:
    """Bring the files of a batch to their new states. ``reason`` of a file is set if it was not changed."""
    try:
        for each in batch:
            _step(each, lambda one: one.prepare(root))
        _sync([each.new for each in batch if each.new is not None])
        for each in batch:
            each.close_new()
            _step(each, RestoredFile.place)
        for each in batch:
            _step(each, RestoredFile.settle, always=True)
    finally:
        for each in batch:
            each.close()


def _step(each: RestoredFile, do: Callable[[RestoredFile], None], *, always: bool = False) -> None:
    if each.is_over and not always:
        return
    try:
        do(each)
    except (OSError, Invalid) as error:
        each.fail(error)


def _sync(descriptors: Sequence[int]) -> None:
    """Make files durable: otherwise a power cut could leave new names with empty files."""
    if len(descriptors) < 2:
        for descriptor in descriptors:
            os.fsync(descriptor)
        return
    with ThreadPoolExecutor(min(_SYNCS_AT_ONCE, len(descriptors))) as pool:
        list(pool.map(os.fsync, descriptors))


def _look(root: Path, top: int, name: str) -> DiskFile | None:
    CheckedPath.below(root, name)
    folder = os.path.dirname(name)
    try:
        parent = open_folder(top, folder)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        return DiskFile(OTHER_MODE, b"")
    except Invalid:  # A folder on the way is a link now.
        return DiskFile(OTHER_MODE, b"", _first_link(root, folder))
    try:
        return _read(os.path.basename(name), parent)
    except PermissionError:
        return DiskFile(OTHER_MODE, b"")
    finally:
        os.close(parent)


def _first_link(root: Path, folder: str) -> str | None:
    parts = folder.split("/")
    ways = ("/".join(parts[: count + 1]) for count in range(len(parts)))
    return next((way for way in ways if (root / way).is_symlink()), None)


def _read(name: str, parent: int) -> DiskFile | None:
    """The file or link at a name; links are not followed. None for a folder and if nothing is there, as in git."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            return None
        if stat.S_ISLNK(found.st_mode):
            return DiskFile(LINK, os.fsencode(os.readlink(name, dir_fd=parent)))
        if not stat.S_ISREG(found.st_mode):
            return DiskFile(OTHER_MODE, b"")
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as file:
        mode = EXECUTABLE if os.fstat(descriptor).st_mode & stat.S_IXUSR else PLAIN
        return DiskFile(mode, file.read())


def _remove_empty_folders(root: Path, top: int, files: Iterable[str], keep: Path | None) -> None:
    """Remove the empty folders of these files, innermost first."""
    for folder in sorted(_folders(files), key=lambda one: one.count("/"), reverse=True):
        if folder and not (keep is not None and keep.is_relative_to(root / folder)):
            with suppress(OSError, Invalid):
                parent = open_folder(top, os.path.dirname(folder))
                try:
                    os.rmdir(os.path.basename(folder), dir_fd=parent)
                finally:
                    os.close(parent)


def _sync_folders(top: int, files: Iterable[str]) -> None:
    """Make the names of files durable, before the log records the restore."""
    descriptors: list[int] = []
    try:
        for folder in sorted(_folders(files)):
            with suppress(OSError, Invalid):
                descriptors.append(open_folder(top, folder))
            if len(descriptors) == READ_AT_ONCE:
                _sync_each(descriptors)
        _sync_each(descriptors)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _sync_each(descriptors: list[int]) -> None:
    with suppress(OSError):
        _sync(descriptors)
    while descriptors:
        os.close(descriptors.pop())


def _folders(files: Iterable[str]) -> set[str]:
    """The folders in the paths of files, with the top as an empty name."""
    found: set[str] = set()
    for file in files:
        folder = os.path.dirname(file)
        while folder not in found:
            found.add(folder)
            folder = os.path.dirname(folder)
    return found
