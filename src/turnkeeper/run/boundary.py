"""The Safe Provider-Turn Boundary: just before a turn, prompts promoted and calls settled, the epoch is made to fit.

A Context Epoch holds one baseline, stored by key and reused word for word. It begins with the first turn and anew when
the model or the place changes.
"""

from hashlib import sha256

from turnkeeper.context.environment import environment
from turnkeeper.context.texts import text
from turnkeeper.core.view import SessionView
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.context import ComponentText, Epoch
from turnkeeper.model.event import EpochStarted
from turnkeeper.run.pen import Pen
from turnkeeper.workspace.project import ProjectPlace


async def cross(pen: Pen, view: SessionView, model: ModelInfo, agent: Agent, place: ProjectPlace) -> Epoch:
    """The epoch this turn runs in; at most one append."""
    baseline = (
        ComponentText(key="core/prompt", text=agent.prompt or text("base")),
        ComponentText(key="core/environment", text=environment(place)),
    )
    epoch = view.epoch
    if epoch is not None and (epoch.provider_id, epoch.model_id) == (model.provider_id, model.id):
        return epoch
    started = Epoch(
        number=epoch.number + 1 if epoch is not None else 1,
        reason="start" if epoch is None else "model",
        provider_id=model.provider_id,
        model_id=model.id,
        baseline=baseline,
        checkpoint={one.key: sha256(one.text.encode()).hexdigest()[:32] for one in baseline},
    )
    await pen.append(EpochStarted(epoch=started))
    return started
