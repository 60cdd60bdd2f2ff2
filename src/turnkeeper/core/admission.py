"""Admitting a prompt: its events, and the model that will answer it."""

from collections.abc import Callable, Collection, Iterable
from typing import Final

from turnkeeper.core.compaction_events import Ids
from turnkeeper.core.limits import INBOX_MAX, NESTED_MAX, PROMPT_PARTS_MAX
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import Event
from turnkeeper.model.message import MessageTime, ModelChoice, UserMessage, model_choice
from turnkeeper.model.parts import TextPart
from turnkeeper.model.permission import Rule
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Busy, Invalid
from turnkeeper.model.session import NO_VARIANT, SessionModel
from turnkeeper.model.status import Idle

HANDED_OVER_BY: Final = "handedOverBy"
"""Names the agent before, in the metadata of the prompt of the one that goes on."""


def admission_events(
    admitted: e.PromptAdmitted, prompt: Prompt, view: SessionView, instructions: Iterable[str]
) -> list[Event]:
    """The events of an admission, ``admitted`` first. ``instructions`` are instruction files near attached files."""
    message = admitted.message
    if len(view.inbox) >= INBOX_MAX:
        raise Busy(f"{INBOX_MAX} prompts are waiting already; let the session run, or withdraw some")
    events: list[Event] = [admitted]
    if view.session.agent != message.agent:
        events.append(e.AgentSelected(agent=message.agent))
    variant = message.model.variant or NO_VARIANT
    chosen = SessionModel(id=message.model.model_id, provider_id=message.model.provider_id, variant=variant)
    if view.session.model != chosen:
        events.append(e.ModelSelected(model=chosen))
    if prompt.tools:
        rules = tuple(
            Rule(permission=tool, pattern="*", action="allow" if on else "deny") for tool, on in prompt.tools.items()
        )
        events.append(e.PermissionsSet(rules=rules))
    if prompt.no_reply and view.turn is None and isinstance(view.status, Idle):
        events.append(e.PromptPromoted(message_id=message.id))
    return [*events, *discovered(instructions, view.instructions)]


def check_content(prompt: Prompt) -> None:
    """Raise Invalid if there is nothing to answer: an answer costs money. A note needs none, and may be empty."""
    if not 0 < len(prompt.parts) <= PROMPT_PARTS_MAX:
        raise Invalid(f"a prompt needs at least one part, and has {PROMPT_PARTS_MAX} at the most")
    if not prompt.no_reply and all(isinstance(part, TextInput) and not part.text.strip() for part in prompt.parts):
        raise Invalid("the prompt is empty; write something, or attach a file")


def handed_over(agent: Agent, words: str, before: UserMessage, view: SessionView, ids: Ids, now: int) -> list[Event]:
    """The events by which an agent is given a prompt of the program, after one of the user."""
    message = UserMessage(
        id=ids.message_id(),
        session_id=before.session_id,
        time=MessageTime(created=now),
        agent=agent.name,
        model=agent.choice or before.model,
    )
    part = TextPart(
        id=ids.part_id(),
        session_id=message.session_id,
        message_id=message.id,
        text=words,
        synthetic=True,
        metadata={HANDED_OVER_BY: before.agent},
    )
    admitted = e.PromptAdmitted(message=message, parts=(part,), delivery="steer")
    return admission_events(admitted, Prompt(parts=()), view, ())


def handed_over_by(part: object) -> str | None:
    """The agent that lets another one go on with this prompt; None for the part of any other prompt."""
    by = part.metadata.get(HANDED_OVER_BY) if isinstance(part, TextPart) and part.metadata else None
    return by if isinstance(by, str) else None


def model_of(
    prompt: Prompt, agent: Agent, last: SessionModel | None, fallback: Callable[[], ModelChoice]
) -> ModelChoice:
    """The prompt's model, else the agent's, else the session's, else the fallback.

    The agent's variant belongs to the agent's model, also if the prompt names that model.
    """
    chosen = prompt.model or agent.model
    if chosen is not None:
        own = agent.variant if chosen.but(variant=None) == agent.model else None
        return chosen.but(variant=prompt.variant or chosen.variant or own)
    if last is not None:
        kept = model_choice(last)
        return kept.but(variant=prompt.variant or kept.variant)
    return fallback().but(variant=prompt.variant)


def discovered(found: Iterable[str], known: Collection[str]) -> list[e.InstructionDiscovered]:
    """The events for instruction files that a session does not follow yet, up to NESTED_MAX."""
    fresh = [path for path in found if path not in known]
    return [e.InstructionDiscovered(path=path) for path in fresh[: max(0, NESTED_MAX - len(known))]]
