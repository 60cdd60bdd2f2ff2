"""The date component: the calendar date in the timezone of the user."""

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.model.context import Loaded, Sample


async def load(sampling: Sampling) -> Sample:
    """The date of today. The update has no earlier date."""
    today = sampling.now().strftime("%A, %d %B %Y")
    return Loaded(baseline=f"Today's date: {today}", update=f"Today's date is now: {today}")


DATE = ContextComponent("core/date", load, waits=False)
