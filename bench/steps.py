"""What a step costs us in a long run of tool calls, and whether the hundredth costs more than the first."""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from msgspec.structs import replace

import turnkeeper
from bench.measure import Figure, ms
from bench.provider import a_prompt, talking
from turnkeeper.run.runtime import Settings
from turnkeeper.tools import load
from turnkeeper.tools.read import ReadArguments
from turnkeeper.tools.tool import AnyTool, ToolContext, ToolOutput

RUNS, STEPS, WARM_UP, ENDS = 5, 100, 5, 20
FILES = 50


async def measure(folder: Path) -> list[Figure]:
    """A step is an answer with one call of ``read``, its result on record, and the next request.

    CPU of our process, and not time, for the machine has other work; the median of each place in several runs counts.
    """
    for number in range(FILES):
        (folder / f"{number}.txt").write_text(f"This is file {number}.\n" * 40)
    watch = _Watch()
    settings = Settings(titles=False, tools=watch.tools)
    async with (
        talking(folder, 1, steps=STEPS, files=FILES),
        turnkeeper.open(f"sqlite:{folder / 'steps.db'}", directory=folder, settings=settings) as tk,
    ):
        runs: list[list[float]] = []
        for _ in range(RUNS):
            session = await tk.create()
            watch.moments.clear()
            await tk.prompt(session.id, a_prompt())
            await tk.wait(session.id)
            assert len(watch.moments) == STEPS, f"{len(watch.moments)} calls ran"
            runs.append([later - earlier for earlier, later in zip(watch.moments, watch.moments[1:], strict=False)])
    steps = [median(same) for same in list(zip(*runs, strict=True))[WARM_UP:]]
    first, last, all_ = median(steps[:ENDS]), median(steps[-ENDS:]), median(steps)
    growth = last / first
    return [
        Figure("CPU of a tool step", ms(all_), "-", 0, "<= 4.5 ms", all_ <= 0.0045),
        Figure(f"CPU of the last of {STEPS} steps", ms(last), f"first {ms(first)}", growth, "<= 1.10", growth <= 1.1),
    ]


class _Watch:
    """Notes the CPU our process has used whenever a call of ``read`` begins."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def tools(self) -> Sequence[AnyTool]:
        """The tools there are, with ``read`` watched."""
        return [self._watched(tool) if tool.name == "read" else tool for tool in load()]

    def _watched(self, tool: AnyTool) -> AnyTool:
        async def execute(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
            self.moments.append(time.process_time())
            return await tool.execute(arguments, context)

        return replace(tool, execute=execute)
