"""Trusted directories: ``trust.json`` in the data directory, and the variable that trusts all of them.

The configuration of a project that is not trusted can only narrow what may happen (``core.trust``). A model's commands
can write the files of a project, so its settings and its tools are trusted by their content: ``turnkeeper trust``
records their hashes. The variable trusts the files as this process first read them, if they are older than the process.
"""

import os
import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final, cast

import msgspec

from turnkeeper.core import flags
from turnkeeper.workspace import paths
from turnkeeper.workspace.private_json import PrivateJson

NAME: Final = "trust.json"


class Trusted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of the file: trusted directories, and hashes of trusted files, by paths with links resolved."""

    directories: tuple[str, ...] = ()
    tools: Mapping[str, str] = {}
    """The hash of each file of tools when it was trusted."""
    settings: Mapping[str, str] = {}
    """The hash of each file of settings when it was trusted."""


class TrustedDirectories:
    """The directories that a user trusts, and the hashes of their files at that time."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        # Before tools were trusted by their content the file was a list of directories.
        self.file = PrivateJson[Trusted | list[str]](
            paths.data(environ) / NAME,
            cast(type[Trusted | list[str]], Trusted | list[str]),
            Trusted(),
            advice="; delete it to trust no directory",
        )

    def __contains__(self, path: Path) -> bool:
        """Whether a file or directory is trusted, with links resolved."""
        if self.are_all:
            return True
        place = Path(os.path.realpath(path))
        return any(place.is_relative_to(directory) for directory in self.all())

    @property
    def are_all(self) -> bool:
        """Whether the variable trusts every directory."""
        return flags.TRUST.is_on(self._environ)

    def all(self) -> list[str]:
        """The trusted directories. Raises Invalid if their file is damaged."""
        return list(_read(self.file.read()).directories)

    def has_tools(self, file: Path, content: bytes) -> bool:
        """Whether a file of tools was trusted with this content."""
        return _read(self.file.read()).tools.get(_tool_key(file)) == _hashed(content)

    def has_settings(self, file: Path, content: bytes) -> bool:
        """Whether a file of settings was trusted with this content."""
        return _read(self.file.read()).settings.get(_settings_key(file)) == _hashed(content)

    def add(
        self,
        directory: Path,
        *,
        tools: Mapping[Path, bytes] | None = None,
        settings: Mapping[Path, bytes] | None = None,
    ) -> str:
        """Trust a directory, and files of tools and settings with these contents; returns its resolved path."""
        place = os.path.realpath(directory)
        tool_hashes = {_tool_key(file): _hashed(content) for file, content in (tools or {}).items()}
        setting_hashes = {_settings_key(file): _hashed(content) for file, content in (settings or {}).items()}

        def added(found: Trusted | list[str]) -> Trusted:
            known = _read(found)
            return Trusted(
                tuple(sorted({*known.directories, place})),
                {**_existing(known.tools), **tool_hashes},
                {**_existing(known.settings), **setting_hashes},
            )

        self.file.change(added)
        return place

    def remove(self, directory: Path) -> bool:
        """Stop trusting a directory and the files in it; returns whether the directory itself was trusted."""
        place = os.path.realpath(directory)
        was_trusted = place in self.all()

        def removed(found: Trusted | list[str]) -> Trusted:
            known = _read(found)
            kept = [
                {file: hash for file, hash in hashes.items() if not Path(file).is_relative_to(place)}
                for hashes in (known.tools, known.settings)
            ]
            return Trusted(tuple(one for one in known.directories if one != place), *kept)

        self.file.change(removed)
        return was_trusted


class FilesAtStart:
    """The files that the variable trusts: those that were there when the program started, until their content changes.

    An accepted file is recognised by its hash from then on, because its directory changes when a file is added to it.
    """

    def __init__(self, started_ns: int | None = None) -> None:
        """``started_ns`` is when the program was started, by the clock of the file system; now by default."""
        self._started_ns = time.time_ns() if started_ns is None else started_ns
        self._accepted: dict[Path, str] = {}

    def has(self, file: Path, content: bytes, places: Iterable[Path]) -> bool:
        """Whether a file had this content at the start; ``places`` are the file and its directories of settings.

        The directories are checked, too: an older file could have been moved into the place of this one.
        """
        hashed = _hashed(content)
        if self._accepted.pop(file, None) != hashed and not _are_older(places, self._started_ns):
            return False
        self._accepted[file] = hashed
        return True


def _are_older(places: Iterable[Path], moment_ns: int) -> bool:
    """Whether none of these files, directories and links changed since a moment.

    The time that is compared is that of the kernel, which a command cannot set.
    """
    try:
        changed = [look(place).st_ctime_ns for place in places for look in (os.stat, os.lstat)]
    except OSError:
        return False
    return max(changed) <= moment_ns


def _read(found: Trusted | list[str]) -> Trusted:
    return found if isinstance(found, Trusted) else Trusted(tuple(found))


def _tool_key(file: Path) -> str:
    """The key of a file of tools: its path below the resolved directory of settings."""
    return os.path.join(os.path.realpath(file.parent.parent), file.parent.name, file.name)


def _settings_key(file: Path) -> str:
    """The key of a file of settings: its name in the resolved directory."""
    return os.path.join(os.path.realpath(file.parent), file.name)


def _existing(hashes: Mapping[str, str]) -> dict[str, str]:
    return {file: hash for file, hash in hashes.items() if os.path.exists(file)}


def _hashed(content: bytes) -> str:
    return sha256(content).hexdigest()
