"""File access for tools: bounded reads, lossless text, atomic writes."""

import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Final
from weakref import WeakValueDictionary

import anyio
import msgspec

from turnkeeper.core.limits import EDITED_BYTES_MAX
from turnkeeper.model.refusal import Invalid

BOM: Final = b"\xef\xbb\xbf"
PRIVATE: Final = 0o600
"""The mode of a file that only its owner may read."""
SMALL_BYTES: Final = 32 * 1024
SNIFFED_BYTES: Final = 4096
"""Number of bytes that are read to determine the type of a file."""

_BINARY: Final = (
    "zip tar gz exe dll so class jar war 7z doc docx xls xlsx ppt pptx odt ods odp bin dat obj o a lib wasm pyc pyo"
)
_BINARY_SUFFIXES: Final = frozenset(f".{name}" for name in _BINARY.split())
_TEXT_CONTROLS: Final = frozenset(b"\t\n\v\f\r\b\x1b")
_numbers: Final = count()
_locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()


class TextFile(msgspec.Struct, frozen=True):
    """A file's text. Bytes that are not UTF-8 are kept as surrogates, so that writing restores them."""

    text: str
    has_bom: bool

    def encode(self, text: str) -> bytes:
        """Encode another text for this file, with its byte order mark."""
        return (BOM if self.has_bom else b"") + text.encode("utf-8", "surrogateescape")


def real(path: Path) -> Path:
    """The path with symbolic links resolved; the file need not exist."""
    return Path(os.path.realpath(path))


def stamp(path: Path | str) -> tuple[int, ...] | None:
    """A value that changes when a file is written or replaced; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def is_inside(path: Path, directory: Path, worktree: Path) -> bool:
    """Whether a path, with links resolved, is in the directory or the worktree.

    A worktree at the root of the file system stands for no project and contains nothing.
    """
    place = os.path.realpath(path)
    roots = (directory, worktree) if str(worktree) != worktree.anchor else (directory,)
    return any(place == root or place.startswith(f"{root.rstrip('/')}/") for root in map(os.path.realpath, roots))


def read_text(path: Path) -> TextFile:
    """Read a whole text file. Raises Invalid if it is binary, too large or not a regular file."""
    content = read_bytes(path, EDITED_BYTES_MAX)
    if is_binary(path, content[:SNIFFED_BYTES]):
        raise Invalid(f"{str(path)!r} is a binary file")
    has_bom = content.startswith(BOM)
    return TextFile(content[len(BOM) if has_bom else 0 :].decode("utf-8", "surrogateescape"), has_bom)


def read_bytes(path: Path, bytes_max: int) -> bytes:
    """Read a whole file. Raises Invalid if it is larger than ``bytes_max`` or not a regular file."""
    require_regular(path)
    with open(path, "rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise Invalid(f"{str(path)!r} is larger than {bytes_max} bytes")
    return content


def is_small(path: Path) -> bool:
    """Whether a file is so small that reading it in a worker thread costs more than reading it directly."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= SMALL_BYTES


def require_regular(path: Path) -> None:
    """Raise Invalid for anything but a regular file: reading a pipe or a device may block for ever."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
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
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{str(path)!r} is read-only")
    with replacing(target) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, *, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A new file that replaces ``path`` if the block succeeds; otherwise ``path`` is unchanged.

    Links are followed. An existing file keeps its owner, and its mode unless ``mode`` is given. A device or a pipe is
    written to directly: replacing it would destroy it.
    """
    # Before links are resolved: an entry of /proc, such as standard output, resolves to a name that is no file.
    before = os.stat(path) if os.path.exists(path) else None
    if before is not None and stat.S_ISDIR(before.st_mode):
        raise Invalid(f"{str(path)!r} is a directory, not a file")
    if before is not None and not stat.S_ISREG(before.st_mode):
        with open(path, "wb") as file:
            yield file
        return
    target = real(path)
    temporary = target.parent / f".turnkeeper-{os.getpid()}-{next(_numbers)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o666 if mode is None else mode)
    try:
        with open(descriptor, "wb") as file:
            yield file
            if before is not None:
                _keep_owner_and_mode(file.fileno(), before, mode)
            file.flush()
            # Without fsync a power failure could leave an empty file under the new name.
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_binary(path: Path, head: bytes) -> bool:
    """Whether a file is binary, judged by its suffix and its first bytes."""
    if path.suffix.lower() in _BINARY_SUFFIXES or b"\0" in head:
        return True
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in head)
    return controls * 10 > len(head) * 3


def media_type(head: bytes) -> str | None:
    """The media type of an image or PDF, from its first bytes."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return "application/pdf" if head.startswith(b"%PDF-") else None


def entries(directory: Path) -> list[str]:
    """The sorted names in a directory; those of directories, and of links to them, end in a slash."""
    with os.scandir(directory) as found:
        return sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in found)


def similar(path: Path, limit: int = 3) -> list[Path]:
    """Files beside a missing one whose names contain its name or are contained in it."""
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return []
    wanted = path.name.lower()
    return [path.parent / name for name in names if name.lower() in wanted or wanted in name.lower()][:limit]


@asynccontextmanager
async def holding(path: Path) -> AsyncIterator[None]:
    """Lock a file against other tasks of this process, for reading and writing it."""
    key = str(real(path))
    lock = _locks.get(key)
    if lock is None:
        lock = _locks[key] = anyio.Lock()
    async with lock:
        yield


def _keep_owner_and_mode(descriptor: int, before: os.stat_result, mode: int | None) -> None:
    # Only root may change the owner; otherwise the file belongs to the last writer.
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) if mode is None else mode)
