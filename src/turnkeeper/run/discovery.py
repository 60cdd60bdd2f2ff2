"""Discovery: instruction files near a file that was read become durable with the call or prompt that read it."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from turnkeeper.core.admission import discovered
from turnkeeper.model.event import InstructionDiscovered
from turnkeeper.workspace.instructions import nearby
from turnkeeper.workspace.project import ProjectPlace


class Discovery:
    """The instruction files that one turn discovers while it reads, except those that the session has (``known``)."""

    def __init__(self, place: ProjectPlace, environ: Mapping[str, str], known: Iterable[str]) -> None:
        self._place, self._environ = place, environ
        self._known = set(known)

    def near(self, read: Sequence[Path]) -> list[InstructionDiscovered]:
        """The events for instruction files near these, of which the session does not know yet.

        It never waits: two calls may have met the same file. And the folders were just read from.
        """
        events = discovered(all_near(read, self._place, self._environ), self._known)
        self._known.update(event.path for event in events)
        return events


def all_near(read: Iterable[Path], place: ProjectPlace, environ: Mapping[str, str]) -> list[str]:
    """The instruction files near these files."""
    return list(dict.fromkeys(path for one in read for path in nearby(one, place, environ)))
