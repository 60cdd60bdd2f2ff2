"""The assistant message that a turn begins with."""

from turnkeeper.mint import Mint
from turnkeeper.model.message import AssistantMessage, AssistantTime, TurnPath, UserMessage
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.workspace.project import ProjectPlace


def answer_to(user: UserMessage, place: ProjectPlace, mint: Mint) -> AssistantMessage:
    """An assistant message that is still empty."""
    return AssistantMessage(
        id=mint.message_id(),
        session_id=user.session_id,
        time=AssistantTime(created=mint.now()),
        parent_id=user.id,
        model_id=user.model.model_id,
        provider_id=user.model.provider_id,
        variant=user.model.variant,
        mode=user.agent,
        agent=user.agent,
        path=TurnPath(cwd=str(place.directory), root=str(place.worktree)),
        cost=0,
        tokens=ZERO_TOKENS,
    )
