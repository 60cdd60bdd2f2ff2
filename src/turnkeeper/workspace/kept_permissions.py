"""Kept permissions: the permission bits of captured files, which git's trees do not have.

Only unusual ones are kept, such as those of a private key: a file that is deleted and comes back must not become
readable for others. They are those of the newest capture that had the file.
"""

import json
import os
from collections.abc import Mapping
from typing import Final

from turnkeeper.core.limits import SNAPSHOT_PERMISSIONS_MAX
from turnkeeper.workspace import files
from turnkeeper.workspace.shadow import ShadowPlace

_FILE: Final = "permissions"
_BITS: Final = 0o777
_USUAL: Final = frozenset({0o644, 0o664, 0o755, 0o775})


def read(place: ShadowPlace) -> dict[str, int]:
    """The unusual permissions of files, by their names."""
    try:
        found = json.loads((place.git_dir / _FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return {name: bits for name, bits in found.items() if isinstance(bits, int)} if isinstance(found, dict) else {}


def note(place: ShadowPlace, captured: Mapping[bytes, int]) -> None:
    """Record the unusual permissions of captured files."""
    if not captured:
        return
    before = read(place)
    after = dict(before)
    for name, mode in captured.items():
        bits = mode & _BITS
        if bits in _USUAL:
            after.pop(os.fsdecode(name), None)
        elif len(after) < SNAPSHOT_PERMISSIONS_MAX:
            after[os.fsdecode(name)] = bits
    if after != before:
        with files.replacing(place.git_dir / _FILE) as file:
            file.write(json.dumps(after).encode("ascii"))
