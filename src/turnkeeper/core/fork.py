"""Fork: the copy of a history under new ids, with every link inside it pointing into the copy."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from msgspec.structs import replace

from turnkeeper.core.usage import add_tokens
from turnkeeper.model.event import MessageRecorded
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.parts import CompactionPart, FilePart, Part, StepFinishPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.session import ZERO_TOKENS, Tokens

P = TypeVar("P", bound=BasePart)


class Copier:
    """Copies messages one by one into another session. Give them in order: links point back."""

    def __init__(self, session_id: str, message_id: Callable[[], str], part_id: Callable[[], str]) -> None:
        self._session_id, self._message_id, self._part_id = session_id, message_id, part_id
        self._new: dict[str, str] = {}
        self._steps = _Totals()
        self._turns = _Totals()

    def copy(self, message: Message, parts: Iterable[Part]) -> MessageRecorded:
        """The event that records the copy of one message with its parts."""
        new = self._new[message.id] = self._message_id()
        changes: dict[str, object] = {"id": new, "session_id": self._session_id, "seq": 0}
        if isinstance(message, AssistantMessage):
            changes["parent_id"] = self._new.get(message.parent_id, message.parent_id)
            self._turns.add(message.cost, message.tokens)
        return MessageRecorded(message=message.but(**changes), parts=tuple(self._part(part, new) for part in parts))

    @property
    def cost(self) -> int | float:
        """What the copied history cost when it was made."""
        return self._counted.cost

    @property
    def tokens(self) -> Tokens:
        """What the copied history used when it was made."""
        return self._counted.tokens

    @property
    def _counted(self) -> "_Totals":
        # Old histories have no step-finish parts; there the messages' own figures are all there is.
        return self._steps if self._steps.count else self._turns

    def _part(self, part: Part, message_id: str) -> Part:
        own = self._part_id()
        if isinstance(part, StepFinishPart):
            self._steps.add(part.cost, part.tokens)
        elif isinstance(part, CompactionPart) and part.tail_start_id is not None:
            part = part.but(tail_start_id=self._new.get(part.tail_start_id))
        elif isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
            shown, withheld = part.state.attachments, part.state.withheld
            if shown or withheld:
                files = {"attachments": self._files(shown, message_id), "withheld": self._files(withheld, message_id)}
                part = part.but(state=part.state.but(**files))
        return self._placed(part, own, message_id)

    def _files(self, files: tuple[FilePart, ...] | None, message_id: str) -> tuple[FilePart, ...] | None:
        return tuple(self._placed(file, self._part_id(), message_id) for file in files) if files else files

    def _placed(self, part: P, own: str, message_id: str) -> P:
        return replace(part, id=own, session_id=self._session_id, message_id=message_id, seq=0, nth=0)


class _Totals:
    """Usage added up."""

    def __init__(self) -> None:
        self.count, self.cost, self.tokens = 0, 0.0, ZERO_TOKENS

    def add(self, cost: int | float, tokens: Tokens) -> None:
        self.count += 1
        self.cost += cost
        self.tokens = add_tokens(self.tokens, tokens)
