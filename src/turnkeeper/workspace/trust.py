"""Trusted directories: ``trust.json`` in the data directory, and the variable that trusts all of them.

The configuration of a project that is not trusted can only narrow what may happen (``core.trust``).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turnkeeper.workspace import paths
from turnkeeper.workspace.private_json import PrivateJson

NAME: Final = "trust.json"
VARIABLE: Final = "TURNKEEPER_TRUST"


class TrustedDirectories:
    """The directories that a user trusts, with everything in them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.file = PrivateJson(paths.data(environ) / NAME, list[str], [], advice="; delete it to trust no directory")

    def __contains__(self, path: Path) -> bool:
        """Whether a file or directory is trusted, with links resolved."""
        if self._environ.get(VARIABLE, "").lower() in ("1", "true"):
            return True
        place = Path(os.path.realpath(path))
        return any(place.is_relative_to(directory) for directory in self.all())

    def all(self) -> list[str]:
        """The trusted directories. Raises Invalid if their file is damaged."""
        return self.file.read()

    def add(self, directory: Path) -> str:
        """Trust a directory; returns its path with links resolved."""
        place = os.path.realpath(directory)
        self.file.change(lambda known: sorted({*known, place}))
        return place

    def remove(self, directory: Path) -> bool:
        """Trust a directory no longer; whether it was trusted itself."""
        place = os.path.realpath(directory)
        was_trusted = place in self.all()
        self.file.change(lambda known: [one for one in known if one != place])
        return was_trusted
