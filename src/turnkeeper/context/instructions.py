"""Instruction components: one for each instruction source, so that a change sends only that source again."""

from anyio import to_thread

from turnkeeper.context.component import ContextComponent, Family, Sampling
from turnkeeper.core.system_context import INSTRUCTIONS, revocation
from turnkeeper.model.context import Absent, Loaded, Sample, Unavailable
from turnkeeper.text.surrogates import clean
from turnkeeper.workspace.fetch import Fetcher
from turnkeeper.workspace.instructions import InstructionSource, discover, read

_fetcher = Fetcher()


async def components(sampling: Sampling) -> list[ContextComponent]:
    """The components of the current instruction sources, in order. Files are read here, in one thread."""
    if sampling.instructions:
        # A pattern may search a large tree.
        sources = await to_thread.run_sync(_discovered, sampling, abandon_on_cancel=True)
    else:
        sources = _discovered(sampling)
    files = [source for source in sources if source.kind == "file"]
    # A file system that does not respond must not block the event loop.
    found = await to_thread.run_sync(_read_all, files, abandon_on_cancel=True) if files else {}
    return [_component(source, found.get(source.name)) for source in sources]


def _discovered(sampling: Sampling) -> list[InstructionSource]:
    return discover(sampling.place, sampling.instructions, sampling.nested, sampling.environ, sampling.home)


def _read_all(files: list[InstructionSource]) -> dict[str, Sample]:
    found: dict[str, Sample] = {}
    for source in files:
        try:
            found[source.name] = _sample(source, read(source))
        except OSError as error:
            found[source.name] = Unavailable(reason=str(error))
    return found


def _component(source: InstructionSource, known: Sample | None) -> ContextComponent:
    """The component of a source: the sample of a file that was read, or a URL that is fetched when it is loaded."""

    async def load(_: Sampling) -> Sample:
        if known is not None:
            return known
        try:
            return _sample(source, await _fetcher.text(source.name))
        except OSError as error:
            return Unavailable(reason=str(error))

    return ContextComponent(INSTRUCTIONS + clean(source.name), load, waits=known is None)


def _sample(source: InstructionSource, text: str | None) -> Sample:
    if not text:
        return Absent(removal=revocation(source.name))
    return Loaded(
        baseline=f"Instructions from: {source.name}\n{text}",
        update=f"The instructions from {source.name} are now as follows, in place of any earlier version:\n{text}",
    )


INSTRUCTION_FILES = Family(INSTRUCTIONS, components)
