"""Compaction in whole turns: when it comes, what the model sees afterwards, and that it can neither fail nor loop."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from small_window import FETCH, SMALL, WINDOW, config, lives, texts, works

from turnkeeper.core.history import visible
from turnkeeper.core.lowering import COMPACTED
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure, OverflowFailure
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import CompactionPart, TextPart
from turnkeeper.model.prompt import FileInput, Prompt, TextInput
from turnkeeper.model.refusal import Busy, Refusal
from turnkeeper.model.request import Media, Text, ToolTurn, UserTurn
from turnkeeper.model.todo import Todo
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.summarise import Draft, Hooks
from turnkeeper.testing.harness import Play, Stage, StageOptions, stage
from turnkeeper.testing.windowed import Windowed, WindowedTurn, honest, is_summary

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)


async def summaries(stage: Stage, session: str) -> list[AssistantMessage]:
    return [message for message, _ in await stage.turns(session) if message.summary]


async def test_a_session_goes_on_past_its_window_and_no_request_is_ever_refused(play: Play) -> None:
    model = Windowed(WINDOW, works)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await lives(stage, 12)
        assert model.summaries >= 2
        assert model.refused == 0
        assert max(model.sizes) <= WINDOW
        assert all(one.finish == "stop" for one in await summaries(stage, session))
        assert await stage.is_sound(session)


async def test_after_a_compaction_the_model_sees_the_summary_the_tail_and_what_came_after(play: Play) -> None:
    model = Windowed(WINDOW, works)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await stage.session()
        while not await summaries(stage, session):
            await stage.ask(session, f"fetch {len(model.sizes)}")
        shown = texts(model.requests[-1])
        assert shown[0] == COMPACTED
        assert shown[1].startswith("## Objective")
        assert not any(text == "fetch 0" for text in shown)
        view = await stage.tk.store.journal.view(session)
        assert view.session.time.compacting is None
        assert view.epoch is not None
        assert view.epoch.reason == "compaction"


async def test_an_unanswered_prompt_is_never_summarised_but_asked_again_behind_the_summary(play: Play) -> None:
    model = Windowed(WINDOW, works)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await stage.session()
        asked = ""
        while not await summaries(stage, session):
            asked = f"fetch {len(model.sizes)}"
            await stage.ask(session, asked)
        asked_of_summariser = [m for m in await stage.messages(session) if isinstance(m.info, UserMessage)]
        marks = [m for m in asked_of_summariser if any(isinstance(part, CompactionPart) for part in m.parts)]
        assert len(marks) == 1
        behind = asked_of_summariser[asked_of_summariser.index(marks[0]) + 1]
        said = [part for part in behind.parts if isinstance(part, TextPart)]
        is_again = [part.text for part in said] == [asked]
        is_told_to_go_on = bool(said[0].synthetic) and said[0].metadata == {"compaction_continue": True}
        assert is_again or is_told_to_go_on


async def test_a_compaction_in_the_middle_of_work_goes_on_with_it(play: Play) -> None:
    """Each prompt needs three fetches, so the window fills up while the model works."""
    left: dict[str, int] = {}

    def digs(asked: str, results: ToolTurn | None) -> WindowedTurn:
        left["n"] = left.get("n", 9) - 1
        return (
            WindowedTurn(tool="fetch", calls=({"text": f"dig {left['n']}"},))
            if left["n"] >= 0
            else WindowedTurn(text="Found it.")
        )

    model = Windowed(WINDOW, digs)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "dig deep")).reason == "answered"
        assert model.refused == 0
        assert model.summaries >= 1
        turns = await stage.turns(session)
        assert [part.text for part in turns[-1][1] if isinstance(part, TextPart)] == ["Found it."]
        assert "dig deep" in next(texts(one)[1] for one in [model.requests[-1]])


@pytest.mark.parametrize(
    "summarises",
    [
        lambda asked: WindowedTurn(text=""),
        lambda asked: WindowedTurn(text=asked * 3),
        lambda asked: WindowedTurn(text="The weather is fine today."),
        lambda asked: WindowedTurn(tool="fetch", calls=({"text": "no"},)),
        lambda asked: WindowedTurn(text=f"{honest(asked).text}\nSee r0123456789."),
    ],
    ids=["empty", "longer than what it read", "about something else", "calls tools", "invents a handle"],
)
async def test_whatever_a_summariser_does_the_session_goes_on_after_two_calls(
    play: Play, summarises: Callable[[str], WindowedTurn]
) -> None:
    model = Windowed(WINDOW, works, summarises)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await lives(stage, 8)
        done = await summaries(stage, session)
        assert done
        assert model.summaries <= 2 * len(done)
        assert model.refused == 0
        assert all(message.error is None for message in done)
        assert await stage.is_sound(session)


async def test_a_summariser_that_fails_for_good_is_asked_once_and_its_failure_is_named(play: Play) -> None:
    script = Scripted().says("a").then().fails(401).then().says("b")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        done = await stage.tk.compact(session, force=True)
        assert done.is_digest
        assert done.problem
        assert "go" in (done.summary or "")
        assert (await stage.ask(session, "on")).reason == "answered"
        assert texts(script.requests[-1])[1] == done.summary


async def test_a_provider_that_says_it_is_too_much_gets_less_and_the_turn_goes_on(play: Play) -> None:
    script = Scripted().says("one").then().overflows().then().says("## Objective\nGoing.").then().says("two")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "first")
        assert (await stage.ask(session, "second")).reason == "answered"
        turns = await stage.turns(session)
        assert isinstance(turns[1][0].error, OverflowFailure)
        marks = [part for m in await stage.messages(session) for part in m.parts if isinstance(part, CompactionPart)]
        assert [(mark.auto, mark.overflow) for mark in marks] == [(True, True)]
        assert texts(script.requests[-1])[-1] == "second"
        assert await stage.is_sound(session)


async def test_a_second_refusal_without_progress_is_the_end_and_no_loop(play: Play) -> None:
    script = Scripted().says("one").then().overflows().then().says("## Objective\nGoing.").then().overflows()
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "first")
        outcome = await stage.ask(session, "second")
        assert "OverflowFailure" in outcome.reason
        assert len(script.requests) == 4


async def test_media_that_were_too_much_are_asked_again_as_words(play: Play) -> None:
    script = Scripted().says("one").then().overflows().then().says("## Objective\nx").then().says("two")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "first")
        image = FileInput(url=PNG, mime="image/png", filename="big.png")
        await stage.tk.prompt(session, Prompt(parts=(TextInput(text="look"), image)))
        await stage.tk.wait(session)
        sent = [part for m in script.requests[1].messages if isinstance(m, UserTurn) for part in m.content]
        assert any(isinstance(part, Media) for part in sent)
        last = script.requests[-1].messages[-1]
        assert isinstance(last, UserTurn)
        assert [part.text for part in last.content if isinstance(part, Text)] == [
            "look",
            "[Attached image/png: big.png]",
        ]
        assert not any(isinstance(part, Media) for part in last.content)


async def test_with_auto_off_nothing_is_compacted_and_the_refusal_stands(play: Play) -> None:
    for given in ({"config": config(auto=False)}, {"config": SMALL, "environ": {"OPENCODE_DISABLE_AUTOCOMPACT": "1"}}):
        model = Windowed(WINDOW, works)
        async with play(model, tools=FETCH, **given) as stage:
            session = await stage.session()
            reasons = [(await stage.ask(session, f"fetch {number}")).reason for number in range(8)]
            assert model.summaries == 0
            assert "OverflowFailure" in reasons[-1]


async def test_stopping_a_compaction_leaves_the_earlier_boundary_in_force(play: Play) -> None:
    gate = Gate()
    script = Scripted().says("a").then().says("never").waits(gate).then().says("b")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        refused: list[Refusal] = []

        async def compact() -> None:
            try:
                await stage.tk.compact(session, force=True)
            except Refusal as refusal:
                refused.append(refusal)

        async with anyio.create_task_group() as group:
            group.start_soon(compact)
            await gate.wait_reached()
            await stage.tk.stop(session)
        assert "nothing has changed" in str(refused[0])
        stopped = (await summaries(stage, session))[-1]
        assert isinstance(stopped.error, AbortedFailure)
        view = await stage.tk.store.journal.view(session)
        assert view.session.time.compacting is None
        await stage.ask(session, "on")
        assert texts(script.requests[-1]) == ["go", "a", "on"]
        assert await stage.is_sound(session)


async def test_a_compaction_by_hand_says_when_there_is_nothing_to_gain(play: Play) -> None:
    async with play(Scripted().says("a").then().says("## Objective\ngo")) as stage:
        session = await stage.session()
        assert (await stage.tk.compact(session, force=True)).summary is None
        await stage.ask(session, "go")
        little = await stage.tk.compact(session)
        assert little.summary is None
        assert "with force" in little.reason
        done = await stage.tk.compact(session, force=True)
        assert done.summary is not None
        assert (await stage.tk.compact(session, force=True)).summary is None
        [mark] = [part for m in await stage.messages(session) for part in m.parts if isinstance(part, CompactionPart)]
        assert not mark.auto


async def test_a_session_at_work_cannot_be_compacted_by_hand(play: Play) -> None:
    gate = Gate()
    async with play(Scripted().says("a").then().says("b").waits(gate)) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        await stage.say(session, "two")
        await gate.wait_reached()
        with pytest.raises(Busy):
            await stage.tk.compact(session, force=True)
        gate.open()
        await stage.tk.wait(session)


async def test_open_todos_and_the_files_that_were_changed_are_in_the_summary(play: Play) -> None:
    script = Scripted().says("a").then().says("nothing of it").then().says("still nothing")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "do the thing exactly so")
        await stage.tk.set_todos(session, [Todo(content="mend the roof", status="pending", priority="high")])
        done = await stage.tk.compact(session, force=True)
        assert not done.is_digest
        assert "mend the roof" in (done.summary or "")
        assert "do the thing exactly so" in (done.summary or "")


async def test_the_bill_of_a_compaction_is_in_the_ledger_whatever_came_of_it(play: Play) -> None:
    script = (
        Scripted()
        .says("a")
        .usage(input=10, output=1)
        .then()
        .says("")
        .usage(input=100, output=1)
        .then()
        .says("")
        .usage(input=100, output=2)
    )
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.tk.compact(session, force=True)
        rows = [one for one in await stage.events(session) if isinstance(one, e.UsageRecorded)]
        assert [(row.purpose, row.attempt) for row in rows] == [("turn", 1), ("compaction", 1), ("compaction", 2)]
        assert (await stage.tk.get(session)).cost == pytest.approx(sum(row.cost for row in rows))


async def test_a_head_that_is_too_long_for_the_summariser_is_read_in_pieces(play: Play) -> None:
    model = Windowed(WINDOW, lambda asked, results: WindowedTurn(text="y" * 9_000))
    async with play(model, config=config(preserve_recent_tokens=0, max_messages=4, auto=True)) as stage:
        session = await stage.session()
        for number in range(3):
            await stage.ask(session, f"say {number} " + "z" * 6_000)
        assert model.refused == 0
        assert model.summaries >= 2
        assert await stage.is_sound(session)


async def test_the_compaction_agent_has_its_own_model_and_prompt(play: Play) -> None:
    agent = {"compaction": {"model": "acme/other", "prompt": "Sum it up."}}
    script = Scripted().says("a").then().says("## Objective\ngo")
    async with play(script, config={"agent": agent}) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.tk.compact(session, force=True)
        request = script.requests[-1]
        assert (request.model.id, request.system, request.tools) == ("other", ("Sum it up.",), ())
        [summary] = await summaries(stage, session)
        assert (summary.agent, summary.mode, summary.model_id) == ("compaction", "compaction", "other")


async def test_where_the_agents_model_is_not_there_the_sessions_own_writes(play: Play) -> None:
    script = Scripted().says("a").then().says("## Objective\ngo")
    async with play(script, config={"agent": {"compaction": {"model": "acme/none"}}}) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert (await stage.tk.compact(session, force=True)).summary == "## Objective\ngo"
        assert script.requests[-1].model.id == "large"


async def test_what_was_compacted_before_is_merged_into_the_next_summary(play: Play) -> None:
    script = (
        Scripted()
        .says("a")
        .then()
        .says("## Objective\nFIRST go")
        .then()
        .says("b")
        .then()
        .says("## Objective\nSECOND on")
    )
    async with play(script, config={"compaction": {"preserve_recent_tokens": 0}}) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.tk.compact(session, force=True)
        await stage.ask(session, "on")
        await stage.tk.compact(session, force=True)
        asked = texts(script.requests[-1])[0]
        assert "<prior-summary>\n## Objective\nFIRST go\n</prior-summary>" in asked
        history = await stage.tk.runtime.history(session)
        assert [entry.message.id for entry in visible(history.entries)][1] == (await summaries(stage, session))[-1].id
        assert is_summary(script.requests[-1])


async def test_hooks_may_change_what_a_summariser_is_told_and_whether_work_goes_on(tmp_path: Path) -> None:
    heard: list[tuple[str, bool]] = []

    def compacting(session_id: str, draft: Draft) -> Draft:
        return draft.but(context=("Remember the tide.",), prompt="Be brief.")

    def autocontinue(session_id: str, overflow: bool) -> bool:
        heard.append((session_id, overflow))
        return False

    script = Scripted().says("one").then().says("## Objective\nfirst")
    hooks = Hooks(compacting=compacting, autocontinue=autocontinue)
    async with stage("memory:", tmp_path, script, StageOptions(hooks=hooks)) as opened:
        session = await opened.session()
        await opened.ask(session, "first")
        await opened.tk.compact(session, force=True, auto=True)
        await opened.tk.wait(session)
        asked = texts(script.requests[-1])[0]
        assert asked.startswith("Be brief.")
        assert "Remember the tide." in asked
        assert heard == [(session, False)]
        assert len(script.requests) == 2, "nobody was asked to go on"


async def test_a_good_summary_that_lacks_facts_is_kept_and_completed_after_one_call(play: Play) -> None:
    work = " ".join(f"word{n}" for n in range(2_000))
    script = Scripted().says(work).then().says("The roof was mended with slate.").then().says("b")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "do the thing exactly so")
        todos = [Todo(content=f"task number {n}", status="pending", priority="high") for n in range(5)]
        await stage.tk.set_todos(session, todos)
        done = await stage.tk.compact(session, force=True)
        assert (done.is_digest, len(script.requests)) == (False, 2)
        assert (done.summary or "").startswith("The roof was mended with slate.")
        assert all(one.content in (done.summary or "") for one in todos)


async def test_a_summary_is_never_longer_than_the_history_it_replaces(play: Play) -> None:
    script = Scripted().says("a").then().says("a very long summary " * 20)
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        done = await stage.tk.compact(session, force=True)
        assert done.summary == "[User]: go\n\n[Assistant]: a"


async def test_a_lone_prompt_that_does_not_fit_is_refused_without_asking_and_stays(play: Play) -> None:
    model = Windowed(WINDOW, works, honest)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await stage.session()
        await stage.ask(session, "x" * (WINDOW * 9))
        turns = await stage.turns(session)
        assert [type(message.error) for message, _ in turns] == [OverflowFailure]
        assert (model.requests, await summaries(stage, session)) == ([], [])


async def test_a_lone_prompt_that_the_provider_refuses_is_not_summarised_away(play: Play) -> None:
    model = Windowed(WINDOW, works, honest)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await stage.session()
        await stage.ask(session, "x" * (WINDOW * 5))
        turns = await stage.turns(session)
        assert [type(message.error) for message, _ in turns] == [OverflowFailure]
        assert await summaries(stage, session) == []


async def test_the_limit_of_an_answer_is_the_reserve_that_compaction_counts_with(play: Play) -> None:
    script = Scripted().says("a").then().says("## Objective\ngo")
    async with play(script, config=config()) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.tk.compact(session, force=True)
        assert [one.output_max for one in script.requests] == [1_000, 1_000]
