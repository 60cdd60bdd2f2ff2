"""The environment component: model, directories and platform."""

import platform

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.model.context import Loaded, Sample


async def load(sampling: Sampling) -> Sample:
    """The ``<env>`` block."""
    place = sampling.place
    block = "\n".join(
        [
            "<env>",
            f"  Model: {sampling.model.provider_id}/{sampling.model.id}",
            f"  Working directory: {place.directory}",
            f"  Project root: {place.worktree}",
            f"  Is a git repository: {'yes' if place.vcs else 'no'}",
            f"  Platform: {platform.system().lower()}",
            "</env>",
        ]
    )
    return Loaded(baseline=block, update=f"The environment is now:\n{block}")


ENVIRONMENT = ContextComponent("core/environment", load, waits=False)
