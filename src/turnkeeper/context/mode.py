"""The mode component: whether the agent may change things. Told when it is switched, once."""

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.texts import text
from turnkeeper.model.context import Loaded, Sample

PLAN = "plan"


async def load(sampling: Sampling) -> Sample:
    """Planning is announced at once; working is what everyone expects, so it is news only after planning."""
    if sampling.agent.name == PLAN:
        return Loaded(baseline=text("plan"), update=text("plan"))
    return Loaded(baseline="", update=text("build"))


MODE = ContextComponent("core/mode", load, waits=False)
