"""Upkeep: what is done for a session beside its turns, never in their way. Now: the title."""

import re
from collections.abc import Sequence

from turnkeeper.context.texts import text
from turnkeeper.core.history import Entry, History
from turnkeeper.core.lowering import lower
from turnkeeper.core.titles import is_default, prompt_title
from turnkeeper.core.view import SessionView
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import Event, SessionTitled, UsageRecorded
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import CompactionPart, Part, SubtaskPart, TextPart
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.model.value import Value
from turnkeeper.providers.provider import Provider
from turnkeeper.run.ask import ask, bill
from turnkeeper.store.store import Store

TITLE_MAX = 100
ASKED = "Give a title for this conversation:"

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


def wants_title(view: SessionView, history: History) -> bool:
    """Whether a session should be named now: a root without a name, once the user has said something.

    Mostly that is the first prompt. A later one finds no name if the process ended before the first one was given.
    """
    if view.session.parent_id is not None or not is_default(view.session.title):
        return False
    return any(map(_is_real, history.entries))


def title_request(history: History, model: ModelInfo, temperature: float | None) -> ModelRequest:
    """What a small model is asked for a title."""
    first = next(entry for entry in history.entries if _is_real(entry))
    subtasks = [part.prompt for part in first.parts if isinstance(part, SubtaskPart)]
    said = (UserTurn(content=(Text(text="\n".join(subtasks)),)),) if subtasks else lower([first], model)
    return ModelRequest(
        model=model,
        system=(text("title"),),
        messages=(UserTurn(content=(Text(text=ASKED),)), *said),
        temperature=temperature if model.temperature else None,
        session_id=first.message.session_id,
    )


def cleaned(answer: str) -> str | None:
    """The title in a model's answer: its first line that says something, cut to size; None if there is none."""
    lines = (line.strip() for line in _THOUGHT.sub("", answer).splitlines())
    title = next((line for line in lines if line), None)
    if title is not None and len(title) > TITLE_MAX:
        return title[: TITLE_MAX - 3] + "..."
    return title


def own_title(history: History) -> str | None:
    """A title made of the first thing the user said, for when no model gives one."""
    first = next(entry for entry in history.entries if _is_real(entry))
    texts = [part.text for part in first.parts if isinstance(part, TextPart) and not part.synthetic]
    return prompt_title("\n".join(texts))


class Titling(Value):
    """What came of asking a model for a title: the title, if it gave one, and the rows of the ledger."""

    title: str | None = None
    paid: tuple[UsageRecorded, ...] = ()


async def ask_title(provider: Provider, request: ModelRequest) -> Titling:
    """Ask a model for a title. What a provider does wrong is never raised: then there is no title."""
    answer = await ask(provider, request)
    return Titling(title=cleaned(answer.text), paid=tuple(bill(request.model, answer.usage, "title")))


async def set_title(store: Store, session_id: str, title: str | None, paid: Sequence[UsageRecorded]) -> None:
    """Record a title, unless the session was named meanwhile, and what it cost."""

    def decide(view: SessionView) -> list[Event]:
        named: list[Event] = [SessionTitled(title=title)] if title and is_default(view.session.title) else []
        return [*paid, *named]

    await store.journal.change(session_id, decide)


def _is_real(entry: Entry) -> bool:
    """Whether the user said something here, and not the runtime in their name."""
    if not isinstance(entry.message, UserMessage):
        return False
    return not all(isinstance(part, CompactionPart) or _is_synthetic(part) for part in entry.parts)


def _is_synthetic(part: Part) -> bool:
    return isinstance(part, TextPart) and bool(part.synthetic)
