"""Instruction components: one for each source the instruction service names, so a change re-sends only that one."""

from anyio import to_thread

from turnkeeper.context.component import ContextComponent, Family, Sampling
from turnkeeper.core.system_context import INSTRUCTIONS, revocation
from turnkeeper.core.whole import clean
from turnkeeper.model.context import Absent, Loaded, Sample, Unavailable
from turnkeeper.workspace.fetch import Fetcher
from turnkeeper.workspace.instructions import Source, discover, read

_fetcher = Fetcher()


async def components(sampling: Sampling) -> list[ContextComponent]:
    """The instruction sources in force, in order."""
    sources = await to_thread.run_sync(
        discover,
        sampling.place,
        sampling.instructions,
        sampling.nested,
        sampling.environ,
        sampling.home,
        abandon_on_cancel=True,  # A file system that does not answer must not hold up the turn.
    )
    return [_component(source) for source in sources]


def _component(source: Source) -> ContextComponent:
    async def load(_: Sampling) -> Sample:
        return await _load(source)

    return ContextComponent(INSTRUCTIONS + clean(source.name), load)


async def _load(source: Source) -> Sample:
    try:
        if source.kind == "url":
            text: str | None = await _fetcher.text(source.name)
        else:
            text = await to_thread.run_sync(read, source, abandon_on_cancel=True)
    except OSError as error:
        return Unavailable(reason=str(error))
    if not text:
        return Absent(removal=revocation(source.name))
    return Loaded(
        baseline=f"Instructions from: {source.name}\n{text}",
        update=f"The instructions from {source.name} are now as follows, in place of any earlier version:\n{text}",
    )


INSTRUCTION_FILES = Family(INSTRUCTIONS, components)
