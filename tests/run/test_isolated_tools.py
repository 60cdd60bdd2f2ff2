"""Tools of plugins and of files run on threads of their own: code that blocks stops only itself."""

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import anyio.lowlevel
import gates
import pytest
from anyio import to_thread
from plugin_files import the_call

import turnkeeper
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolState
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage

DEADLINE_S: Final = 60
HEAD: Final = "import asyncio, threading, gates, turnkeeper\nfrom turnkeeper import ToolContext, tool\n"
PLACES: Final = ["plugin", "file"]


def put(tmp_path: Path, place: str, code: str, name: str = "mine") -> None:
    """Put a tool into a file of the project: a plugin that registers it, or a file of tools."""
    folder = tmp_path / "place/.turnkeeper" / ("plugin" if place == "plugin" else "tool")
    folder.mkdir(parents=True)
    end = f"\n\ndef plugin(context, options):\n    context.register_tool({name})\n" if place == "plugin" else ""
    (folder / "one.py").write_text(HEAD + textwrap.dedent(code) + end)


async def entered() -> None:
    assert await to_thread.run_sync(gates.entered.wait, DEADLINE_S)


async def state_of(stage: Stage, session_id: str) -> ToolState:
    return (await the_call(stage, session_id)).state


async def outputs(stage: Stage, session_id: str) -> Sequence[str]:
    calls = [part for _, parts in await stage.turns(session_id) for part in parts if isinstance(part, ToolPart)]
    return [call.state.output for call in calls if isinstance(call.state, ToolCompleted)]


BLOCKS: Final = """
@tool
{begin} mine() -> str:
    '''Blocks.'''
    gates.entered.set()
    gates.gate.wait(60)
    return "late"
"""


@pytest.mark.parametrize("begin", ["def", "async def"])
@pytest.mark.parametrize("place", PLACES)
async def test_a_tool_that_blocks_holds_up_no_other_session_and_no_interrupt(
    play: Play, tmp_path: Path, place: str, begin: str
) -> None:
    gates.closed()
    put(tmp_path, place, BLOCKS.format(begin=begin))
    async with play(Scripted().calls("mine").then().says("Well.").then().says("Yes.")) as stage:
        session, other = await stage.session(), await stage.session()
        await stage.say(session, "go")
        await entered()
        assert (await stage.ask(other, "hello")).reason == "answered"
        assert await stage.tk.stop(session)
        state = await state_of(stage, session)
        assert isinstance(state, ToolError)
        assert state.metadata == {"interrupted": True, "left": True}
        gates.gate.set()
        assert (await stage.ask(session, "And now?")).reason == "answered"


@pytest.mark.parametrize("begin", ["def", "async def"])
@pytest.mark.parametrize("place", PLACES)
async def test_a_tool_that_takes_too_long_is_a_failed_call(play: Play, tmp_path: Path, place: str, begin: str) -> None:
    gates.closed()
    put(tmp_path, place, BLOCKS.format(begin=begin).replace("@tool", "@tool(timeout_s=0.2)"))
    async with play(Scripted().calls("mine").then().says("Well.")) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        state = await state_of(stage, session)
        assert isinstance(state, ToolError)
        assert state.error == "The tool mine took more than 0.2 s and was stopped."
        gates.gate.set()


CONTEXT: Final = """
@tool
async def mine(context: ToolContext) -> str:
    '''Uses its context.'''
    await context.progress(title="half", metadata={"at": 1})
    await context.ask("webfetch", ["x"], always=[], metadata={})
    seen = await context.todos()
    found = await context.recall.search("hello")
    try:
        await context.ask("bash", ["x"], always=[], metadata={})
    except turnkeeper.ToolFailure as denied:
        return f"{len(seen)} {len(found)} {type(denied).__name__}"
"""


@pytest.mark.parametrize("place", PLACES)
async def test_a_tool_can_use_its_context(play: Play, tmp_path: Path, place: str) -> None:
    put(tmp_path, place, CONTEXT)
    config = '{"permission": {"bash": "deny"}}'
    (tmp_path / "place/.turnkeeper/turnkeeper.json").write_text(config)
    async with play(Scripted().calls("mine").then().says("Well.")) as stage:
        session = await stage.session()
        await stage.ask(session, "hello")
        state = await state_of(stage, session)
        assert isinstance(state, ToolCompleted), state
        assert state.output == "0 1 Denied"


