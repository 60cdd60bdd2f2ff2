"""Resolve the parts of a prompt: what the user named becomes what the model can read, before anything is admitted."""

from collections.abc import Sequence
from dataclasses import dataclass

from turnkeeper.mint import Mint
from turnkeeper.model.agent import Agent
from turnkeeper.model.parts import AgentPart, FilePart, Part, SubtaskPart, TextPart
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, SubtaskInput, TextInput
from turnkeeper.workspace.project import ProjectPlace


@dataclass(frozen=True)
class Resolution:
    """Where a prompt is resolved, and for whom."""

    mint: Mint
    session_id: str
    message_id: str
    place: ProjectPlace
    agent: Agent


async def resolve(parts: Sequence[PartInput], resolution: Resolution) -> tuple[Part, ...]:
    """The parts as they are stored, in the order they were given."""
    return tuple(_resolved(one, resolution) for one in parts)


def _resolved(part: PartInput, at: Resolution) -> Part:
    own = part.id or at.mint.part_id()
    match part:
        case TextInput():
            return TextPart(
                id=own,
                session_id=at.session_id,
                message_id=at.message_id,
                text=part.text,
                synthetic=part.synthetic,
                ignored=part.ignored,
                time=part.time,
                metadata=part.metadata,
            )
        case FileInput():
            return FilePart(
                id=own,
                session_id=at.session_id,
                message_id=at.message_id,
                mime=part.mime,
                filename=part.filename,
                url=part.url,
                source=part.source,
            )
        case AgentInput():
            return AgentPart(
                id=own, session_id=at.session_id, message_id=at.message_id, name=part.name, source=part.source
            )
        case SubtaskInput():
            return SubtaskPart(
                id=own,
                session_id=at.session_id,
                message_id=at.message_id,
                prompt=part.prompt,
                description=part.description,
                agent=part.agent,
                model=part.model,
                command=part.command,
            )
