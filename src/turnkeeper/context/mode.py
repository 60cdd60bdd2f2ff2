"""The mode component: whether the agent plans or may change files."""

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.texts import text
from turnkeeper.core.agents import PLAN
from turnkeeper.model.context import Loaded, Sample


async def load(sampling: Sampling) -> Sample:
    """Planning has a baseline. Building is the default mode, so it has only an update, for a switch from planning."""
    if sampling.agent.name == PLAN:
        return Loaded(baseline=text("plan"), update=text("plan"))
    return Loaded(baseline="", update=text("build"))


MODE = ContextComponent("core/mode", load, waits=False)
