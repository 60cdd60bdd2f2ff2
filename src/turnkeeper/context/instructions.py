"""Instruction components: one for each source the instruction service names, so a change re-sends only that one."""

import anyio

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.core.system_context import INSTRUCTIONS, revocation
from turnkeeper.model.context import Absent, Loaded, Sample, Unavailable
from turnkeeper.workspace.fetch import Fetcher
from turnkeeper.workspace.instructions import Source, discover, read

_fetcher = Fetcher()


async def components(sampling: Sampling) -> list[ContextComponent]:
    """The instruction sources in force, in order."""
    sources = await anyio.to_thread.run_sync(
        discover, sampling.place, sampling.instructions, sampling.nested, sampling.environ, sampling.home
    )
    return [_component(source) for source in sources]


def _component(source: Source) -> ContextComponent:
    async def load(_: Sampling) -> Sample:
        return await _load(source)

    return ContextComponent(INSTRUCTIONS + source.name, load)


async def _load(source: Source) -> Sample:
    try:
        text = await (_fetcher.text(source.name) if source.kind == "url" else anyio.to_thread.run_sync(read, source))
    except OSError as error:
        return Unavailable(reason=str(error))
    if not text:
        return Absent(removal=revocation(source.name))
    return Loaded(
        baseline=f"Instructions from: {source.name}\n{text}",
        update=f"The instructions from {source.name} are now, in place of their earlier version:\n{text}",
    )
