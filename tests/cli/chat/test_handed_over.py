"""After an approved plan the chat follows its session: the next prompt goes to the agent that carries the plan out."""

import subprocess
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from typed_lines import Lines

import turnkeeper
from turnkeeper.cli.chat.conversation import Conversation
from turnkeeper.cli.live import Live

DEADLINE_S = 120


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = (tmp_path / "place").resolve()
    folder.mkdir()
    subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True, timeout=DEADLINE_S)
    return folder


Others = Callable[[turnkeeper.Turnkeeper, str], Awaitable[object]]
"""What others do in the session between two lines of the chat."""


async def agents_of(
    place: Path, model: turnkeeper.Scripted, *lines: str | Others, chosen_meanwhile: str | None = None
) -> list[str]:
    """The agents of the prompts of a chat that begins with plan. The user approves each plan."""

    async def approve(request: turnkeeper.QuestionRequest) -> turnkeeper.QuestionReply:
        chat.agent = chosen_meanwhile or chat.agent
        return turnkeeper.QuestionReply(answers=(("Yes",),))

    settings = turnkeeper.Settings(titles=False, question=approve, environ={"HOME": str(place.parent)})
    with anyio.fail_after(DEADLINE_S):
        async with turnkeeper.open("memory:", directory=place, provider=model, settings=settings) as tk:
            session = await tk.create()
            typing = Lines(*(partial(one, tk, session.id) if callable(one) else one for one in lines))
            live = Live(as_json=False, thinking=False, auto=True, display=typing.display(thinking=False))
            chat = Conversation(tk, typing, live, place)
            chat.session, chat.agent = session, "plan"
            plan = await tk.plan_file(session.id)
            plan.parent.mkdir(parents=True)
            plan.write_text("1. Do it.\n")
            await chat.prepare()
            await chat.run()
            found = (await tk.messages(session.id)).items
            return [one.info.agent for one in found if isinstance(one.info, turnkeeper.UserMessage)]


async def queue_for_build(tk: turnkeeper.Turnkeeper, session_id: str) -> None:
    """Queue a prompt for build, as another client does."""
    said = (turnkeeper.TextInput(text="and build that"),)
    await tk.prompt(session_id, turnkeeper.Prompt(parts=said, agent="build", delivery="queue"), resume=False)


async def test_a_prompt_that_others_queue_for_another_agent_hands_nothing_over(place: Path) -> None:
    model = turnkeeper.Scripted().says("planned").forever()
    agents = await agents_of(place, model, "plan it", queue_for_build, "more", "and more")
    assert sorted(agents) == ["build", "plan", "plan", "plan"]


async def test_a_prompt_that_the_chat_queues_for_another_agent_hands_nothing_over(place: Path) -> None:
    model = turnkeeper.Scripted().says("planned").forever()
    lines = ("plan it", "/agent build", "/queue build it", "/agent plan", "plan more", queue_for_build, "and more")
    agents = await agents_of(place, model, *lines)
    assert sorted(agents) == ["build", "build", "plan", "plan", "plan"]


async def test_after_an_approved_plan_the_chat_goes_on_with_build(place: Path) -> None:
    model = turnkeeper.Scripted().calls("plan_exit").then().says("built").then().says("and more").forever()
    assert await agents_of(place, model, "plan it", "and the rest", "and again") == ["plan", "build", "build", "build"]


async def test_an_agent_that_was_chosen_stays_where_nothing_was_handed_over(place: Path) -> None:
    model = turnkeeper.Scripted().says("planned").forever()
    lines = ("plan it", "more", "/agent build", "do it", "/agent plan", "plan again")
    assert await agents_of(place, model, *lines) == ["plan", "plan", "build", "plan"]


async def test_a_plan_can_be_chosen_again_after_it_was_handed_over(place: Path) -> None:
    model = turnkeeper.Scripted().calls("plan_exit").then().says("built").then().says("planned").forever()
    lines = ("plan it", "/agent plan", "plan again", "and again")
    assert await agents_of(place, model, *lines) == ["plan", "build", "plan", "plan"]


async def test_an_agent_that_was_chosen_before_the_plan_was_approved_stays(place: Path) -> None:
    model = turnkeeper.Scripted().calls("plan_exit").then().says("built").then().says("seen").forever()
    (place / "turnkeeper.json").write_text('{"agent": {"explorer": {"mode": "primary"}}}')
    agents = await agents_of(place, model, "plan it", "look", chosen_meanwhile="explorer")
    assert agents == ["plan", "build", "explorer"]
