"""File access for tools: bounded reads, lossless text, atomic writes."""

import errno
import os
import secrets
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path, PosixPath
from typing import IO, BinaryIO, Final
from weakref import WeakValueDictionary

import anyio

from turnkeeper.core.limits import EDITED_BYTES_MAX
from turnkeeper.model.refusal import Invalid
from turnkeeper.text import file_text
from turnkeeper.text.file_text import FileText
from turnkeeper.workspace.file_kind import SNIFFED_BYTES, is_binary
from turnkeeper.workspace.folder_entries import is_folder

PRIVATE: Final = 0o600
"""The mode of a file that only its owner may read."""
SMALL_BYTES: Final = 32 * 1024

_SEARCH: Final = getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY)) | os.O_DIRECTORY | os.O_CLOEXEC
"""Flags for opening a directory on the way to a file."""
_locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()


class CheckedPath(PosixPath):
    """A path as it was written, with the resolved path at the time of its check.

    The functions of this module open only the resolved path: a link that was put into it since is refused.
    """

    _place: Path | None = None

    @property
    def place(self) -> Path:
        """The path without links."""
        return self._place if self._place is not None else real(self)

    @classmethod
    def of(cls, path: Path) -> "CheckedPath":
        """Resolve a path, once."""
        checked = cls(path)
        checked._place = real(path)
        return checked

    @classmethod
    def below(cls, root: Path, name: str) -> "CheckedPath":
        """A file by its name relative to a directory. Unlike ``of``, this follows no link below the directory."""
        if any(part in ("", ".", "..") or part.casefold() == ".git" for part in name.split("/")) or "\0" in name:
            raise Invalid(f"{name!r} is not the name of a file of {str(root)!r}")
        checked = cls(root / name)
        checked._place = real(root) / name
        return checked


def real(path: Path) -> Path:
    """The path without links, also of a file that is not there yet. A loop of links is kept, not refused."""
    return path.place if isinstance(path, CheckedPath) and path._place else Path(os.path.realpath(path))


def is_moved(directory: Path | str) -> bool:
    """Whether a directory that was written without links leads elsewhere, because a part of it has become a link."""
    return os.path.realpath(directory) != os.path.abspath(directory)


def stamp(path: Path | str) -> tuple[int, ...] | None:
    """A value that changes when a file is written or replaced; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def is_enterable(path: Path | str) -> bool:
    """Whether a path is a directory that this user may enter. Path.is_dir raises where one above may not be."""
    return os.path.isdir(os.path.join(path, "."))


def may_exist(path: Path | str) -> bool:
    """Whether something is at a path, or may be: its directory exists, and this user may not enter it."""
    try:
        os.lstat(path)
    except PermissionError:
        return os.path.lexists(os.path.dirname(path))
    except (OSError, ValueError):
        return False
    return True


def is_missing(path: Path | str) -> bool:
    """Whether nothing exists at a path; False if that cannot be determined."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    except (OSError, ValueError):
        pass
    return False


def top(directory: Path, worktree: Path) -> Path:
    """The top of a project's files: its worktree, or the directory itself where there is no repository.

    A worktree at the root of the file system means that there is no repository.
    """
    return worktree if str(worktree) != worktree.anchor else directory


def is_inside(path: Path, directory: Path, worktree: Path) -> bool:
    """Whether a path, with links resolved, is in the directory or in the project around it.

    Both have no links in them. If one has come in since, what it leads to is outside.
    """
    place = str(real(path))
    roots = map(str, (directory, top(directory, worktree)))
    return any(place == root or place.startswith(f"{root.rstrip('/')}/") for root in roots)


def read_text(path: Path) -> FileText:
    """A text file as a whole; Invalid if it is binary, too large or no file."""
    return decoded(path, read_bytes(path, EDITED_BYTES_MAX))


def decoded(path: Path, content: bytes) -> FileText:
    """The text that a file holds; Invalid if it is binary."""
    try:
        if not is_binary(path, content[:SNIFFED_BYTES]):
            return file_text.decode(content)
    except ValueError:
        pass
    raise Invalid(f"{str(path)!r} is a binary file")


def read_bytes(path: Path, bytes_max: int) -> bytes:
    """Read a whole file. Raises Invalid if it is larger than ``bytes_max`` or not a regular file."""
    require_regular(path)
    with open_file(path) as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise Invalid(f"{str(path)!r} is larger than {bytes_max} bytes")
    return content


def open_file(path: Path) -> BinaryIO:
    """Open a file to read it: of a CheckedPath, the file that was checked."""
    # Without O_NONBLOCK, opening a pipe that was put there since the check would wait for a writer.
    if isinstance(path, CheckedPath):
        with directory_of(path) as parent:
            descriptor = _open(path.place.name, os.O_RDONLY | os.O_NONBLOCK, parent, path)
    else:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Invalid(f"{str(path)!r} is not a regular file")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


