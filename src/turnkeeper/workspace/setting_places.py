"""Where the settings of a directory could come from, and a stamp of each file that shows when it was written."""

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
    """What was there at one moment. Looks that are equal find the same settings."""

    directories: tuple[CodeDirectory, ...]
    """The directories of settings that exist."""
    stamps: dict[str, tuple[int, ...] | None]
    """The configuration files, and the markdown files that exist, with a value that changes when they are written."""


class SettingPlaces(NamedTuple):
    """The places of one directory. They are cached: to make the names takes longer than to look at the disk."""

    trust: str
    """The file with the trusted directories. It is one of ``files``."""
    files: tuple[str, ...]
    """Configuration files that are in no directory of settings, also those that do not exist."""
    directories: tuple[CodeDirectory, ...]
    """Directories of settings. Most of them do not exist."""

    @classmethod
    def of(cls, directory: Path, worktree: Path, environ: Mapping[str, str]) -> "SettingPlaces":
        """Those of a directory, in its project and of the user."""
        data = paths.data(environ)
        trust = data / TRUST_FILE
        plain = setting_files.plain_project_files(directory, worktree, environ)
        named = setting_files.named_files(directory, environ)
        own = (trust, data / auth.NAME, data / well_known.NAME)
        directories = tuple(setting_files.code_directories(directory, worktree, environ))
        return cls(str(trust), tuple(map(str, (*own, *plain, *named))), directories)

    def look(self) -> Look:
        """What is there now. Nothing is asked about the content of a directory that does not exist."""
        directories = tuple(one for one in self.directories if os.path.isdir(one.path))
        named = (os.path.join(one.path, name) for one in directories for name in _NAMES)
        markdown = (str(file.path) for one in directories for file in markdown_files.found_in(one.path))
        return Look(directories, {file: files.stamp(file) for file in (*self.files, *named, *markdown)})