LOOPS: Final = """
loops = []

@tool
async def mine() -> str:
    '''Tells how many event loops it has seen.'''
    loops.append(asyncio.get_running_loop())
    return f"{len(set(loops))} {threading.current_thread() is threading.main_thread()}"
"""


@pytest.mark.parametrize("place", PLACES)
async def test_calls_share_one_event_loop_that_is_not_the_program_s(play: Play, tmp_path: Path, place: str) -> None:
    put(tmp_path, place, LOOPS)
    async with play(Scripted().calls("mine").then().calls("mine").then().says("Well.")) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert await outputs(stage, session) == ["1 False", "1 False"]


STOPPED: Final = """
@tool
async def mine() -> str:
    '''Gives what it has when it is stopped.'''
    gates.entered.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        return "half"
"""


@pytest.mark.parametrize("place", PLACES)
async def test_what_a_tool_gives_when_it_is_interrupted_is_its_result(play: Play, tmp_path: Path, place: str) -> None:
    gates.closed()
    put(tmp_path, place, STOPPED)
    async with play(Scripted().calls("mine").then().says("Well.")) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await entered()
        assert await stage.tk.stop(session)
        assert await outputs(stage, session) == ["half"]


OBJECT: Final = """
import msgspec
from turnkeeper import ToolOutput
from turnkeeper.tools.tool import Tool

class Nothing(msgspec.Struct):
    pass

async def execute(arguments, context):
    await context.progress(title="half")
    here = threading.current_thread() is threading.main_thread()
    return ToolOutput(title="x", output=str(here)) if arguments is not None else "no"

mine = Tool(name="mine", description="Mine.", parameters=Nothing, execute=execute, permission="mine")
"""


@pytest.mark.parametrize("place", PLACES)
async def test_a_tool_that_is_no_decorated_function_is_isolated_too(play: Play, tmp_path: Path, place: str) -> None:
    put(tmp_path, place, OBJECT)
    async with play(Scripted().calls("mine").then().says("Well.")) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert await outputs(stage, session) == ["False"]


async def test_a_tool_that_a_program_gives_runs_on_its_event_loop(play: Play) -> None:
    here = anyio.lowlevel.current_token()

    @turnkeeper.tool
    async def mine() -> str:
        """Tells where it runs."""
        return str(anyio.lowlevel.current_token() == here)

    async with play(Scripted().calls("mine").then().says("Well."), tools=(mine,)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert await outputs(stage, session) == ["True"]


async def test_a_component_of_a_plugin_that_blocks_is_unavailable(play: Play, tmp_path: Path) -> None:
    gates.closed()
    folder = tmp_path / "place/.turnkeeper/plugin"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text(
        "import gates\nfrom turnkeeper.context.component import ContextComponent\n"
        "async def load(sampling):\n    gates.entered.set()\n    gates.gate.wait(60)\n"
        "def plugin(context, options):\n    context.register_component(ContextComponent('acme/stuck', load))\n"
    )
    async with play(Scripted().says("Well.").then().says("Yes.")) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await entered()
        gates.gate.set()  # The event loop is free, or this is never reached.
        await stage.tk.wait(session)


PROGRAM: Final = """
import sys
import turnkeeper

model = turnkeeper.Scripted().calls("mine").then().says("Well.")
with turnkeeper.open_sync("memory:", directory=sys.argv[1], provider=model,
        settings=turnkeeper.Settings(titles=False)) as tk:
    print(tk.ask("go").text)
"""


@pytest.mark.parametrize("begin", ["def", "async def"])
def test_a_tool_that_never_ends_does_not_keep_the_program_from_ending(tmp_path: Path, begin: str) -> None:
    code = f"@tool(timeout_s=0.2)\n{begin} mine() -> str:\n    '''Never ends.'''\n    threading.Event().wait()\n"
    folder = tmp_path / "own/tool"
    folder.mkdir(parents=True)
    (folder / "one.py").write_text(HEAD.replace("gates, ", "") + code)
    environ = {"HOME": str(tmp_path), "TURNKEEPER_CONFIG_DIR": str(tmp_path / "own"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=DEADLINE_S, env=environ,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "Well.\n"), done.stderr
