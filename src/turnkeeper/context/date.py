"""The date component: the user's calendar date. It changes at their midnight, not at the server's."""

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.model.context import Loaded, Sample


async def load(sampling: Sampling) -> Sample:
    """Today. The update says only what holds now, never what held before."""
    today = sampling.now().strftime("%A, %d %B %Y")
    return Loaded(baseline=f"Today's date: {today}", update=f"Today's date is now: {today}")


DATE = ContextComponent("core/date", load, waits=False)
