"""Reads: the hashes of the file contents that a session has seen, so that it changes no file that it has not read.

A file is known by the hash of the content that was read or that the session itself wrote. Hashes are kept in memory
only: after a restart a file must be read again.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Final

from turnkeeper.workspace import files

FILES_MAX: Final = 4096
"""Files of one session that are remembered; the one that was read first is removed first."""
SESSIONS_MAX: Final = 512
"""Sessions that are remembered; the least recently used one is removed first."""


class SessionReads:
    """The files that one session has read or written, with the hashes of their contents."""

    def __init__(self, files_max: int = FILES_MAX) -> None:
        self._files_max = files_max
        self._hashes: dict[str, bytes] = {}

    def note(self, path: Path, content: bytes) -> None:
        """Remember that the session has seen this content of a file."""
        key = _key(path)
        self._hashes.pop(key, None)
        self._hashes[key] = _hash(content)
        while len(self._hashes) > self._files_max:
            del self._hashes[next(iter(self._hashes))]

    def forget(self, path: Path) -> None:
        """Forget a file that no longer exists."""
        self._hashes.pop(_key(path), None)

    def why_not(self, path: Path, content: bytes) -> str | None:
        """The reason why the session may not change a file with this content; None if it may."""
        known = self._hashes.get(_key(path))
        if known is None:
            return f"{str(path)!r} was not read in this session yet. Read it before you change it."
        if known != _hash(content):
            return f"{str(path)!r} has changed since it was read. Read it again before you change it."
        return None


class ReadFiles:
    """The reads of every session of this process."""

    def __init__(self, sessions_max: int = SESSIONS_MAX) -> None:
        self._sessions_max = sessions_max
        self._sessions: dict[str, SessionReads] = {}

    def of(self, session_id: str) -> SessionReads:
        """The reads of one session."""
        reads = self._sessions.pop(session_id, None) or SessionReads()
        self._sessions[session_id] = reads
        while len(self._sessions) > self._sessions_max:
            del self._sessions[next(iter(self._sessions))]
        return reads


def _key(path: Path) -> str:
    return str(files.real(path))


def _hash(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
