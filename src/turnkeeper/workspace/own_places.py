"""Own places: the files and folders of this program that lie among the files of a project.

They are the store and the data directory. They are part of no snapshot, of no difference and of no restore: undoing a
turn must never put an old state of the store back.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class OwnPlaces(NamedTuple):
    """The names of own files and folders, relative to the top of a project."""

    names: tuple[bytes, ...] = ()

    @classmethod
    def below(cls, root: Path, places: Iterable[Path]) -> "OwnPlaces":
        """The places that are below a top. Links are followed, as writing to them follows links."""
        top = Path(os.path.realpath(root))
        found = (Path(os.path.realpath(place)) for place in places)
        names = {os.fsencode(place.relative_to(top)) for place in found if place != top and place.is_relative_to(top)}
        return cls(tuple(sorted(names)))

    def has(self, name: str | bytes) -> bool:
        """Whether a name is an own place, or in one."""
        asked = os.fsencode(name)
        return any(asked == own or asked.startswith(own + b"/") for own in self.names)
