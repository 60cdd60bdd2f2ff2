"""After an approved plan the chat follows its session: the next prompt goes to the agent that carries the plan out."""

import subprocess
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


async def approve(request: turnkeeper.QuestionRequest) -> turnkeeper.QuestionReply:
    return turnkeeper.QuestionReply(answers=(("Yes",),))


async def agents_of(place: Path, model: turnkeeper.Scripted, *lines: str) -> list[str]:
    """The agents of the prompts of a chat that begins with plan."""
    settings = turnkeeper.Settings(titles=False, question=approve, environ={"HOME": str(place.parent)})
    with anyio.fail_after(DEADLINE_S):
        async with turnkeeper.open("memory:", directory=place, provider=model, settings=settings) as tk:
            typing = Lines(*lines)
            live = Live(as_json=False, thinking=False, auto=True, display=typing.display(thinking=False))
            chat = Conversation(tk, typing, live, place)
            chat.session, chat.agent = await tk.create(), "plan"
            plan = await tk.plan_file(chat.session.id)
            plan.parent.mkdir(parents=True)
            plan.write_text("1. Do it.\n")
            await chat.prepare()
            await chat.run()
            found = (await tk.messages(chat.session.id)).items
            return [one.info.agent for one in found if isinstance(one.info, turnkeeper.UserMessage)]


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
