"""Preferences of the full screen: the theme, in a file of the data directory."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turnkeeper.workspace import files, paths

FILE: Final = "screen-theme"


class Preferences:
    """The stored theme. Without a data directory nothing is stored."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        try:
            self._path: Path | None = paths.data(environ) / FILE
        except ValueError:
            self._path = None

    @property
    def theme(self) -> str | None:
        """The name of the last chosen theme."""
        try:
            return self._path.read_text("utf-8", "replace").strip() or None if self._path is not None else None
        except OSError:
            return None

    def choose(self, theme: str) -> None:
        """Store the name of a theme."""
        if self._path is None or theme == self.theme:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            files.write_whole(self._path, f"{theme}\n".encode())
        except OSError:
            return  # The theme is then used for this screen only.
