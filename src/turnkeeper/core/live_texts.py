"""Live texts: the text of open parts reaches subscribers once and in order, whichever way it comes.

It comes in three ways: this process streams it itself, another process sends it as passing messages, and the log has it
a moment later. Messages may be lost, late or early; the log is complete and in order. So a delta is cut where it
overlaps what was published, and one that would leave a gap is held until the log or another delta has closed it.
"""

from typing import Final

from turnkeeper.model.notification import Delta

PARTS_MAX: Final = 1024
"""Parts whose length is remembered. A process streams far fewer at a time."""
HELD_MAX: Final = 1_000_000
"""The weight of all deltas that are held; the parts that have waited longest are given up. The log has their text."""
WEIGHT: Final = 200
"""The weight of a delta besides its characters."""


class LiveTexts:
    """How many characters of each open part were published, and the deltas that cannot be published yet."""

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._held: dict[str, list[Delta]] = {}
        self.weight = 0
        """Of all deltas that are held."""

    def is_told(self, part_id: str) -> bool:
        """Whether a part is open and subscribers know of it."""
        return part_id in self._told

    def began(self, part_id: str, length: int) -> list[Delta]:
        """An open part was published with so many characters; the held deltas that follow."""
        return self._told_up_to(part_id, max(self._told.get(part_id, 0), length))

    def streamed(self, delta: Delta) -> None:
        """This process has published a delta of its own."""
        self._remember(delta.part_id, delta.offset + len(delta.delta))

    def logged(self, delta: Delta) -> list[Delta]:
        """The log has more text of an open part; what of it was not published yet, and the held deltas that follow."""
        told = max(self._told.get(delta.part_id, 0), delta.offset)
        fresh = _after(delta, told)
        following = self._told_up_to(delta.part_id, max(told, delta.offset + len(delta.delta)))
        return [*fresh, *following]

    def heard(self, delta: Delta, durable: int | None) -> list[Delta]:
        """A delta of another process; what can be published now.

        ``durable`` is how many characters of the part this process has read in the log; None if it knows of no such
        open part.
        """
        told = max(self._told.get(delta.part_id, 0), durable or 0)
        if durable is not None and delta.part_id not in self._held and delta.offset <= told:
            self._remember(delta.part_id, max(told, delta.offset + len(delta.delta)))
            return _after(delta, told)
        self._hold(delta)
        return self._told_up_to(delta.part_id, told) if durable is not None else []

    def ended(self, part_id: str) -> None:
        """A part was published as a whole, or is gone."""
        self._told.pop(part_id, None)
        self._release(part_id)

    def rested(self, session_id: str) -> None:
        """A session has no open parts any more."""
        for part_id in [part_id for part_id, held in self._held.items() if held[0].session_id == session_id]:
            self._release(part_id)

    def _told_up_to(self, part_id: str, told: int) -> list[Delta]:
        """The held deltas that can be published once ``told`` characters were."""
        fresh: list[Delta] = []
        for one in self._release(part_id):
            if one.offset > told:
                self._hold(one)
                continue
            fresh += _after(one, told)
            told = max(told, one.offset + len(one.delta))
        self._remember(part_id, told)
        return fresh

    def _remember(self, part_id: str, told: int) -> None:
        self._told.pop(part_id, None)  # Moved to the end: the first is the one that has not grown for longest.
        self._told[part_id] = told
        if len(self._told) > PARTS_MAX:
            del self._told[next(iter(self._told))]

    def _hold(self, delta: Delta) -> None:
        self._held.setdefault(delta.part_id, []).append(delta)
        self.weight += len(delta.delta) + WEIGHT
        while self.weight > HELD_MAX:
            self._release(next(iter(self._held)))

    def _release(self, part_id: str) -> list[Delta]:
        held = self._held.pop(part_id, [])
        self.weight -= sum(len(one.delta) + WEIGHT for one in held)
        return held


def joined(deltas: list[Delta]) -> list[Delta]:
    """Fewer deltas with the same text: those of a part that follow each other become one."""
    runs: dict[str, list[list[Delta]]] = {}
    for one in deltas:
        of_part = runs.setdefault(one.part_id, [])
        if of_part and of_part[-1][-1].offset + len(of_part[-1][-1].delta) == one.offset:
            of_part[-1].append(one)
        else:
            of_part.append([one])
    return [run[0].but(delta="".join([one.delta for one in run])) for of_part in runs.values() for run in of_part]


def _after(delta: Delta, told: int) -> list[Delta]:
    """The rest of a delta after the first ``told`` characters of the part; empty if all of it was published."""
    if delta.offset == told:
        return [delta]
    text = delta.delta[max(told - delta.offset, 0) :]
    return [delta.but(delta=text, offset=max(told, delta.offset))] if text else []
