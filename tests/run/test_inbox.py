"""How prompts come in: once, in order, at boundaries, and never too many."""

import anyio
import pytest
from narrow import of_type

from turnkeeper.core.limits import INBOX_MAX, STEERS_MAX
from turnkeeper.model import event as e
from turnkeeper.model.message import ModelChoice, UserMessage
from turnkeeper.model.parts import TextPart
from turnkeeper.model.permission import Rule
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Busy, Conflict, Invalid, NotFound
from turnkeeper.model.request import ModelRequest, SystemTurn, Text, UserTurn
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, Stage

ON_DISK_TOO = pytest.mark.parametrize("engine", ["memory", "sqlite"])

MINE = "msg_1e07b173a001AAAAAAAAAAAAAA"


def said(request: ModelRequest) -> list[str]:
    """What the user said in a request."""
    turns = [turn for turn in request.messages if isinstance(turn, UserTurn)]
    return [of_type(Text, part).text for turn in turns for part in turn.content]


async def heard(stage: Stage, session: str) -> list[str]:
    """What the user said in the history."""
    return [
        part.text
        for message in await stage.messages(session)
        if isinstance(message.info, UserMessage)
        for part in message.parts
        if isinstance(part, TextPart)
    ]


@ON_DISK_TOO
async def test_steering_prompts_join_the_next_boundary_and_queued_ones_wait_for_their_turn(play: Play) -> None:
    gate = Gate()
    script = Scripted().waits(gate).calls("echo", text="x").then().says("a").then().says("b").then().says("c")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "first")
        await gate.wait_reached()
        await stage.say(session, "steer one")
        await stage.say(session, "queued one", delivery="queue")
        await stage.say(session, "steer two")
        await stage.say(session, "queued two", delivery="queue")
        gate.open()
        await stage.tk.wait(session)
        assert [said(request)[1:] for request in script.requests] == [
            [],
            ["steer one", "steer two"],
            ["steer one", "steer two", "queued one"],
            ["steer one", "steer two", "queued one", "queued two"],
        ]
        assert await heard(stage, session) == ["first", "steer one", "steer two", "queued one", "queued two"]


async def test_a_steer_that_comes_while_a_queued_prompt_is_answered_goes_before_the_next_queued_one(play: Play) -> None:
    gate = Gate()
    script = Scripted().says("1").then().waits(gate).says("2").then().says("3").then().says("4")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "first")
        await stage.say(session, "queued one", delivery="queue")
        await stage.say(session, "queued two", delivery="queue")
        await gate.wait_reached()
        await stage.say(session, "steer")
        gate.open()
        await stage.tk.wait(session)
        assert await heard(stage, session) == ["first", "queued one", "steer", "queued two"]


@ON_DISK_TOO
async def test_a_prompt_sent_again_under_its_id_gets_the_same_receipt_and_is_answered_once(play: Play) -> None:
    script = Scripted().says("yes")
    async with play(script) as stage:
        session = await stage.session()
        first = await stage.say(session, "go", message_id=MINE)
        await stage.tk.wait(session)
        again = await stage.say(session, "go", message_id=MINE)
        await stage.tk.wait(session)
        assert again == first
        assert first.seq == 2
        assert len(script.requests) == 1


async def test_a_prompt_sent_again_wakes_the_session(play: Play) -> None:
    script = Scripted().says("yes")
    async with play(script) as stage:
        session = await stage.session()
        recorded = await stage.say(session, "go", message_id=MINE, resume=False)
        assert script.requests == []
        assert await stage.say(session, "go", message_id=MINE) == recorded
        await stage.tk.wait(session)
        assert len(script.requests) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"parts": (TextInput(text="else"),)},
        {"delivery": "queue"},
        {"agent": "plan"},
        {"no_reply": True},
    ],
    ids=["other words", "other delivery", "other agent", "no reply"],
)
async def test_an_id_that_stands_for_something_else_is_a_conflict(play: Play, other: dict[str, object]) -> None:
    async with play(Scripted().says("yes")) as stage:
        session = await stage.session()
        prompt = Prompt(message_id=MINE, parts=(TextInput(text="go"),))
        await stage.tk.prompt(session, prompt, resume=False)
        with pytest.raises(Conflict):
            await stage.tk.prompt(session, prompt.but(**other), resume=False)
        with pytest.raises(Conflict):
            await stage.tk.prompt(await stage.session(), prompt, resume=False)
        await stage.tk.run(session)
        with pytest.raises(Conflict):  # Promoted by now, and still taken.
            await stage.tk.prompt(session, prompt.but(**other), resume=False)
        answer = (await stage.messages(session))[-1].info.id
        with pytest.raises(Conflict):  # A message that was no prompt.
            await stage.tk.prompt(session, prompt.but(message_id=answer), resume=False)


