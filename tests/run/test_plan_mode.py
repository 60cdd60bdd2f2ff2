"""Plan mode in whole turns: the reminders, the one file that can be written, and the approval that lets build begin."""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from confined import needs_kernel
from narrow import of_type

from turnkeeper.context.texts import text
from turnkeeper.core.next_action import REFUSED
from turnkeeper.core.plan_mode import MARK, plan_name
from turnkeeper.core.prefix import reuse_percent
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model.event import EpochStarted, TurnStarted
from turnkeeper.model.message import ModelChoice, UserMessage
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.question import QuestionReply, QuestionRequest
from turnkeeper.model.request import SystemTurn, Text, UserTurn
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage, StageOptions, stage
from turnkeeper.tools import load

DEADLINE_S = 60
TOOLS = tuple(load(["bash", "read", "write", "edit", "question", "plan_exit"]))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory in a repository."""
    folder = (tmp_path / "place").resolve()
    folder.mkdir()
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.org")
    for words in (["init", "--quiet"], [*identity, "commit", "--quiet", "--allow-empty", "--message", "start"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def yes_or_no(answer: str | None) -> Any:
    asked: list[str] = []

    async def answered(request: QuestionRequest) -> QuestionReply:
        asked.append(request.questions[0].question)
        return QuestionReply(answers=((answer,),) if answer is not None else None)

    answered.asked = asked  # type: ignore[attr-defined]  # What was asked, for the test to look at.
    return answered


async def plan_of(stage: Stage, session: str) -> Path:
    return stage.directory / ".opencode/plans" / plan_name(await stage.tk.get(session))


async def reminders(stage: Stage, session: str) -> list[tuple[str, str, str]]:
    """The reminders of a session: of which prompt, which one, and its text."""
    found: list[tuple[str, str, str]] = []
    for message in await stage.messages(session):
        texts = [part for part in message.parts if isinstance(part, TextPart)]
        said = next((part.text for part in texts if not part.synthetic), "")
        for part in texts:
            if (part.metadata or {}).get(MARK):
                assert part.synthetic
                found.append((said, str((part.metadata or {})[MARK]), part.text))
    return found


async def states(stage: Stage, session: str) -> list[ToolCompleted | ToolError]:
    parts = [part for _, found in await stage.turns(session) for part in found if isinstance(part, ToolPart)]
    return [part.state for part in parts if isinstance(part.state, ToolCompleted | ToolError)]


async def test_each_switch_is_told_once_and_stored(play: Play, place: Path) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, tools=TOOLS) as stage:
        session = await stage.session()
        plan = await plan_of(stage, session)
        for words, agent in (("one", "build"), ("two", "plan"), ("three", "plan"), ("four", "build")):
            await stage.ask(session, words, agent=agent)
        plan.parent.mkdir(parents=True)
        plan.write_text("Do it.")
        for words, agent in (("five", "build"), ("six", "plan"), ("seven", "build")):
            await stage.ask(session, words, agent=agent)
        found = await reminders(stage, session)
        assert await stage.is_sound(session)
    assert [(said, which) for said, which, _ in found] == [
        ("two", "enter"),
        ("four", "leave"),
        ("six", "enter"),
        ("seven", "leave"),
    ]
    enter, leave, again, carry_out = (words for _, _, words in found)
    assert text("plan_missing").replace("{plan}", str(plan)) in enter
    assert text("plan_exists").replace("{plan}", str(plan)) in again
    assert ("There is a plan" in leave, text("plan_approved").replace("{plan}", str(plan)) in carry_out) == (
        False,
        True,
    )
    assert "{" not in "".join((enter, leave, again, carry_out))
    last = [one for one in script.requests[1].messages if isinstance(one, UserTurn)][-1]
    assert last.content[-1] == Text(text=enter)


async def test_a_compaction_in_plan_mode_does_not_take_the_workflow_away(play: Play, place: Path) -> None:
    script = Scripted().says("## Objective\nPlan.").forever()
    async with play(script, tools=TOOLS, config={"compaction": {"tail_turns": 0}}) as stage:
        session = await stage.session()
        await stage.ask(session, "one", agent="plan")
        await stage.tk.compact(session, force=True)
        await stage.ask(session, "two", agent="plan")
        found = await reminders(stage, session)
    assert [(said, which) for said, which, _ in found] == [("one", "enter"), ("two", "enter")]
    assert any("plan mode" in words for words in script.requests[-1].system)


async def test_without_a_repository_the_plan_is_in_the_data_directory(play: Play, tmp_path: Path) -> None:
    data = tmp_path / "data"
    script = Scripted()
    async with play(script, tools=TOOLS, ask=None, environ={"TURNKEEPER_DATA": str(data)}) as stage:
        session = await stage.session()
        plan = data.resolve() / "plans" / plan_name(await stage.tk.get(session))
        script.calls("write", filePath=str(plan), content="Plan.").calls(
            "write", filePath=str(plan.parent / "other.md"), content="No."
        ).then().calls("read", filePath=str(plan)).then().says("Done.")
        await stage.ask(session, "go", agent="plan")
        first, second, third = await states(stage, session)
    assert (plan.read_text(), isinstance(second, ToolError)) == ("Plan.", True)
    assert isinstance(first, ToolCompleted)
    assert isinstance(third, ToolCompleted)
    assert not (plan.parent / "other.md").exists()


@needs_kernel
async def test_the_plan_agent_writes_its_plan_file_and_nothing_else_not_even_by_commands(
    play: Play, place: Path, tmp_path: Path
) -> None:
    (place / "code.py").write_text("one\n")
    home = tmp_path / "home"
    home.mkdir()
    script = Scripted()
    async with play(script, tools=TOOLS, environ={"HOME": str(home), "SHELL": "/bin/bash"}) as stage:
        session = await stage.session()
        plan = await plan_of(stage, session)
        script.calls("write", filePath=str(plan), content="The plan.\n").then()
        script.calls("write", filePath=str(plan.parent / "other.md"), content="x")
        script.calls("write", filePath=str(plan.with_suffix(".txt")), content="x")
        script.calls("write", filePath=str(place / "new.py"), content="x")
        script.calls("edit", filePath=str(plan), oldString="The", newString="Our").then()
        script.calls("read", filePath=str(place / "code.py")).then()
        script.calls("edit", filePath=str(place / "code.py"), oldString="one", newString="two").then()
        for command in (
            "python3 -c \"open('made', 'w')\"",
            f"python3 -c \"open('{plan}', 'w')\"",
            f"echo more >> {plan}",
            "git commit --allow-empty -m x",
            "cp code.py $HOME/copy.py",
        ):
            script.calls("bash", command=f"{command}; true").then()
        script.calls("bash", command="touch made", outside=True).then().says("Done.")
        await stage.ask(session, "go", agent="plan")
        found = await states(stage, session)
        refused = [one.error for one in found if isinstance(one, ToolError)]
    assert plan.read_text() == "Our plan.\n"
    assert (place / "code.py").read_text() == "one\n"
    left = {str(path.relative_to(place)) for path in place.rglob("*") if ".git/" not in f"{path}/"}
    assert left == {".opencode", ".opencode/plans", str(plan.relative_to(place)), "code.py", "turnkeeper.json"}
    assert list(home.rglob("copy.py")) == []
    log = subprocess.run(["git", "log", "--oneline"], cwd=place, capture_output=True, text=True, check=True)
    assert len(log.stdout.splitlines()) == 1
    assert any("outside the sandbox" in one for one in refused)
    assert sum("denied by a rule" in one for one in refused) >= 4


@needs_kernel
async def test_a_link_in_the_place_of_the_plan_leads_to_no_other_file(play: Play, place: Path) -> None:
    (place / "code.py").write_text("one\n")
    script = Scripted()
    async with play(script, tools=TOOLS) as stage:
        session = await stage.session()
        plan = await plan_of(stage, session)
        plan.parent.mkdir(parents=True)
        plan.symlink_to(place / "code.py")
        script.calls("read", filePath=str(plan)).then()
        script.calls("write", filePath=str(plan), content="two\n").then().says("Done.")
        await stage.ask(session, "go", agent="plan")
    assert (place / "code.py").read_text() == "one\n"


async def test_a_switch_between_build_and_plan_extends_the_request_byte_for_byte(play: Play, place: Path) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, tools=TOOLS, question=None) as stage:
        session = await stage.session()
        for agent in ("build", "plan", "build", "plan"):
            await stage.ask(session, "go", agent=agent)
        events = await stage.events(session)
    prefixes = [one.prefix for one in events if isinstance(one, TurnStarted) and one.prefix is not None]
    assert len([one for one in events if isinstance(one, EpochStarted)]) == 1
    assert [(one.cause, reuse_percent(one)) for one in prefixes[1:]] == [(None, 100)] * 3
    for before, after in zip(script.requests, script.requests[1:], strict=False):
        assert (after.system, after.tools) == (before.system, before.tools)
        assert after.messages[: len(before.messages)] == before.messages
    assert "plan_exit" in [tool.name for tool in script.requests[0].tools]


async def test_a_switch_keeps_the_description_of_all_tools(play: Play, place: Path) -> None:
    script = Scripted().says("ok").forever()
    async with play(script, tools=tuple(load()), question=None) as stage:
        session = await stage.session()
        for agent in ("build", "plan", "build"):
            await stage.ask(session, "go", agent=agent)
    first, *others = [request.tools for request in script.requests]
    assert "task" in [tool.name for tool in first]
    assert others == [first, first]


async def test_a_switch_to_an_agent_with_its_own_prompt_is_told_and_begins_no_epoch(play: Play, place: Path) -> None:
    script = Scripted().says("ok").forever()
    config = {"agent": {"poet": {"prompt": "You rhyme.", "permission": {"question": "allow"}}}}
    async with play(script, tools=TOOLS, question=None, config=config) as stage:
        session = await stage.session()
        for agent in ("build", "poet", "build"):
            await stage.ask(session, "go", agent=agent)
        events = await stage.events(session)
    first, second, third = script.requests
    assert len([one for one in events if isinstance(one, EpochStarted)]) == 1
    assert first.system == second.system == third.system
    assert second.messages[: len(first.messages)] == first.messages
    instead = "From now on these are your instructions, in place of earlier ones:\n"
    assert second.messages[-1] == SystemTurn(text=f"{instead}You rhyme.")
    assert third.messages[-1] == SystemTurn(text=f"{instead}{first.system[0]}")


def approving(stage: Stage, plan: Path, script: Scripted) -> Scripted:
    return script.calls("write", filePath=str(plan), content="Plan.").then().calls("plan_exit").then()


@pytest.mark.parametrize("own_model", [None, "acme/other"])
async def test_an_approved_plan_is_carried_out_by_build(play: Play, place: Path, own_model: str | None) -> None:
    asker = yes_or_no("Yes")
    script = Scripted()
    config = {"agent": {"build": {"model": own_model}}} if own_model else {}
    async with play(script, tools=TOOLS, question=asker, config=config) as stage:
        session = await stage.session()
        plan = await plan_of(stage, session)
        approving(stage, plan, script).says("Carried out.")
        large = ModelChoice(provider_id="acme", model_id="large")
        await stage.ask(session, "plan it", agent="plan", model=large)
        users = [one.info for one in await stage.messages(session) if isinstance(one.info, UserMessage)]
        answers = [one for one, _ in await stage.turns(session)]
        told = await reminders(stage, session)
        assert (await stage.tk.get(session)).agent == "build"
        assert await stage.is_sound(session)
    assert [one.agent for one in users] == ["plan", "build"]
    assert users[1].model == (ModelChoice(provider_id="acme", model_id="other") if own_model else large)
    assert [one.agent for one in answers] == ["plan", "plan", "build"]
    assert [which for _, which, _ in told] == ["enter", "leave"]
    assert asker.asked == [f"The plan at {plan} is complete. Switch to the build agent and carry it out?"]
    assert "The user approved the plan." in str(script.requests[-1].messages)


@pytest.mark.parametrize("answer", ["No", None])
async def test_a_plan_that_is_not_approved_lets_the_session_rest(play: Play, place: Path, answer: str | None) -> None:
    script = Scripted()
    async with play(script, tools=TOOLS, question=yes_or_no(answer)) as stage:
        session = await stage.session()
        approving(stage, await plan_of(stage, session), script).says("Never said.")
        outcome = await stage.ask(session, "plan it", agent="plan")
        assert outcome.reason == REFUSED
        assert (await stage.tk.get(session)).agent == "plan"
        users = [one.info for one in await stage.messages(session) if isinstance(one.info, UserMessage)]
    assert [one.agent for one in users] == ["plan"]
    assert len(script.requests) == 2


async def test_plan_exit_needs_a_plan_and_the_plan_agent(play: Play, place: Path) -> None:
    asker = yes_or_no("Yes")
    script = Scripted()
    async with play(script, tools=TOOLS, question=asker) as stage:
        for agent in ("plan", "build"):
            session = await stage.session()
            script.calls("plan_exit").then().says("ok").then()
            await stage.ask(session, "go", agent=agent)
            [state] = await states(stage, session)
            said = "There is no plan at" if agent == "plan" else "denied by a rule"
            assert said in of_type(ToolError, state).error
    assert asker.asked == []


async def test_where_nobody_answers_questions_plan_exit_is_not_offered(play: Play, place: Path) -> None:
    script = Scripted().says("ok")
    async with play(script, tools=TOOLS) as stage:
        await stage.ask(await stage.session(), "go", agent="plan")
    assert [tool.name for tool in script.requests[0].tools] == ["bash", "edit", "read", "write"]


async def test_an_approval_that_comes_after_a_restart_lets_build_begin_once(place: Path, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store"

    @asynccontextmanager
    async def opened(number: int, provider: Provider) -> AsyncIterator[Stage]:
        mint = Mint.fixed(FIXED_START_MS + number * 1_000_000, number)
        options = StageOptions(ask=None, question=None, tools=TOOLS)
        with anyio.fail_after(DEADLINE_S):
            async with stage(url, place, provider, options, mint=mint) as found:
                yield found

    script = Scripted()
    async with opened(0, script) as first:
        session = await first.session()
        approving(first, await plan_of(first, session), script)
        async with first.tk.subscribe() as heard:
            await first.say(session, "plan it", agent="plan")
            async for one in heard:
                if getattr(one, "type", "") == "question.asked":
                    break
    async with opened(1, later := Scripted().says("Carried out.")) as second:
        [request] = await second.tk.questions()
        await second.tk.answer(request.id, [["Yes"]])
        await second.tk.wait(session)
        answers = [one.agent for one, _ in await second.turns(session)]
        told = [which for _, which, _ in await reminders(second, session)]
        assert await second.is_sound(session)
    assert (answers, told, len(later.requests)) == (["plan", "plan", "build"], ["enter", "leave"], 1)
