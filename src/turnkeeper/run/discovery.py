"""Discovery: instruction files near what a tool read become durable with the call that met them, each once."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from turnkeeper.core.limits import NESTED_MAX
from turnkeeper.model.event import InstructionDiscovered
from turnkeeper.workspace.instructions import nearby
from turnkeeper.workspace.project import ProjectPlace


class Discovery:
    """What one turn meets while reading. ``known`` are the files that the session follows already."""

    def __init__(self, place: ProjectPlace, environ: Mapping[str, str], known: Iterable[str]) -> None:
        self._place, self._environ = place, environ
        self._known = set(known)

    def near(self, read: Sequence[Path]) -> list[InstructionDiscovered]:
        """The events for instruction files near these, of which the session does not know yet.

        It never waits: two calls may have met the same file. And the folders were just read from.
        """
        found = [path for one in read for path in nearby(one, self._place, self._environ)]
        fresh = [path for path in dict.fromkeys(found) if path not in self._known]
        fresh = fresh[: max(0, NESTED_MAX - len(self._known))]
        self._known.update(fresh)
        return [InstructionDiscovered(path=path) for path in fresh]
