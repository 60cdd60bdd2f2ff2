"""Upkeep: what is done for a session beside its turns, never in their way. Now: the title."""

import re
from itertools import islice

from turnkeeper.context.texts import text
from turnkeeper.core.history import Entry, History
from turnkeeper.core.lowering import lower
from turnkeeper.core.titles import is_default
from turnkeeper.core.view import SessionView
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import Event, SessionTitled
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import CompactionPart, Part, SubtaskPart, TextPart
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.providers.provider import Provider
from turnkeeper.run.ask import ask, bill
from turnkeeper.store.store import Store

TITLE_MAX = 100
ASKED = "Give a title for this conversation:"

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)


def wants_title(view: SessionView, history: History) -> bool:
    """Whether a session should be named now: a root that nobody named, at its first real message."""
    if view.session.parent_id is not None or not is_default(view.session.title):
        return False
    # Two are enough to know that it was not the first.
    return len(list(islice(filter(_is_real, history.entries), 2))) == 1


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


async def give_title(store: Store, session_id: str, provider: Provider, request: ModelRequest) -> None:
    """Ask for a title and set it, if nobody named the session meanwhile. A failure is nobody's trouble."""
    answer = await ask(provider, request)
    title = cleaned(answer.text)
    paid = bill(request.model, answer.usage, "title")

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
