"""Output files: copies of whole tool outputs, for other tools to read and search. The store has the originals.

Each file has a unique name that ends with a hash of its session's id. It is removed when it is old, and with its
session.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from anyio import to_thread

from turnkeeper.core.limits import OUTPUT_FILE_KEPT_S, OUTPUT_SWEEP_S
from turnkeeper.workspace import paths

DIRECTORY: Final = "tool-output"
PREFIX: Final = "tool"


class OutputFiles:
    """The output files of one directory. ``now`` is in milliseconds; ``name`` makes a unique name from a prefix."""

    def __init__(self, place: Path, now: Callable[[], int], name: Callable[[str], str]) -> None:
        self.place, self._now, self._name = place, now, name
        self._swept: int | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str], now: Callable[[], int], name: Callable[[str], str]) -> "OutputFiles | None":
        """The output files of the data directory; None if there is no data directory."""
        try:
            data = paths.data(environ)
        except ValueError:
            return None
        # Links are resolved because permission rules are about resolved paths.
        return cls(Path(os.path.realpath(data / DIRECTORY)), now, name)

    async def keep(self, text: str, *, session_id: str) -> Path:
        """Write a text to a new file. Raises OSError if the disk is full or there is no permission."""
        return await to_thread.run_sync(self._keep, text, _mark(session_id))

    async def remove(self, session_ids: Iterable[str]) -> None:
        """Remove the files of sessions. A file that cannot be removed stays until it is old."""
        marks = tuple(map(_mark, session_ids))
        await to_thread.run_sync(self._remove, lambda entry: entry.name.endswith(marks))

    def sweep(self) -> int:
        """Remove old files and return their number. A file that cannot be removed stays."""
        oldest = self._now() / 1000 - OUTPUT_FILE_KEPT_S
        return self._remove(lambda entry: entry.stat(follow_symlinks=False).st_mtime < oldest)

    def _remove(self, is_gone: "Callable[[os.DirEntry[str]], bool]") -> int:
        count = 0
        with suppress(OSError), os.scandir(self.place) as found:
            for entry in found:
                with suppress(OSError):
                    if entry.name.startswith(f"{PREFIX}_") and is_gone(entry):
                        os.unlink(entry.path)
                        count += 1
        return count

    def _keep(self, text: str, mark: str) -> Path:
        now = self._now()
        if self._swept is None or now - self._swept >= OUTPUT_SWEEP_S * 1000:
            self._swept = now
            self.sweep()
        self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self.place / f"{self._name(PREFIX)}{mark}"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(descriptor, "wb") as file:
                file.write(text.encode("utf-8", "surrogatepass"))
            os.utime(path, (now / 1000, now / 1000))
        except BaseException:
            with suppress(OSError):
                path.unlink()
            raise
        return path


def _mark(session_id: str) -> str:
    """The end of the names of a session's files: a hash, because an id may not be valid in a file name."""
    return f"_{sha256(session_id.encode('utf-8', 'replace')).hexdigest()[:16]}"