@ON_DISK_TOO
async def test_the_same_prompt_sent_many_times_at_once_is_admitted_once(play: Play) -> None:
    script = Scripted().says("yes")
    async with play(script) as stage:
        session = await stage.session()
        receipts = []

        async def send() -> None:
            receipts.append(await stage.say(session, "go", message_id=MINE))

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(send)
        await stage.tk.wait(session)
        assert len(receipts) == 20
        assert len(set(receipts)) == 1
        assert [type(one) for one in await stage.events(session)].count(e.PromptAdmitted) == 1
        assert len(script.requests) == 1


@ON_DISK_TOO
async def test_of_two_prompts_sent_at_once_under_one_id_one_wins_and_the_other_is_told(play: Play) -> None:
    async with play(Scripted().says("yes")) as stage:
        session = await stage.session()
        outcomes: list[str] = []

        async def send(text: str) -> None:
            try:
                await stage.say(session, text, message_id=MINE)
                outcomes.append("admitted")
            except Conflict:
                outcomes.append("conflict")

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(send, f"go {number}")
        await stage.tk.wait(session)
        assert sorted(outcomes) == ["admitted", *["conflict"] * 7]
        assert len(await heard(stage, session)) == 1


async def test_a_prompt_that_is_not_to_be_resumed_is_only_recorded(play: Play) -> None:
    script = Scripted().says("yes")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "later", resume=False)
        await stage.tk.wait(session)
        assert script.requests == []
        assert await heard(stage, session) == []
        assert (await stage.tk.run(session)).reason == "answered"
        assert await heard(stage, session) == ["later"]


async def test_a_prompt_that_wants_no_reply_is_part_of_the_history_at_once_and_wakes_nobody(play: Play) -> None:
    script = Scripted().says("yes")
    async with play(script) as stage:
        session = await stage.session()
        receipt = await stage.say(session, "for later", no_reply=True)
        assert await stage.say(session, "for later", no_reply=True, message_id=receipt.message_id) == receipt
        assert await heard(stage, session) == ["for later"]
        assert script.requests == []
        await stage.ask(session, "now")
        assert said(script.requests[0]) == ["for later", "now"]


async def test_too_many_waiting_prompts_are_refused(play: Play) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        for number in range(INBOX_MAX):
            await stage.say(session, str(number), resume=False)
        with pytest.raises(Busy, match="waiting already"):
            await stage.say(session, "one more", resume=False)


async def test_not_more_than_so_many_steers_join_one_boundary(play: Play) -> None:
    script = Scripted().says("ok").forever()
    async with play(script) as stage:
        session = await stage.session()
        for number in range(STEERS_MAX + 3):
            await stage.say(session, str(number), resume=False)
        await stage.tk.run(session)
        promotions = [
            type(event) for event in await stage.events(session) if isinstance(event, e.PromptPromoted | e.TurnStarted)
        ]
        # All come before the turn, for a boundary is crossed until no steer waits; each append takes so many.
        assert promotions == [e.PromptPromoted] * (STEERS_MAX + 3) + [e.TurnStarted]


@pytest.mark.parametrize(
    ("prompt", "refusal"),
    [
        (Prompt(parts=()), Invalid),
        (Prompt(parts=(TextInput(text="half \ud83d"),)), Invalid),
        (Prompt(parts=(TextInput(text="go"),), message_id="no id of ours"), Invalid),
        (Prompt(parts=(TextInput(text="go"),), agent="nobody"), Invalid),
        (Prompt(parts=(TextInput(text="go"),), model=ModelChoice(provider_id="acme", model_id="none")), Invalid),
    ],
    ids=["nothing said", "half a character", "an id of another kind", "an unknown agent", "an unknown model"],
)
async def test_a_prompt_that_makes_no_sense_is_refused(play: Play, prompt: Prompt, refusal: type[Exception]) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        before = await stage.events(session)
        with pytest.raises(refusal):
            await stage.tk.prompt(session, prompt)
        assert await stage.events(session) == before


async def test_a_prompt_for_a_session_that_is_not_there_is_refused(play: Play) -> None:
    async with play(Scripted()) as stage:
        with pytest.raises(NotFound):
            await stage.say("ses_e1f84e8c5ffeJ7iU4nZamE9866", "hello?")


async def test_what_a_prompt_chooses_is_kept_for_the_session(play: Play) -> None:
    script = Scripted().says("ok").forever()
    other = ModelChoice(provider_id="acme", model_id="other")
    async with play(script, config={"permission": {"echo": "ask"}}) as stage:
        session = await stage.session()
        await stage.ask(session, "go", model=other, agent="plan", tools={"echo": False}, system="Be brief.")
        stored = await stage.tk.get(session)
        assert stored.model is not None
        assert (stored.agent, stored.model.id) == ("plan", "other")
        assert stored.permission == (Rule(permission="echo", pattern="*", action="deny"),)
        assert SystemTurn(text="Be brief.") in script.requests[0].messages
        assert "echo" not in {tool.name for tool in script.requests[0].tools}
        await stage.ask(session, "and now", agent="build")
        assert script.requests[1].model.id == "other"
        assert (await stage.tk.get(session)).agent == "build"
