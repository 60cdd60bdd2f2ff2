"""Where the settings of a directory could come from, and a stamp of each file that shows when it was written."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from turnkeeper.workspace import auth, files, markdown_files, paths, setting_files, well_known
from turnkeeper.workspace.trust import NAME as TRUST_FILE


class SettingPlaces(NamedTuple):
    """The places of one directory. They are cached: to make the names takes longer than to look at the disk."""

    trust: str
    """The file with the trusted directories. It is one of ``files``."""
    files: tuple[str, ...]
    """Configuration files, also those that do not exist."""
    folders: tuple[tuple[str, tuple[str, ...]], ...]
    """Directories with markdown files, and the configuration files in them. Most of them do not exist."""

    @classmethod
    def of(cls, directory: Path, worktree: Path, environ: Mapping[str, str]) -> "SettingPlaces":
        """Those of a directory, in its project and of the user."""
        data = paths.data(environ)
        trust = data / TRUST_FILE
        plain = setting_files.plain_project_files(directory, worktree, environ)
        named = setting_files.named_files(directory, environ)
        own = (trust, data / auth.NAME, data / well_known.NAME, *setting_files.user_files(environ))
        dotted = (
            *setting_files.project_directories(directory, worktree, environ),
            *setting_files.named_directories(directory, environ),
        )
        return cls(
            str(trust),
            tuple(map(str, (*own, *plain, *named))),
            (
                *((str(place), ()) for place in setting_files.user_directories(environ)),
                *((str(place), tuple(map(str, setting_files.files_in(place)))) for place in dotted),
            ),
        )

    def stamps(self) -> dict[str, tuple[int, ...] | None]:
        """The configuration files, and the markdown files that exist, with a value that changes when they are written.

        Nothing is asked about the content of a directory that does not exist.
        """
        stamps = {file: files.stamp(file) for file in self.files}
        for folder, settings_files in self.folders:
            if os.path.isdir(folder):
                markdown = (str(file.path) for file in markdown_files.found_in(Path(folder)))
                stamps |= {file: files.stamp(file) for file in (*settings_files, *markdown)}
        return stamps
