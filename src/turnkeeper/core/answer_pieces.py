"""Pieces: the text of an answer in the order in which it is told, each character once."""

from collections.abc import Iterable, Iterator
from typing import Final

from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import AnyNotification, Delta, MessageUpdated, PartUpdated
from turnkeeper.model.parts import Part, TextPart

BETWEEN_TURNS: Final = "\n\n"
"""What separates the texts of two turns of an answer."""


class AnswerPieces:
    """Takes the notifications of a session, and gives the text of the turns that answer one prompt.

    A subscriber that is slow misses deltas. What they held is taken from the next notification that has the whole text.
    """

    def __init__(self, prompt_id: str) -> None:
        self._prompt_id = prompt_id
        self._turns: set[str] = set()
        self._told: dict[str, int] = {}
        self._last = ""

    def take(self, one: AnyNotification) -> Iterator[str]:
        """The text that a notification adds."""
        match one:
            case MessageUpdated(message=AssistantMessage(parent_id=self._prompt_id, summary=None) as message):
                self._turns.add(message.id)
            case Delta(kind="text", message_id=message_id) if message_id in self._turns:
                yield from self._add(message_id, one.part_id, one.offset, one.delta)
            case PartUpdated(part=TextPart() as part) if part.message_id in self._turns and not part.ignored:
                yield from self._add(part.message_id, part.id, 0, part.text)
            case _:
                pass

    def rest(self, parts: Iterable[Part]) -> Iterator[str]:
        """The text of the answer that no notification had. ``parts`` are those of the whole answer."""
        for part in parts:
            if isinstance(part, TextPart) and not part.ignored:
                yield from self._add(part.message_id, part.id, 0, part.text)

    def _add(self, message_id: str, part_id: str, offset: int, text: str) -> Iterator[str]:
        told = self._told.get(part_id, 0)
        if offset > told or not (fresh := text[told - offset :]):
            return
        self._told[part_id] = told + len(fresh)
        if self._last not in ("", message_id):
            yield BETWEEN_TURNS
        self._last = message_id
        yield fresh
