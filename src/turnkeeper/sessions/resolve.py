"""Resolve the parts of a prompt: what the user named becomes what the model can read, before anything is admitted."""

from collections.abc import Sequence
from typing import assert_never

import anyio
import msgspec

from turnkeeper.core.limits import RESOLVED_PARALLEL_MAX
from turnkeeper.core.permission import evaluate
from turnkeeper.mint import Mint
from turnkeeper.model.identifier import check
from turnkeeper.model.parts import AgentPart, Part, SubtaskPart, TextPart
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, SubtaskInput, TextInput
from turnkeeper.model.refusal import Invalid, Refusal
from turnkeeper.sessions.attach import UNNAMED, Attaching

HINT = "Write a prompt out of what the user says above, and call the task tool with it and the subagent {name}."
DENIED = "A rule keeps you from calling this agent by yourself; here the user asks for it, so it exists and will run."


class Resolution(msgspec.Struct, frozen=True):
    """For whom a prompt is resolved, and how its files are attached."""

    mint: Mint
    attaching: Attaching
    rules: Ruleset
    """What the agent that is spoken to may do."""


async def resolve(parts: Sequence[PartInput], at: Resolution) -> tuple[Part, ...]:
    """The parts as they are stored, in the order they were given, whichever was ready first.

    Raises Invalid, of the first part that is wrong.
    """
    _check_ids(parts)
    found: list[list[Part] | Refusal] = [[] if isinstance(one, FileInput) else _as_given(one, at) for one in parts]
    files = [(number, part) for number, part in enumerate(parts) if isinstance(part, FileInput)]
    if files:
        limiter = anyio.CapacityLimiter(RESOLVED_PARALLEL_MAX)

        async def one(number: int, part: FileInput) -> None:
            async with limiter:
                try:
                    found[number] = await at.attaching.attach(part)
                except Refusal as refusal:
                    found[number] = refusal

        async with anyio.create_task_group() as group:
            for number, part in files:
                group.start_soon(one, number, part)
    stored: list[Part] = []
    for result in found:
        if isinstance(result, Refusal):
            raise result
        stored += result
    # Named last, so that ids too are in the order of the parts.
    return tuple(part if part.id else part.but(id=at.mint.part_id()) for part in stored)


def _check_ids(parts: Sequence[PartInput]) -> None:
    ids = [part.id for part in parts if part.id is not None]
    if len(set(ids)) < len(ids):
        raise Invalid("two parts of the prompt have the same id; leave the ids out, and they are given new ones")
    for one in ids:
        try:
            check("part", one)
        except ValueError as error:
            raise Invalid(str(error)) from error


def _as_given(part: TextInput | AgentInput | SubtaskInput, at: Resolution) -> list[Part]:
    own, session_id, message_id = part.id or UNNAMED, at.attaching.session_id, at.attaching.message_id
    match part:
        case TextInput():
            text = TextPart(
                id=own,
                session_id=session_id,
                message_id=message_id,
                text=part.text,
                synthetic=part.synthetic,
                ignored=part.ignored,
                time=part.time,
                metadata=part.metadata,
            )
            return [text]
        case AgentInput(name=name):
            agent = AgentPart(id=own, session_id=session_id, message_id=message_id, name=name, source=part.source)
            hint = HINT.format(name=name)
            is_denied = evaluate(at.rules, "task", name) == "deny"
            return [agent, at.attaching.said(f"{hint} {DENIED}" if is_denied else hint)]
        case SubtaskInput():
            subtask = SubtaskPart(
                id=own,
                session_id=session_id,
                message_id=message_id,
                prompt=part.prompt,
                description=part.description,
                agent=part.agent,
                model=part.model,
                command=part.command,
            )
            return [subtask]
        case _:
            assert_never(part)
