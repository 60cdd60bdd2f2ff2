"""Commands that the user runs in a session, with real shells."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from turnkeeper.core.limits import OUTPUT_LINES_MAX
from turnkeeper.core.lowering import STOPPED
from turnkeeper.model.event import PartRecorded
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.message import AssistantMessage, ModelChoice, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolRunning
from turnkeeper.model.refusal import Busy, Invalid
from turnkeeper.model.request import Result, Text, ToolTurn
from turnkeeper.model.status import BUSY, IDLE
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.recover import Recovery
from turnkeeper.testing.harness import Stage, StageOptions, stage
from turnkeeper.tools import load as load_tools

CHILD = """
import sys
import anyio
import turnkeeper

async def main():
    async with turnkeeper.open(sys.argv[1], directory=sys.argv[2]) as tk:
        session = await tk.create(id="ses_child")
        await tk.shell(session.id, sys.argv[3])

anyio.run(main)
"""


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage("memory:", tmp_path / "place", Scripted()) as ready:
        os.mkfifo(ready.directory / "gate")
        yield ready


def script(on: Stage) -> Scripted:
    assert isinstance(on.provider, Scripted)
    return on.provider


def results(script: Scripted) -> list[Result]:
    """The results that the newest request tells the model of."""
    turns = [message for message in script.requests[-1].messages if isinstance(message, ToolTurn)]
    return [result for turn in turns for result in turn.results]


def call(message: MessageWithParts) -> ToolPart:
    [part] = message.parts
    assert isinstance(part, ToolPart)
    return part


def completed(message: MessageWithParts) -> ToolCompleted:
    state = call(message).state
    assert isinstance(state, ToolCompleted)
    return state


async def printed(on: Stage, session_id: str, text: str) -> None:
    """Until a running command is on record with this output."""
    async for recorded in on.tk.store.journal.tail(session_id):
        match recorded.event:
            case PartRecorded(part=ToolPart(state=ToolRunning(metadata={"output": str(output)}))) if text in output:
                return


async def let_go(on: Stage) -> None:
    """Let a command that reads from the gate go on."""
    await to_thread.run_sync((on.directory / "gate").write_text, "go\n")


async def test_a_command_is_on_record_like_a_call_of_the_bash_tool(on: Stage) -> None:
    session_id = await on.session()
    answer = await on.tk.shell(session_id, "echo out; echo err >&2; pwd")
    user, assistant = await on.messages(session_id)
    assert assistant == answer
    assert isinstance(user.info, UserMessage)
    assert isinstance(assistant.info, AssistantMessage)
    [said] = user.parts
    assert isinstance(said, TextPart)
    assert (said.text, said.synthetic) == ("The following tool was executed by the user", True)
    assert assistant.info.parent_id == user.info.id
    assert (assistant.info.agent, assistant.info.mode) == ("build", "build")
    assert (assistant.info.finish, assistant.info.error, assistant.info.cost) == (None, None, 0)
    assert assistant.info.time.completed is not None
    assert call(answer).tool == "bash"
    state = completed(answer)
    assert state.input == {"command": "echo out; echo err >&2; pwd"}
    assert state.output == f"out\nerr\n{on.directory}"
    assert (state.title, state.metadata["exit"]) == ("", 0)
    assert state.metadata["output"] == f"out\nerr\n{on.directory}\n"
    assert script(on).requests == []
    assert await on.tk.status(session_id) == IDLE
    assert await on.is_sound(session_id)


async def test_a_command_that_fails_is_completed_with_its_exit_code(on: Stage) -> None:
    state = completed(await on.tk.shell(await on.session(), "echo no; exit 3"))
    assert state.metadata["exit"] == 3
    assert state.output == "no\n[exit code 3]"


async def test_agent_and_model_are_those_that_were_named(on: Stage) -> None:
    model = ModelChoice(provider_id="acme", model_id="other")
    answer = await on.tk.shell(await on.session(), "true", agent="plan", model=model)
    assert isinstance(answer.info, AssistantMessage)
    assert (answer.info.agent, answer.info.provider_id, answer.info.model_id) == ("plan", "acme", "other")


@pytest.mark.parametrize(
    ("command", "agent", "why"),
    [("  ", None, "empty"), ("a\0b", None, "NUL"), ("\ud800", None, "half"), ("true", "nobody", "no agent")],
)
async def test_what_cannot_be_run_is_refused_and_leaves_no_trace(
    on: Stage, command: str, agent: str | None, why: str
) -> None:
    session_id = await on.session()
    with pytest.raises(Invalid, match=why):
        await on.tk.shell(session_id, command, agent=agent)
    assert await on.messages(session_id) == []


async def test_a_long_output_is_bounded_for_the_model_and_kept_whole(on: Stage) -> None:
    lines = 2 * OUTPUT_LINES_MAX
    state = completed(await on.tk.shell(await on.session(), f"seq {lines}"))
    assert state.output.count("\n") < OUTPUT_LINES_MAX
    assert state.metadata["truncated"] is True
    assert state.full == "\n".join(str(number) for number in range(1, lines + 1))


async def test_output_is_on_record_while_the_command_runs(on: Stage) -> None:
    session_id = await on.session()
    async with anyio.create_task_group() as group:
        group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate; echo $line")
        await printed(on, session_id, "begun\n")
        assert await on.tk.status(session_id) == BUSY
        await let_go(on)
    assert completed((await on.messages(session_id))[-1]).output == "begun\ngo"


async def test_a_session_that_runs_a_turn_refuses_a_command(on: Stage) -> None:
    """O6."""
    session_id = await on.session()
    script(on).says("hm").hangs()
    await on.say(session_id, "think")
    with pytest.raises(Busy):
        await on.tk.shell(session_id, "true")
    assert len([one for one in await on.messages(session_id) if isinstance(one.info, UserMessage)]) <= 1
    await on.tk.stop(session_id)
    assert completed(await on.tk.shell(session_id, "echo now")).output == "now"


async def test_a_session_that_runs_a_command_refuses_another(on: Stage) -> None:
    """O6."""
    session_id = await on.session()
    async with anyio.create_task_group() as group:
        group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate")
        await printed(on, session_id, "begun")
        with pytest.raises(Busy):
            await on.tk.shell(session_id, "true")
        await let_go(on)
    assert len(await on.messages(session_id)) == 2


async def test_a_session_that_another_runtime_has_refuses_a_command(tmp_path: Path) -> None:
    """O6."""
    url = f"sqlite:{tmp_path}/store.db"
    place = tmp_path / "place"
    async with stage(url, place, Scripted()) as here, stage(url, place, Scripted()) as there:
        os.mkfifo(place / "gate")
        session_id = await here.session()
        async with anyio.create_task_group() as group:
            group.start_soon(here.tk.shell, session_id, "echo begun; read line < gate")
            await printed(here, session_id, "begun")
            with pytest.raises(Busy):
                await there.tk.shell(session_id, "true")
            await let_go(here)
        assert completed(await there.tk.shell(session_id, "echo now")).output == "now"


async def test_a_prompt_that_comes_meanwhile_is_run_after_the_command(on: Stage) -> None:
    """O7."""
    session_id = await on.session()
    script(on).says("I see")
    async with anyio.create_task_group() as group:
        group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate; echo done")
        await printed(on, session_id, "begun")
        await on.say(session_id, "look at that")
        assert script(on).requests == []
        await let_go(on)
        assert (await on.tk.wait(session_id)).kind == "rested"
    roles = [type(one.info) for one in await on.messages(session_id)]
    assert roles == [UserMessage, AssistantMessage, UserMessage, AssistantMessage]
    [request] = script(on).requests
    assert "begun\\ndone" in str(request.messages)
    assert await on.is_sound(session_id)


async def test_who_runs_the_session_meanwhile_waits_for_its_turn(on: Stage) -> None:
    """O7. A run that joins gets the outcome of the drain behind the command, not of the command."""
    session_id = await on.session()
    script(on).says("I see")
    async with anyio.create_task_group() as group:
        group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate")
        await printed(on, session_id, "begun")
        await on.say(session_id, "look at that", resume=False)
        group.start_soon(on.tk.run, session_id)
        await let_go(on)
    assert len(script(on).requests) == 1


async def test_a_prompt_that_another_process_admits_meanwhile_is_taken_up(tmp_path: Path) -> None:
    """O7. The other one sees that the session is being run, and leaves it to us."""
    url = f"sqlite:{tmp_path}/store.db"
    place = tmp_path / "place"
    async with stage(url, place, Scripted()) as there, stage(url, place, Scripted().says("yes")) as here:
        os.mkfifo(place / "gate")
        session_id = await here.session()
        async with anyio.create_task_group() as group:
            group.start_soon(here.tk.shell, session_id, "echo begun; read line < gate")
            await printed(here, session_id, "begun")
            await there.say(session_id, "and now?", resume=False)
            await let_go(here)
        await here.tk.wait(session_id)
        assert len(script(here).requests) == 1


async def test_a_prompt_that_waited_before_goes_on_waiting(on: Stage) -> None:
    session_id = await on.session()
    await on.say(session_id, "later", resume=False)
    await on.tk.shell(session_id, "true")
    await on.tk.wait(session_id)
    assert script(on).requests == []
    assert len((await on.tk.store.journal.view(session_id)).inbox) == 1


@pytest.mark.parametrize("resume", [False, True])
async def test_no_model_is_asked_about_a_command(on: Stage, resume: bool) -> None:
    session_id = await on.session()
    await on.tk.shell(session_id, "echo hello")
    outcome = await on.tk.run(session_id, resume=resume)
    assert (outcome.kind, outcome.reason) == ("rested", "the user ran a command")
    assert script(on).requests == []


async def test_a_command_that_is_stopped_keeps_what_it_printed(on: Stage) -> None:
    session_id = await on.session()
    async with anyio.create_task_group() as group:
        group.start_soon(on.tk.shell, session_id, "echo $$ > pid; echo half; read line < gate; echo never")
        await printed(on, session_id, "half")
        assert await on.tk.stop(session_id)
    [_, answer] = await on.messages(session_id)
    state = call(answer).state
    assert isinstance(state, ToolError)
    assert state.metadata == {"output": "half\n", "interrupted": True}
    assert isinstance(answer.info, AssistantMessage)
    assert isinstance(answer.info.error, AbortedFailure)
    with pytest.raises(ProcessLookupError):
        os.kill(int((on.directory / "pid").read_text()), 0)
    assert await on.is_sound(session_id)
    script(on).says("I see")
    await on.ask(session_id, "what did it say?")
    assert [one.output for one in results(script(on))] == [(Text(text=f"half\n\n{STOPPED}"),)]


async def test_the_model_is_told_that_its_command_was_stopped_and_what_it_had_printed(tmp_path: Path) -> None:
    command = "trap 'echo on the way out; exit' TERM; echo half; while :; do :; done"
    provider = Scripted().calls("bash", command=command).then().says("I see")
    async with stage("memory:", tmp_path / "place", provider, StageOptions(tools=load_tools())) as on:
        session_id = await on.session()
        await on.say(session_id, "go")
        await printed(on, session_id, "half")
        assert await on.tk.stop(session_id)
        [(_, parts)] = await on.turns(session_id)
        [state] = [part.state for part in parts if isinstance(part, ToolPart)]
        assert isinstance(state, ToolError)
        assert (state.metadata or {})["output"] == "half\non the way out\n"
        await on.ask(session_id, "what happened?")
        [told] = results(provider)
        assert (told.output, told.is_error) == ((Text(text=f"half\non the way out\n\n{STOPPED}"),), False)


async def test_a_prompt_survives_the_stop_of_the_command_before_it(on: Stage) -> None:
    session_id = await on.session()
    async with anyio.create_task_group() as group:
        group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate")
        await printed(on, session_id, "begun")
        await on.say(session_id, "and then?")
        await on.tk.stop(session_id)
    assert script(on).requests == []
    script(on).says("then this")
    await on.tk.run(session_id)
    assert len(script(on).requests) == 1


async def test_who_stops_waiting_does_not_stop_the_command(on: Stage) -> None:
    session_id = await on.session()
    async with anyio.create_task_group() as group:
        group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate; echo done")
        await printed(on, session_id, "begun")
        group.cancel_scope.cancel()
    await let_go(on)
    await on.tk.wait(session_id)
    assert completed((await on.messages(session_id))[-1]).output == "begun\ndone"


async def test_closing_the_store_stops_a_command_and_records_it(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    async with stage(url, tmp_path / "place", Scripted()) as on:
        os.mkfifo(on.directory / "gate")
        session_id = await on.session()
        async with anyio.create_task_group() as group:
            group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate")
            await printed(on, session_id, "begun")
            group.cancel_scope.cancel()
    async with stage(url, tmp_path / "place", Scripted()) as again:
        assert isinstance(call((await again.messages(session_id))[-1]).state, ToolError)
        assert await again.is_sound(session_id)


async def test_cancelling_everything_at_once_leaves_a_closed_log(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    async with anyio.create_task_group() as group, stage(url, tmp_path / "place", Scripted()) as on:
        os.mkfifo(on.directory / "gate")
        session_id = await on.session()
        group.start_soon(on.tk.shell, session_id, "echo begun; read line < gate")
        await printed(on, session_id, "begun")
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await on.tk.stop()
    async with stage(url, tmp_path / "place", Scripted()) as again:
        assert isinstance(call((await again.messages(session_id))[-1]).state, ToolError)
        assert await again.is_sound(session_id)


async def test_a_command_in_a_directory_that_is_gone_is_on_record_as_failed(on: Stage) -> None:
    gone = on.directory / "gone"
    gone.mkdir()
    session_id = await on.session(directory=gone)
    gone.rmdir()
    state = call(await on.tk.shell(session_id, "true")).state
    assert isinstance(state, ToolError)
    assert "No such file" in state.error
    assert await on.is_sound(session_id)


@pytest.mark.parametrize("policy", ["rest", "continue"])
async def test_a_command_whose_process_was_killed_is_closed_and_never_run_again(
    tmp_path: Path, policy: Recovery
) -> None:
    url, place = f"sqlite:{tmp_path}/store.db", tmp_path / "place"
    place.mkdir()
    killed = await to_thread.run_sync(
        lambda: subprocess.run(
            [sys.executable, "-c", CHILD, url, str(place), "echo run >> runs; echo begun; read line"],
            env={**os.environ, "HOME": str(tmp_path), "TURNKEEPER_CRASH": "run.after-record:1"},
            check=False,
        )
    )
    assert killed.returncode == 137
    async with stage(url, place, Scripted()) as on:
        assert await on.tk.runtime.failover.recover(policy) == ["ses_child"]
        state = call((await on.messages("ses_child"))[-1]).state
        assert isinstance(state, ToolError)
        assert state.metadata == {"output": "begun\n", "interrupted": True}
        assert script(on).requests == []
        assert (place / "runs").read_text() == "run\n"
        assert await on.is_sound("ses_child")


async def test_commands_run_in_the_shell_that_is_configured(tmp_path: Path) -> None:
    """The user's, and the model's."""
    shell = tmp_path / "ksh"
    shell.write_text('#!/bin/sh\necho "My own shell:"\nexec /bin/sh "$@"\n')
    shell.chmod(0o755)
    script = Scripted().calls("bash", command="echo said by the model").then().says("Done.")
    options = StageOptions(config={"shell": str(shell)}, tools=load_tools(), environ={"SHELL": "/bin/sh"})
    async with stage("memory:", tmp_path / "place", script, options) as on:
        session_id = await on.session()
        by_user = completed(await on.tk.shell(session_id, "echo said by the user"))
        assert by_user.output == "My own shell:\nsaid by the user"
        await on.ask(session_id, "go")
        by_model = [
            part.state.output
            for message in await on.messages(session_id)
            for part in message.parts
            if isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted)
        ][-1]
        assert by_model.startswith("My own shell:\nsaid by the model")
