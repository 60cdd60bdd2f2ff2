"""Files as tools use them: bounded reads, text that goes back as it came, writes that are whole or absent."""

import os
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import IO, Final
from weakref import WeakValueDictionary

import anyio

from turnkeeper.core.limits import EDITED_BYTES_MAX
from turnkeeper.model.refusal import Invalid
from turnkeeper.text import file_text
from turnkeeper.text.file_text import FileText

PRIVATE: Final = 0o600
"""The mode of a file that only its owner may read."""
SMALL_BYTES: Final = 32 * 1024
SNIFFED_BYTES: Final = 4096
"""How much of a file is looked at to tell what it is."""

_BINARY: Final = (
    "zip tar gz exe dll so class jar war 7z doc docx xls xlsx ppt pptx odt ods odp bin dat obj o a lib wasm pyc pyo"
)
_BINARY_SUFFIXES: Final = frozenset(f".{name}" for name in _BINARY.split())
_TEXT_CONTROLS: Final = frozenset(b"\t\n\v\f\r\b\x1b")
_numbers: Final = count()
_locks: WeakValueDictionary[str, anyio.Lock] = WeakValueDictionary()


def real(path: Path) -> Path:
    """The path without links, also of a file that is not there yet."""
    return Path(os.path.realpath(path))


def is_inside(path: Path, directory: Path, worktree: Path) -> bool:
    """Whether a path, once its links are followed, lies in the directory or the worktree.

    A worktree that is the root of the file system means that there is no project, and holds nothing.
    """
    place = os.path.realpath(path)
    roots = (directory, worktree) if str(worktree) != worktree.anchor else (directory,)
    return any(place == root or place.startswith(f"{root.rstrip('/')}/") for root in map(os.path.realpath, roots))


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
    """A file's bytes; Invalid if there are more than so many, or if it is a device, a pipe or a directory."""
    require_regular(path)
    with open(path, "rb") as file:
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise Invalid(f"{str(path)!r} is larger than {bytes_max} bytes")
    return content


def is_small(path: Path) -> bool:
    """Whether there is a file that is read at once: its pages are most often in memory, and a thread costs more."""
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode) and found.st_size <= SMALL_BYTES


def require_regular(path: Path) -> None:
    """Refuse what is no file: reading a pipe or a device may never end."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise Invalid(f"{str(path)!r} is a directory, not a file")
    if not stat.S_ISREG(mode):
        raise Invalid(f"{str(path)!r} is not a regular file")


def printable(text: str) -> str:
    """The text as it may be shown: bytes that are no UTF-8 become replacement characters."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file's content at once, or leave it; make it and its directories if they are not there.

    A file that may not be written is refused even where its directory would let it be replaced.
    """
    target = real(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{str(path)!r} is read-only")
    with replacing(target) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, *, mode: int | None = None) -> Iterator[IO[bytes]]:
    """A file that takes the place of ``path`` when the block ends well; otherwise nothing has changed.

    Links are followed and stay. A file that is there keeps its owner, and its mode unless one is given. A device or a
    pipe is written through: replacing it would destroy it.
    """
    # Asked before links are resolved: an entry of /proc, such as standard output, leads to a name that is no file.
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
            # Without this a power cut could leave the new name with nothing under it.
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_binary(path: Path, head: bytes) -> bool:
    """Whether a file is no text, by its name and its beginning."""
    if path.suffix.lower() in _BINARY_SUFFIXES:
        return True
    if file_text.is_utf16(head):
        return False
    if b"\0" in head:
        return True
    controls = sum(byte < 32 and byte not in _TEXT_CONTROLS for byte in head)
    return controls * 10 > len(head) * 3


def media_type(head: bytes) -> str | None:
    """The type of an image or PDF by its first bytes."""
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
    """The names in a directory in order; those of directories, and of links to them, end in a slash."""
    with os.scandir(directory) as found:
        return sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in found)


def similar(path: Path, limit: int = 3) -> list[Path]:
    """Files beside a missing one whose names hold its name, or are held by it."""
    try:
        names = sorted(os.listdir(path.parent))
    except OSError:
        return []
    wanted = path.name.lower()
    return [path.parent / name for name in names if name.lower() in wanted or wanted in name.lower()][:limit]


@asynccontextmanager
async def holding(path: Path) -> AsyncIterator[None]:
    """Keep other calls of this process from changing a file between reading and writing it."""
    key = str(real(path))
    lock = _locks.get(key)
    if lock is None:
        lock = _locks[key] = anyio.Lock()
    async with lock:
        yield


def _keep_owner_and_mode(descriptor: int, before: os.stat_result, mode: int | None) -> None:
    # Only root may give files away; anyone else's file then belongs to who wrote it last.
    with suppress(PermissionError):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode) if mode is None else mode)
