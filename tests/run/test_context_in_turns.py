"""The System Context inside whole turns: what is met while reading, words for one request, and what is missing."""

import os
import subprocess
from pathlib import Path

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from turnkeeper.context.component import ContextComponent, Loaded, Sample, Sampling, Unavailable
from turnkeeper.core.prefix import PASSED, TOOLS, reuse_percent
from turnkeeper.model.context import Prefix
from turnkeeper.model.event import ContextAdmitted, EpochStarted, InstructionDiscovered, PartRecorded, TurnStarted
from turnkeeper.model.message import JsonSchemaFormat, ModelChoice, SystemMessage
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.prompt import FileInput, TextInput
from turnkeeper.model.request import ModelRequest, SystemTurn
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import TOOLS as USUAL
from turnkeeper.testing.harness import Play, Stage, a_tool
from turnkeeper.tools.read import READ
from turnkeeper.tools.tool import ToolContext

WITH_READ = (*USUAL, READ)
FORM = JsonSchemaFormat(schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    return folder.resolve()


def put(path: Path, text: str = "x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def news(request: ModelRequest) -> list[str]:
    return [one.text for one in request.messages if isinstance(one, SystemTurn)]


async def met(stage: Stage, session: str) -> list[str]:
    return [one.path for one in await stage.events(session) if isinstance(one, InstructionDiscovered)]


async def prefixes(stage: Stage, session: str) -> list[Prefix]:
    started = [one for one in await stage.events(session) if isinstance(one, TurnStarted)]
    return [one.prefix for one in started if one.prefix is not None]


GIF = b"GIF89a" + (1).to_bytes(2, "little") * 2 + b"\0" * 20


@pytest.mark.parametrize(
    ("name", "mime", "content"),
    [("a.py", "text/plain", b"x\n"), ("a.gif", "image/gif", GIF), ("a.pdf", "application/pdf", b"%PDF-1.4")],
)
async def test_instructions_near_a_file_that_is_attached_hold_from_that_prompt_on_and_are_on_record_once(
    play: Play, here: Path, name: str, mime: str, content: bytes
) -> None:
    rules = put(here / "pkg/AGENTS.md", "Only in pkg.")
    file = put(here / "pkg" / name)
    file.write_bytes(content)
    other = put(here / "pkg/deep/b.py")
    deeper = put(here / "pkg/deep/AGENTS.md", "Only in deep.")
    script = Scripted().says("ok").forever()
    async with play(script) as stage:
        session = await stage.session()
        attached = tuple(
            FileInput(mime=kind, url=path.as_uri()) for path, kind in ((other, "text/plain"), (file, mime))
        )
        await stage.ask(session, "look", parts=(*attached, TextInput(text="look")))
        assert sorted(await met(stage, session)) == sorted([str(rules), str(deeper)])
        told = "\n".join([*script.requests[0].system, *news(script.requests[0])])
        assert "Only in pkg." in told
        assert "Only in deep." in told
        await stage.ask(session, "again", parts=(*attached, TextInput(text="again")))
        assert len(await met(stage, session)) == 2
        assert await stage.is_sound(session)


async def test_a_file_that_cannot_be_attached_discovers_nothing(play: Play, here: Path) -> None:
    put(here / "pkg/AGENTS.md", "Only in pkg.")
    async with play(Scripted().says("ok")) as stage:
        session = await stage.session()
        gone = FileInput(mime="text/plain", url=(here / "pkg/gone.py").as_uri())
        await stage.ask(session, "look", parts=(gone, TextInput(text="look")))
        assert await met(stage, session) == []


async def test_instructions_met_by_several_calls_are_on_record_once_each_beside_the_call(
    play: Play, here: Path
) -> None:
    rules = put(here / "pkg/AGENTS.md", "Only in pkg.")
    for name in ("a.py", "b.py", "deep/c.py"):
        put(here / "pkg" / name)
    inner = put(here / "pkg/deep/CLAUDE.md", "Only deep.")
    script = Scripted().calls("read", filePath="pkg/a.py").calls("read", filePath="pkg/b.py")
    script.calls("read", filePath="pkg/deep/c.py").then().calls("read", filePath="pkg/a.py").then().says("Done.")
    async with play(script, tools=WITH_READ) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert sorted(await met(stage, session)) == sorted([str(rules), str(inner)])
        recorded = await stage.tk.store.journal.read(session)
        for one in recorded:
            if isinstance(one.event, InstructionDiscovered):
                before = recorded[one.seq - 2]
                assert before.time == one.time
                assert isinstance(before.event, InstructionDiscovered | PartRecorded)
        assert len([one for one in await stage.events(session) if isinstance(one, ContextAdmitted)]) == 1


async def test_a_call_that_fails_meets_nothing_nor_does_reading_the_instructions_themselves(
    play: Play, here: Path
) -> None:
    put(here / "pkg/AGENTS.md", "Only in pkg.")
    script = Scripted().calls("read", filePath="pkg/none.py").then().calls("read", filePath="pkg/AGENTS.md")
    async with play(script.then().says("Done."), tools=WITH_READ) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert await met(stage, session) == []


async def test_a_link_out_of_the_project_is_not_followed(play: Play, here: Path, tmp_path: Path) -> None:
    secret = put(tmp_path / "secret.md", "the secret")
    put(here / "pkg/code.py")
    (here / "pkg/AGENTS.md").symlink_to(secret)
    (here / "AGENTS.md").symlink_to(secret)
    script = Scripted().calls("read", filePath="pkg/code.py").then().says("Done.").forever()
    async with play(script, tools=WITH_READ) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert await met(stage, session) == []
        told = [text for request in script.requests for text in (*request.system, *news(request))]
        assert not any("the secret" in text for text in told)


async def test_a_move_inside_the_project_forgets_what_was_met_before_it(play: Play, here: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(here)], check=True)
    put(here / "pkg/AGENTS.md", "Only in pkg.")
    put(here / "pkg/code.py")
    put(here / "other/code.py")
    script = Scripted().calls("read", filePath="pkg/code.py").then().says("Done.").forever()
    async with play(script, tools=WITH_READ) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        assert len(await met(stage, session)) == 1
        await stage.tk.move(session, here / "other")
        await stage.ask(session, "and here?")
        assert not any("Only in pkg." in text for text in script.requests[-1].system)
        assert (await stage.tk.store.journal.view(session)).instructions == ()


async def test_a_long_baseline_is_sent_as_itself_and_not_as_its_mark(play: Play, here: Path) -> None:
    put(here / "AGENTS.md", "A long rule. " * 5000)
    script = Scripted().says("Yes.").forever()
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        await stage.ask(session, "two")
        assert [request.system[-1].count("A long rule.") for request in script.requests] == [5000, 5000]
        put(here / "AGENTS.md", "Another rule. " * 5000)
        await stage.ask(session, "three")
        stage.tk.runtime._histories.forget(session)
        await stage.ask(session, "four")
        assert [news(request)[0].count("Another rule.") for request in script.requests[2:]] == [5000, 5000]
        assert [reuse_percent(one) for one in await prefixes(stage, session)] == [None, 100, 100, 100]


async def test_the_last_step_keeps_its_tools_and_its_reminder_passes(play: Play) -> None:
    script = Scripted().calls("echo", text="a").then().says("So far.").then().says("More.")
    async with play(script, config={"agent": {"build": {"steps": 2}}}) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.ask(session, "go on")
        first, last, later = await prefixes(stage, session)
        assert script.requests[1].tools == script.requests[0].tools
        assert isinstance(script.requests[1].messages[-1], SystemTurn)
        assert news(script.requests[2]) == []
        assert (reuse_percent(last), last.cause) == (100, None)
        assert "the tool choice changed" in (last.note or "")
        assert later.cause == PASSED
        assert later.before - later.reused == last.passing > 0
        assert first.passing == 0


async def test_the_words_for_a_structured_answer_pass_and_its_tool_is_the_only_break(play: Play) -> None:
    script = Scripted().says("Seven.").then().calls("StructuredOutput", n=7).then().says("Yes.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "a number", format=FORM)
        await stage.ask(session, "thanks")
        first, second, later = await prefixes(stage, session)
        assert len({request.system for request in script.requests}) == 1
        retried = [type(one).__name__ for one in script.requests[1].messages]
        assert retried == ["UserTurn", "AssistantTurn", "UserTurn", "SystemTurn"], "asked to go on, and reminded"
        assert (second.cause, second.before - second.reused) == (PASSED, first.passing)
        assert later.cause == TOOLS


async def test_the_system_text_of_a_prompt_stands_at_its_place(play: Play) -> None:
    script = Scripted().says("Yes.").forever()
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "one", system="Be brief.")
        await stage.ask(session, "two")
        await stage.ask(session, "three", system="Be thorough.")
        assert [news(request) for request in script.requests] == [
            ["Be brief."],
            ["Be brief."],
            ["Be brief.", "Be thorough."],
        ]
        assert [reuse_percent(one) for one in await prefixes(stage, session)] == [None, 100, 100]


async def test_news_that_is_removed_from_the_history_is_told_again(play: Play, here: Path) -> None:
    put(here / "AGENTS.md", "first")
    script = Scripted().says("Yes.").forever()
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        put(here / "AGENTS.md", "second")
        await stage.ask(session, "two")
        [message] = [one.info for one in await stage.messages(session) if isinstance(one.info, SystemMessage)]
        await stage.tk.remove_message(session, message.id)
        await stage.ask(session, "three")
        assert len(news(script.requests[2])) == 1
        assert news(script.requests[2])[0].endswith("\nsecond")
        assert (await prefixes(stage, session))[2].cause == "the history was changed"
        await stage.ask(session, "four")
        assert len(news(script.requests[3])) == 1


async def test_a_revert_to_before_the_baseline_begins_an_epoch_and_a_later_one_does_not(play: Play, here: Path) -> None:
    put(here / "AGENTS.md", "first")
    script = Scripted().says("Yes.").forever()
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        put(here / "AGENTS.md", "second")
        await stage.ask(session, "two")
        await stage.tk.undo(session)
        await stage.ask(session, "two again")
        assert news(script.requests[2])[0].endswith("\nsecond")
        epoch = (await stage.tk.store.journal.view(session)).epoch
        assert epoch is not None
        assert (epoch.number, epoch.reason) == (1, "start")
        await stage.tk.undo(session)
        await stage.tk.undo(session)
        await stage.ask(session, "one again")
        assert news(script.requests[3]) == []
        epoch = (await stage.tk.store.journal.view(session)).epoch
        assert epoch is not None
        assert (epoch.number, epoch.reason, epoch.is_over) == (2, "revert", False)
        await stage.ask(session, "and on")
        assert [one.epoch for one in await prefixes(stage, session)] == [1, 1, 1, 2, 2]


async def test_after_a_while_the_cache_may_be_gone_which_is_noted(play: Play) -> None:
    script = Scripted().says("Yes.").forever()
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        stage.time.advance(301_000)
        await stage.ask(session, "two")
        late = (await prefixes(stage, session))[1]
        assert (reuse_percent(late), late.cause) == (100, None)
        assert late.note == "more than 5 minutes have passed: the provider may have let go of its cache"


async def test_an_address_is_told_from_and_one_that_fails_is_no_error(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    answer = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\nconnection: close\r\n\r\nBe kind."

    async def handle(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(answer)

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/rules.md"
    refused = "http://127.0.0.1:1/rules.md"
    script = Scripted().says("Yes.").forever()
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        async with play(script, config={"instructions": [url, refused]}) as stage:
            session = await stage.session()
            await stage.ask(session, "one")
            assert script.requests[0].system[-1] == f"Instructions from: {url}\nBe kind."
            assert not any(refused in text for text in script.requests[0].system)
            assert caplog.records == [], "a place that does not answer is nothing to warn of at each turn"
        group.cancel_scope.cancel()


async def test_what_is_unavailable_when_another_model_answers_stays_as_it_was_told(play: Play) -> None:
    sample: Sample = Loaded(baseline="It rains.", update="It rains now.")

    async def load(_: Sampling) -> Sample:
        return sample

    script = Scripted().says("Yes.").forever()
    async with play(script) as stage:
        stage.tk.context(ContextComponent("acme/weather", load))
        session = await stage.session()
        await stage.ask(session, "one")
        sample = Loaded(baseline="The sun shines.", update="The sun shines now.")
        await stage.ask(session, "two")
        sample = Unavailable(reason="no signal")
        await stage.ask(session, "three", model=ModelChoice(provider_id="acme", model_id="other"))
        assert (script.requests[2].system[-1], news(script.requests[2])) == ("The sun shines now.", [])
        sample = Loaded(baseline="The sun shines.", update="The sun shines now.")
        await stage.ask(session, "four")
        assert news(script.requests[3]) == []


async def test_the_map_of_the_files_is_drawn_when_an_epoch_begins_and_never_again(play: Play, here: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(here)], check=True)
    put(here / "one.py")
    put(here / os.fsdecode(b"caf\xe9.py"))
    script = Scripted().says("Yes.").forever()
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "one")
        put(here / "two.py")
        await stage.ask(session, "two")
        await stage.ask(session, "three", model=ModelChoice(provider_id="acme", model_id="other"))
        maps = [[text for text in request.system if "<files>" in text] for request in script.requests]
        assert ["two.py" in text for [text] in maps] == [False, False, True]
        assert "one.py" in maps[0][0]
        assert [news(request) for request in script.requests] == [[], [], []]
        assert len([one for one in await stage.events(session) if isinstance(one, EpochStarted)]) == 2


async def test_a_change_that_a_tool_makes_is_told_behind_its_result(play: Play, here: Path) -> None:
    async def rule(text: str, _: ToolContext) -> str:
        put(here / "AGENTS.md", text)
        return "written"

    script = Scripted().calls("rule", text="Be kind.").then().says("Kindly.")
    async with play(script, tools=(a_tool("rule", rule),)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [(_, parts), _] = await stage.turns(session)
        assert any(isinstance(one, ToolPart) and isinstance(one.state, ToolCompleted) for one in parts)
        assert news(script.requests[1])[0].endswith("Be kind.")
        assert await stage.is_sound(session)
