"""Setting places: the paths that the settings of a directory may come from, and the stamps of their files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.workspace import auth, files, markdown_files, paths, setting_files, well_known
from turnkeeper.workspace.setting_files import CodeDirectory
from turnkeeper.workspace.trust import NAME as TRUST_FILE

_NAMES: Final = (paths.USER_SETTINGS, paths.FOLDER_SETTINGS, *paths.SETTINGS)
"""The configuration files of a directory of settings."""


class Look(NamedTuple):
    """State of the files and directories at one moment. Equal states have the same settings."""

    directories: tuple[CodeDirectory, ...]
    """The directories of settings that exist."""
    stamps: dict[str, tuple[int, ...] | None]
    """Stamps of the configuration files and of the existing markdown files, which change when a file is written."""


class SettingPlaces(NamedTuple):
    """The paths for one directory. They are cached, because making the names takes longer than looking at the disk."""

    trust: str
    """The file with the trusted directories. It is one of ``files``."""
    files: tuple[str, ...]
    """Configuration files that are in no directory of settings, also those that do not exist."""
    directories: tuple[CodeDirectory, ...]
    """Directories of settings. Most of them do not exist."""

    @classmethod
    def of(cls, directory: Path, worktree: Path, environ: Mapping[str, str]) -> "SettingPlaces":
        """The places of a directory: those of its project and of the user."""
        data = paths.data(environ)
        trust = data / TRUST_FILE
        plain = setting_files.plain_project_files(directory, worktree, environ)
        named = setting_files.named_files(directory, environ)
        own = (trust, data / auth.NAME, data / well_known.NAME)
        directories = tuple(setting_files.code_directories(directory, worktree, environ))
        return cls(str(trust), tuple(map(str, (*own, *plain, *named))), directories)

    def look(self) -> Look:
        """The current state. A directory that does not exist is not searched for files."""
        directories = tuple(one for one in self.directories if os.path.isdir(one.path))
        named = (os.path.join(one.path, name) for one in directories for name in _NAMES)
        markdown = (str(file.path) for one in directories for file in markdown_files.found_in(one.path))
        return Look(directories, {file: files.stamp(file) for file in (*self.files, *named, *markdown)})
