"""Instruction components: one for each source the instruction service names, so a change re-sends only that one."""

from anyio import to_thread

from turnkeeper.context.component import ContextComponent, Family, Sampling
from turnkeeper.core.system_context import INSTRUCTIONS, revocation
from turnkeeper.model.context import Absent, Loaded, Sample, Unavailable
from turnkeeper.text.surrogates import clean
from turnkeeper.workspace.fetch import Fetcher
from turnkeeper.workspace.instructions import InstructionSource, discover, read

_fetcher = Fetcher()


async def components(sampling: Sampling) -> list[ContextComponent]:
    """The instruction sources in force, in order. Files are read here, all at once."""
    if sampling.instructions:
        # A pattern may lead through a whole tree.
        sources = await to_thread.run_sync(_discovered, sampling, abandon_on_cancel=True)
    else:
        sources = _discovered(sampling)
    files = [source for source in sources if source.kind == "file"]
    # A file system that does not answer must not hold up the turn.
    found = await to_thread.run_sync(_read_all, files, abandon_on_cancel=True) if files else {}
    return [_component(source, found.get(source.name)) for source in sources]


def _discovered(sampling: Sampling) -> list[InstructionSource]:
    return discover(sampling.place, sampling.instructions, sampling.nested, sampling.environ, sampling.home)


def _read_all(files: list[InstructionSource]) -> dict[str, Sample]:
    return {source.name: _read(source) for source in files}


def _read(source: InstructionSource) -> Sample:
    try:
        return _sample(source, read(source))
    except OSError as error:
        return Unavailable(reason=str(error))


def _component(source: InstructionSource, known: Sample | None) -> ContextComponent:
    async def load(_: Sampling) -> Sample:
        return known if known is not None else await _fetched(source)

    return ContextComponent(INSTRUCTIONS + clean(source.name), load, waits=known is None)


async def _fetched(source: InstructionSource) -> Sample:
    try:
        return _sample(source, await _fetcher.text(source.name))
    except OSError as error:
        return Unavailable(reason=str(error))


def _sample(source: InstructionSource, text: str | None) -> Sample:
    if not text:
        return Absent(removal=revocation(source.name))
    return Loaded(
        baseline=f"Instructions from: {source.name}\n{text}",
        update=f"The instructions from {source.name} are now as follows, in place of any earlier version:\n{text}",
    )


INSTRUCTION_FILES = Family(INSTRUCTIONS, components)
