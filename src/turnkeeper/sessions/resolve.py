"""Resolve the parts of a prompt before its admission: files become texts and images, mentions become hints."""

from collections.abc import Mapping, Sequence
from typing import assert_never

import anyio
import msgspec

from turnkeeper.core.agents import find_agent
from turnkeeper.core.child_rules import TASK
from turnkeeper.core.limits import RESOLVED_PARALLEL_MAX
from turnkeeper.core.permission import evaluate
from turnkeeper.mint import Mint
from turnkeeper.model.agent import Agent
from turnkeeper.model.identifier import check
from turnkeeper.model.parts import AgentPart, Part, SubtaskPart, TextPart
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, SubtaskInput, TextInput
from turnkeeper.model.refusal import Invalid, Refusal
from turnkeeper.sessions.attach import Attaching

HINT = "Write a prompt out of what the user says above, and call the task tool with it and the subagent {name}."
ALONE = "The user asks for the agent {name} here. No tool can call it, so do its work yourself."
DENIED = "A rule keeps you from calling this agent by yourself; here the user asks for it, so it exists and will run."


class Resolution(msgspec.Struct, frozen=True):
    """The inputs of resolving a prompt."""

    mint: Mint
    attaching: Attaching
    rules: Ruleset = ()
    """The permission rules of the agent of the prompt."""
    agents: Mapping[str, Agent] = {}
    """The agents that can be mentioned."""
    has_task: bool = False
    """Whether the task tool is registered."""


async def resolve(parts: Sequence[PartInput], at: Resolution) -> tuple[Part, ...]:
    """The stored parts, in the order of the prompt. Raises the refusal of the first wrong part."""
    _check_ids(parts)
    files = [part for part in parts if isinstance(part, FileInput)]
    attached = iter(await _attached(files, at) if files else ())
    stored: list[Part] = []
    # Ids are minted after files were read concurrently, so that they have the order of the parts.
    for part in parts:
        found = next(attached) if isinstance(part, FileInput) else _as_given(part, at)
        if isinstance(found, Refusal):
            raise found
        stored += [one if one.id else one.but(id=at.mint.part_id()) for one in found]
    return tuple(stored)


async def _attached(files: Sequence[FileInput], at: Resolution) -> list[list[Part] | Refusal]:
    """The parts or the refusal of each file, in order."""
    found: list[list[Part] | Refusal] = [[] for _ in files]
    limiter = anyio.CapacityLimiter(RESOLVED_PARALLEL_MAX)

    async def attach(number: int, file: FileInput) -> None:
        async with limiter:
            try:
                found[number] = await at.attaching.attach(file)
            except Refusal as refusal:
                found[number] = refusal

    async with anyio.create_task_group() as group:
        for number, file in enumerate(files):
            group.start_soon(attach, number, file)
    return found


def _check_ids(parts: Sequence[PartInput]) -> None:
    ids = [part.id for part in parts if part.id is not None]
    if not ids:
        return
    if len(set(ids)) < len(ids):
        raise Invalid("two parts of the prompt have the same id; leave the ids out, and they are given new ones")
    for one in ids:
        try:
            check("part", one)
        except ValueError as error:
            raise Invalid(str(error)) from error


def _as_given(part: TextInput | AgentInput | SubtaskInput, at: Resolution) -> list[Part]:
    session_id, message_id = at.attaching.session_id, at.attaching.message_id
    own = part.id or at.mint.part_id()
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
            find_agent(at.agents, name)
            agent = AgentPart(id=own, session_id=session_id, message_id=message_id, name=name, source=part.source)
            return [agent, at.attaching.said(_hint(name, at))]
        case SubtaskInput():
            find_agent(at.agents, part.agent)
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


def _hint(name: str, at: Resolution) -> str:
    """The text for the model about a mentioned agent."""
    if not at.has_task:
        return ALONE.format(name=name)
    hint = HINT.format(name=name)
    return f"{hint} {DENIED}" if evaluate(at.rules, TASK, name) == "deny" else hint
