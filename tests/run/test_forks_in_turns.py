"""A fork, or a session from elsewhere, goes on as its history did: agent, model, instructions."""

from pathlib import Path

import pytest

from turnkeeper.model import event as e
from turnkeeper.model.message import UNKNOWN_MODEL, ModelChoice, UserMessage
from turnkeeper.model.prompt import FileInput, TextInput
from turnkeeper.model.session import SessionModel
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.builders import a_session, a_text, a_user
from turnkeeper.testing.harness import Play, Stage

OTHER = ModelChoice(provider_id="acme", model_id="other")


async def speakers(stage: Stage, session: str) -> list[tuple[str, str]]:
    """The agent and the model of each prompt."""
    said = [one.info for one in await stage.messages(session)]
    return [(info.agent, info.model.model_id) for info in said if isinstance(info, UserMessage)]


async def test_a_fork_goes_on_with_the_agent_and_the_model_of_its_history(play: Play) -> None:
    async with play(Scripted().says("ok").forever()) as stage:
        session = await stage.session()
        await stage.ask(session, "one", agent="plan", model=OTHER)
        second = await stage.say(session, "two", agent="build", model=OTHER.but(model_id="large"))
        await stage.tk.wait(session)
        whole = await stage.tk.fork(session)
        early = await stage.tk.fork(session, message_id=second.message_id)
        empty = await stage.tk.fork(session, message_id=(await stage.messages(session))[0].info.id)
        models = [one.model.id for one in (whole, early, empty) if one.model is not None]
        assert ([one.agent for one in (whole, early, empty)], models) == (
            ["build", "plan", "build"],
            ["large", "other", "large"],
        )
        await stage.ask(early.id, "and now?")
        assert await speakers(stage, early.id) == [("plan", "other"), ("plan", "other")]


async def test_a_fork_follows_a_switch_that_no_prompt_has_used_yet(play: Play) -> None:
    async with play(Scripted().says("ok").forever()) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        await stage.tk.store.journal.append(session, e.AgentSelected(agent="plan"))
        assert (await stage.tk.fork(session)).agent == "plan"


async def test_a_session_without_a_model_goes_on_with_that_of_its_newest_prompt_that_has_one(play: Play) -> None:
    """As imports, and forks that an older version made, are."""
    async with play(Scripted().says("ok").forever()) as stage:
        prompts = [a_user("ses_from", f"msg_{number}") for number in range(2)]
        prompts = [prompts[0].but(model=OTHER), prompts[1].but(model=OTHER.but(provider_id=UNKNOWN_MODEL))]
        await stage.tk.store.journal.create(
            a_session("ses_from", directory=str(stage.directory), model=None, agent=None),
            *(e.MessageRecorded(message=one, parts=(a_text(one, f"prt_{one.id}", "hi"),)) for one in prompts),
        )
        await stage.tk.shell("ses_from", "true")
        await stage.ask("ses_from", "go on")
        assert [model for _, model in await speakers(stage, "ses_from")][2:] == ["other", "other"]
        assert (await stage.tk.get("ses_from")).model == SessionModel(id="other", provider_id="acme", variant="default")


@pytest.mark.parametrize("is_early", [False, True])
async def test_a_fork_follows_the_instructions_that_were_discovered_before_it(
    play: Play, tmp_path: Path, is_early: bool
) -> None:
    paths = []
    for name in ("first", "second"):
        folder = tmp_path.resolve() / "place" / name
        folder.mkdir(parents=True)
        (folder / "a.py").write_text("x")
        (folder / "AGENTS.md").write_text(f"Only in {name}.")
        paths.append(folder)
    script = Scripted().says("ok").forever()
    async with play(script) as stage:
        session = await stage.session()
        for folder in paths:
            file = FileInput(mime="text/plain", url=(folder / "a.py").as_uri())
            middle = await stage.say(session, "hello")
            await stage.tk.wait(session)
            await stage.ask(session, "look", parts=(file, TextInput(text="look")))
        forked = await stage.tk.fork(session, message_id=middle.message_id if is_early else None)
        await stage.ask(forked.id, "go on")
        told = "\n".join(script.requests[-1].system)
        assert ("Only in first." in told, "Only in second." in told) == (True, not is_early)
        assert await stage.is_sound(forked.id)