@contextmanager
def directory_of(path: Path, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the directory that holds a file, reached without following a link.

    Each step is taken from the directory before it, so the path cannot be redirected meanwhile.
    """
    descriptor = os.open("/", _SEARCH)
    try:
        for name in real(path).parent.parts[1:]:
            if make:
                with suppress(FileExistsError), _naming(path):
                    os.mkdir(name, dir_fd=descriptor)
            below = _open(name, _SEARCH, descriptor, path)
            os.close(descriptor)
            descriptor = below
        yield descriptor
    finally:
        os.close(descriptor)


def require_unmoved(path: CheckedPath) -> None:
    """Refuse a path whose target has changed since its check. For programs that open the path by themselves."""
    if os.path.realpath(path) != str(path.place):
        raise Invalid(f"{str(path)!r} was replaced by a link after it was checked")


def _open(name: str, flags: int, directory: int, path: Path) -> int:
    with _naming(path):
        try:
            return os.open(name or ".", flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR) and _is_link(name, directory):
                raise Invalid(f"{str(path)!r} was replaced by a link after it was checked") from error
            raise


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """An error is about the whole path, and not about a name in a directory that is held open."""
    try:
        yield
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from error


def _is_link(name: str, directory: int) -> bool:
    with suppress(OSError):
        return stat.S_ISLNK(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    return False


def is_small(path: Path) -> bool:
    """Whether a file is so small that reading it in a worker thread costs more than reading it directly."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= SMALL_BYTES


def require_regular(path: Path) -> None:
    """Refuse anything but a regular file: reading a pipe or a device may never end."""
    mode = os.stat(real(path) if isinstance(path, CheckedPath) else path).st_mode
    if stat.S_ISDIR(mode):
        if not os.access(path, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        raise Invalid(f"{str(path)!r} is a directory, not a file")
    if not stat.S_ISREG(mode):
        raise Invalid(f"{str(path)!r} is not a regular file")


def printable(text: str) -> str:
    """The text for display: bytes that are not UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically; create it and its directories if they do not exist.

    A read-only file is refused, although its directory would allow to replace it.
    """
    target = real(path)
    with directory_of(path, make=True) as parent:
        with _naming(path):
            found = _stat(target.name, parent)
        is_file = found is not None and stat.S_ISREG(found.st_mode)
        if is_file and not os.access(target.name, os.W_OK, dir_fd=parent):
            raise PermissionError(f"{str(path)!r} is read-only")
    with replacing(path if isinstance(path, CheckedPath) else target) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, *, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A new file that replaces ``path`` if the block succeeds; otherwise ``path`` is unchanged.

    Links are followed. An existing file keeps its owner, and its mode unless ``mode`` is given. A device or a pipe is
    written to directly: replacing it would destroy it. Raises Invalid for a pipe that no program reads.
    """
    # Asked before links are resolved: an entry of /proc, such as standard output, leads to a name that is no file.
    special = None if isinstance(path, CheckedPath) or not os.path.exists(path) else os.stat(path)
    if special is not None and not stat.S_ISREG(special.st_mode) and not stat.S_ISDIR(special.st_mode):
        with open(_opened_pipe(path) if stat.S_ISFIFO(special.st_mode) else path, "wb") as file:
            yield file
        return
    name = real(path).name
    with directory_of(path) as parent:
        with _naming(path):
            before = _stat(name, parent) if name else os.stat("/")
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise Invalid(f"{str(path)!r} is a directory, not a file")
        if before is not None and not stat.S_ISREG(before.st_mode):
            raise Invalid(f"{str(path)!r} was replaced by a link after it was checked")
        temporary = own_name(".turnkeeper-")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with _naming(path):
            descriptor = os.open(temporary, flags, 0o666 if mode is None else mode, dir_fd=parent)
        try:
            with open(descriptor, "wb") as file:
                yield file
                if before is not None:
                    keep_owner_and_mode(file.fileno(), before, mode)
                file.flush()
                # Without this a power cut could leave the new name with nothing under it.
                os.fsync(file.fileno())
            os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=parent)
            raise


def own_name(beginning: str) -> str:
    """A name that nobody else uses. The number of the process would not do: every container has a process 1."""
    return beginning + secrets.token_hex(8)


def _opened_pipe(path: Path) -> int:
    """A named pipe opened for writing. Raises Invalid if no program reads it: opening it would wait for one."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        raise Invalid(f"{str(path)!r} is a pipe that no program reads; name a file, or start its reader") from error
    os.set_blocking(descriptor, True)
    return descriptor


def _stat(name: str, directory: int) -> os.stat_result | None:
    with suppress(FileNotFoundError):
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    return None


def entries(directory: Path) -> list[str]:
    """The sorted names in a directory; names of directories, and of links to directories, end with a slash."""
    with directory_of(directory) as parent:
        descriptor = _open(real(directory).name, os.O_RDONLY | os.O_DIRECTORY, parent, directory)
    try:
        with os.scandir(descriptor) as found:
            return sorted(f"{entry.name}/" if is_folder(entry) else entry.name for entry in found)
    finally:
        os.close(descriptor)


def similar(path: Path, limit: int = 3) -> list[Path]:
    """Files in the directory of a missing file whose names contain its name or are contained in it."""
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return []
    wanted = path.name.lower()
    return [path.parent / name for name in names if name.lower() in wanted or wanted in name.lower()][:limit]


@asynccontextmanager
async def holding(*paths: Path) -> AsyncIterator[None]:
    """Lock files against other tasks of this process, for reading and writing them.

    Locks are taken in sorted order, so that no two tasks wait for each other. Paths are resolved once: a link may be
    created meanwhile, and one lock cannot be taken twice.
    """
    async with AsyncExitStack() as held:
        for key in sorted({str(real(path)) for path in paths}):
            lock = _locks.get(key)
            if lock is None:
                lock = _locks[key] = anyio.Lock()
            await held.enter_async_context(lock)
        yield


def keep_owner_and_mode(descriptor: int, before: os.stat_result, mode: int | None) -> None:
    """Give a new file the owner of the one that it replaces, and its mode unless another is given."""
    # Only root may change the owner; otherwise the file belongs to the last writer.
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) if mode is None else mode)
