"""The skills component: the skills that the agent may use, by name and description."""

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.texts import text
from turnkeeper.core.skills import listing, usable
from turnkeeper.model.context import Absent, Loaded, Sample


async def load(sampling: Sampling) -> Sample:
    """The list of the described skills that no rule denies; absent if there are none."""
    found = listing(usable(sampling.skills, sampling.rules))
    if found is None:
        return Absent(removal=text("skills_none"))
    return Loaded(baseline=f"{text('skills')}\n{found}", update=f"{text('skills_changed')}\n{found}")


SKILLS = ContextComponent("core/skills", load, waits=False)
