"""Grounds: what an answer about a directory was found on. While they hold, nothing needs to be worked out again."""

import os
from collections.abc import Mapping
from typing import Final, NamedTuple

from turnkeeper.workspace import paths
from turnkeeper.workspace.folders import Folders, Stamp, Standing

standing: Final = Folders((paths.REPOSITORY, paths.USER_SETTINGS, *paths.SETTINGS, *paths.SETTINGS_FOLDERS))
"""All that may come to stand in a folder and change an answer; one for all answers, so they can share their looks."""


class Variables:
    """A few variables of an environment."""

    def __init__(self, environ: Mapping[str, str], names: tuple[str, ...]) -> None:
        self._get, self._names = environ.get, names
        if isinstance(environ, os._Environ) and isinstance(raw := getattr(environ, "_data", None), dict):
            # The system's environment translates each name and value, and a variable that is not set costs it two
            # exceptions. Eight of them took as long as everything else that a prompt asks of its directory.
            self._get, self._names = raw.get, tuple(map(environ.encodekey, names))

    def now(self) -> list[object]:
        """What is different when one of them is."""
        return list(map(self._get, self._names))


class Grounds(NamedTuple):
    """Folders, files and variables, as they were when an answer was found."""

    folders: Mapping[str, Standing | None]
    files: Mapping[str, Stamp | None] = {}
    variables: tuple[tuple[Variables, list[object]], ...] = ()

    def hold(self) -> bool:
        """Whether all is as it was."""
        for variables, values in self.variables:
            if variables.now() != values:
                return False
        for file, stamp in self.files.items():
            if standing.stamp(file) != stamp:
                return False
        return standing.same(self.folders)

    def joined(self, other: "Grounds") -> "Grounds | None":
        """Those of two answers, each looked at once; None if a folder changed between the two."""
        if any(other.folders.get(folder, was) != was for folder, was in self.folders.items()):
            return None
        return Grounds(
            {**self.folders, **other.folders}, {**self.files, **other.files}, self.variables + other.variables
        )
