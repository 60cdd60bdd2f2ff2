"""A plugin that is removed while a turn runs: its call ends as it began, and the next turn is without it."""

from pathlib import Path

import anyio
import gates
from plugin_files import a_plugin, the_call

from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage

DEADLINE_S = 60
TOOL = (
    "import gates\n"
    "def wait(word: str) -> str:\n"
    "    'Waits.'\n"
    "    gates.entered.set()\n"
    f"    assert gates.gate.wait({DEADLINE_S})\n"
    "    return 'old ' + word\n"
    "def after(input, output):\n"
    "    output.output += ', seen by the old one'\n"
    "return {'tool': {'wait': wait}, 'tool.execute.after': after}"
)


async def ask(stage: Stage, session_id: str) -> None:
    with anyio.fail_after(DEADLINE_S):
        await stage.ask(session_id, "hello")


async def test_a_call_of_a_plugin_that_is_removed_meanwhile_ends_and_the_next_turn_has_no_such_tool(
    play: Play, tmp_path: Path
) -> None:
    gates.closed()
    file = a_plugin(tmp_path, "slow", TOOL)
    model = Scripted().calls("wait", word="tide").then().says("other").then().says("done")
    async with play(model) as stage:
        first, second = await stage.session(), await stage.session()
        async with anyio.create_task_group() as group:
            group.start_soon(ask, stage, first)
            assert await anyio.to_thread.run_sync(gates.entered.wait, DEADLINE_S)
            file.unlink()
            await ask(stage, second)
            assert "wait" in [tool.name for tool in model.requests[0].tools]
            assert "wait" not in [tool.name for tool in model.requests[1].tools]
            gates.gate.set()
        state = (await the_call(stage, first)).state
        assert isinstance(state, ToolCompleted)
        assert state.output == "old tide"
        assert await stage.is_sound(first)
