"""What a turn leaves out of its results comes back through recall: in the loop, in forks, and after an import."""

import json
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from narrow import of_type, result_text

from turnkeeper.app import open_store
from turnkeeper.core.handles import handle, handles_in
from turnkeeper.core.limits import OUTPUT_BYTES_MAX, RESULT_MEDIA_MAX, TEXT_INDEXED_MAX
from turnkeeper.model import event as e
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import CompactionPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import SettledTime, ToolCompleted, ToolError
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.request import ModelRequest, ToolTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.builders import a_call, a_session, a_text, a_user, an_assistant, completed
from turnkeeper.testing.harness import TOOLS, Play, Stage, a_tool
from turnkeeper.tools import load
from turnkeeper.tools.tool import Attachment, ToolContext, ToolOutput

EVERY_ENGINE = pytest.mark.parametrize("engine", ["memory", "sqlite", "files"])
LONG = "".join(f"{number:06} é and what else it prints\r\n" for number in range(6000))
"""200 KiB."""


async def prints(text: str, context: ToolContext) -> str:
    return LONG


PRINTS = a_tool("prints", prints)
RECALL, READ = load(["recall"])[0], load(["read"])[0]


class Pager:
    """A model that asks for a long output and pages through all of it by the handle in its place."""

    def __init__(self) -> None:
        self.pages: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        results = [one for one in request.messages if isinstance(one, ToolTurn)]
        if not results:
            script = Scripted().calls("prints")
        else:
            said = result_text(results[-1])
            if len(results) > 1:
                self.pages.append(said.partition("\n")[2])
            further = re.search(r"go on with offset (\d+)\]\n", said)
            offset = 0 if len(results) == 1 else int(further[1]) if further else None
            name = handles_in(result_text(results[0]))[0]
            call = Scripted().calls("recall", call_id=f"call_{len(results)}", handle=name, offset=offset)
            script = Scripted().says("I have it all.") if offset is None else call
        async for batch in script.stream(request):
            yield batch


def outputs(messages: list[MessageWithParts]) -> list[ToolPart]:
    return [part for one in messages for part in one.parts if isinstance(part, ToolPart)]


async def a_long_output(stage: Stage) -> tuple[str, ToolCompleted]:
    """A session in which a tool printed much, and what was recorded of it."""
    session = await stage.session()
    await stage.ask(session, "go")
    state = outputs(await stage.messages(session))[0].state
    assert isinstance(state, ToolCompleted)
    return session, state


@EVERY_ENGINE
async def test_a_model_pages_through_what_it_was_not_shown(play: Play) -> None:
    model = Pager()
    async with play(model, tools=(PRINTS, RECALL)) as stage:
        session, state = await a_long_output(stage)
        assert "".join(model.pages) == LONG
        assert len(model.pages) > 5
        assert state.full == LONG
        assert len(state.output.encode()) <= OUTPUT_BYTES_MAX
        assert handles_in(state.output) == [handle(LONG)]
        assert await stage.is_sound(session)


async def test_the_whole_output_lies_in_a_file_that_a_model_may_read_unasked(play: Play, tmp_path: Path) -> None:
    # In a place outside the project, which would be asked about.
    environ = {"TURNKEEPER_DATA": str(tmp_path / "elsewhere")}
    asked = []

    async def refuse(request: object) -> object:
        asked.append(request)
        raise AssertionError("nobody is to be asked")

    class Reader(Scripted):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            results = [one for one in request.messages if isinstance(one, ToolTurn)]
            if len(results) == 1:
                said = result_text(results[0])
                path = re.search(r"grep (\S+) \.\.\.\]", said)
                assert path
                self.calls("read", filePath=path[1], offset=5999).then().says("done")
            async for batch in super().stream(request):
                yield batch

    model = Reader().calls("prints").then()
    async with play(model, tools=(PRINTS, READ), environ=environ, ask=refuse) as stage:
        session, state = await a_long_output(stage)
        [path] = state.output_paths or ()
        assert state.metadata["outputPath"] == path
        assert Path(path).read_bytes() == LONG.encode()
        read = outputs(await stage.messages(session))[1].state
        assert isinstance(read, ToolCompleted), read
        assert "5999: 005998 é" in read.output
        assert asked == []


@pytest.mark.parametrize(
    "rules",
    [{"external_directory": "deny"}, {"external_directory": {"*": "ask", "*/tool-output/*": "deny"}}, "deny"],
    ids=str,
)
async def test_who_is_denied_that_directory_does_not_read_in_it(play: Play, tmp_path: Path, rules: Any) -> None:
    place = tmp_path / "elsewhere" / "tool-output"
    place.mkdir(parents=True)
    (place / "tool_1").write_text("secret")
    model = Scripted().calls("read", filePath=str(place / "tool_1")).then().says("denied")
    environ = {"TURNKEEPER_DATA": str(tmp_path / "elsewhere")}
    config = {"permission": rules if isinstance(rules, str) else {"read": "allow", **rules}}
    async with play(model, tools=(READ,), environ=environ, config=config) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [call] = outputs(await stage.messages(session))
        assert isinstance(call.state, ToolError)
        assert "secret" not in call.state.error


async def test_a_denied_recall_gives_nothing(play: Play) -> None:
    model = Scripted().calls("recall", handle=handle("go")).then().says("denied")
    config = {"permission": {"recall": {"*": "deny", "x": "allow"}}}
    async with play(model, tools=(RECALL,), config=config) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [call] = outputs(await stage.messages(session))
        assert isinstance(call.state, ToolError)
        assert "denied by a rule" in call.state.error


async def test_a_disk_that_is_full_costs_a_result_nothing_but_its_file(play: Play, tmp_path: Path) -> None:
    (tmp_path / "tool-output").write_text("")  # Nothing can be written below a file.
    environ = {"TURNKEEPER_DATA": str(tmp_path)}
    async with play(Pager(), tools=(PRINTS, RECALL), environ=environ) as stage:
        _, state = await a_long_output(stage)
        assert (state.full, state.output_paths) == (LONG, None)
        assert state.metadata["outputWarning"] == "File exists"
        assert "outputPath" not in state.metadata


async def test_the_files_of_a_removed_session_go_with_it(play: Play, tmp_path: Path) -> None:
    environ = {"TURNKEEPER_DATA": str(tmp_path)}
    async with play(Pager(), tools=(PRINTS, RECALL), environ=environ) as stage:
        session, state = await a_long_output(stage)
        _, kept = await a_long_output(stage)
        await stage.tk.remove(session)
        [gone], [there] = state.output_paths or (), kept.output_paths or ()
        assert (Path(gone).exists(), Path(there).exists()) == (False, True)


async def test_the_limits_of_an_output_are_configured(play: Play) -> None:
    config = {"tool_output": {"max_lines": 10, "max_bytes": 2000}}
    async with play(Scripted().calls("prints").then().says("ok"), tools=(PRINTS,), config=config) as stage:
        _, state = await a_long_output(stage)
        assert len(state.output.encode()) <= 2000
        assert state.output.count("\n") <= 10


async def test_many_large_results_of_one_turn_share_its_limit(play: Play) -> None:
    script = Scripted()
    for _ in range(8):
        script.calls("prints")
    async with play(script.then().says("ok"), tools=(PRINTS,)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        states = [of_type(ToolCompleted, call.state) for call in outputs(await stage.messages(session))]
        sizes = sorted(len(state.output.encode()) for state in states)
        assert sum(sizes) <= 4 * OUTPUT_BYTES_MAX
        assert sizes[0] < sizes[3] < sizes[-1] <= OUTPUT_BYTES_MAX


async def test_the_next_turn_has_its_whole_share_again(play: Play) -> None:
    script = Scripted()
    for _ in range(8):
        script.calls("prints")
    async with play(script.then().calls("prints").then().says("ok"), tools=(PRINTS,)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        last = outputs(await stage.messages(session))[-1].state
        assert isinstance(last, ToolCompleted)
        assert len(last.output.encode()) > OUTPUT_BYTES_MAX - 1024


async def test_what_a_provider_ran_itself_is_never_bounded(play: Play) -> None:
    script = Scripted().runs("web", output=LONG).says("found").then().says("ok")
    async with play(script) as stage:
        _, state = await a_long_output(stage)
        assert LONG in state.output
        assert state.full is None


@EVERY_ENGINE
async def test_pictures_that_are_too_many_are_attached_again_when_recalled(play: Play) -> None:
    urls = [f"data:image/png;base64,{'A' * 40}{number:04}" for number in range(RESULT_MEDIA_MAX + 1)]

    async def shoot(text: str, context: ToolContext) -> ToolOutput:
        files = tuple(Attachment(mime="image/png", url=url, filename="shot.png") for url in urls)
        return ToolOutput(title="shoot", output="Shot.", attachments=files)

    model = Scripted().calls("shoot").then().calls("recall", handle=handle(urls[-1])).then().says("seen")
    async with play(model, tools=(a_tool("shoot", shoot), RECALL)) as stage:
        session, state = await a_long_output(stage)
        assert [file.url for file in state.attachments or ()] == urls[:-1]
        assert [file.url for file in state.withheld or ()] == urls[-1:]
        assert handles_in(state.output) == [handle(urls[-1])]
        recalled = outputs(await stage.messages(session))[1].state
        assert isinstance(recalled, ToolCompleted)
        assert [file.url for file in recalled.attachments or ()] == urls[-1:]
        before_recalled = (await stage.messages(session))[2].info.id
        forked = await stage.tk.fork(session, message_id=before_recalled)
        assert (await stage.tk.recall(forked.id, handle(urls[-1]))).text == urls[-1]
        assert await stage.is_sound(session)


@EVERY_ENGINE
async def test_a_handle_holds_in_a_fork_and_after_an_import(play: Play, tmp_path: Path) -> None:
    async with play(Pager(), tools=(PRINTS, RECALL)) as stage:
        session, state = await a_long_output(stage)
        [name] = handles_in(state.output)
        forked = await stage.tk.fork(session)
        assert (await stage.tk.recall(forked.id, name, limit=None)).text == LONG
        exported = tmp_path / "exported.json"
        exported.write_bytes(b"".join([chunk async for chunk in stage.tk.export(session)]))
    async with open_store("memory:", directory=tmp_path) as elsewhere:
        await elsewhere.import_sessions(exported)
        page = await elsewhere.recall(session, name, limit=None)
        assert (page.text, page.label, page.total) == (LONG, "prints: prints", len(LONG))


@EVERY_ENGINE
async def test_words_are_found_in_the_middle_that_no_model_was_shown(play: Play) -> None:
    middle = LONG.replace("003000 é", "003000 the Needle lies here", 1)

    async def buries(text: str, context: ToolContext) -> str:
        return middle

    model = Scripted().calls("buries").then().calls("recall", query="need lies").then().says("ok")
    async with play(model, tools=(a_tool("buries", buries), RECALL)) as stage:
        session, state = await a_long_output(stage)
        assert "Needle" not in state.output
        listed = outputs(await stage.messages(session))[1].state
        assert isinstance(listed, ToolCompleted)
        assert listed.output.startswith("1 place.")
        assert f"{handle(middle)}  buries: buries" in listed.output
        assert "003000 the Needle lies here" in listed.output
        assert len(await stage.tk.search("needle lies here", session_id=session)) == 2  # The index has it; no walk.
        # What was recalled holds the words too, and is only a copy.
        assert [hit.handle for hit in await stage.tk.recall_search(session, "needle")] == [handle(middle)]


@EVERY_ENGINE
async def test_hidden_places_come_first_and_say_why_they_are_hidden(play: Play) -> None:
    own = "ses_1"
    async with play(Scripted()) as stage:
        await stage.tk.store.journal.create(a_session(own), *a_compacted_history(own))
        hits = await stage.tk.recall_search(own, "fact")
        assert [(hit.snippet, hit.hidden) for hit in hits] == [
            ("pruned fact", "pruned"),
            ("compacted fact", "compacted"),
            ("late fact", None),
            ("kept fact", None),
        ]
        for hit in hits:
            page = await stage.tk.recall(own, hit.handle)
            assert (page.text, page.message_id) == (hit.snippet, hit.message_id)


def a_compacted_history(own: str) -> list[e.Event]:
    """A fact that was compacted away, one in the tail, one that was pruned since, and one that is shown."""
    asked, mark, later = (a_user(own, f"msg_{number}") for number in (1, 5, 7))
    kept = an_assistant(own, "msg_2", "msg_1", finish="stop")
    summary = an_assistant(own, "msg_6", "msg_5", finish="stop", summary=True)
    turn = an_assistant(own, "msg_8", "msg_7", finish="stop")
    pruned = completed("pruned fact").but(title="", time=SettledTime(start=1, end=2, compacted=3))
    compaction = CompactionPart(id="prt_5", session_id=own, message_id="msg_5", auto=True, tail_start_id="msg_2")
    return [
        e.MessageRecorded(message=asked, parts=(a_text(asked, "prt_1", "compacted fact"),)),
        e.MessageRecorded(message=kept, parts=(a_text(kept, "prt_2", "kept fact"),)),
        e.MessageRecorded(message=mark, parts=(compaction,)),
        e.MessageRecorded(message=summary, parts=(a_text(summary, "prt_6", "a summary"),)),
        e.MessageRecorded(message=later, parts=(a_text(later, "prt_7", "late fact"),)),
        e.MessageRecorded(message=turn, parts=(a_call(turn, "prt_8", pruned, tool="bash"),)),
    ]


async def test_what_the_index_does_not_hold_is_found_all_the_same(play: Play) -> None:
    model = Scripted().calls("echo", text="planted in an input").then().says("ok")
    async with play(model, tools=(a_tool("echo", prints),)) as stage:
        session, _ = await a_long_output(stage)
        [hit] = await stage.tk.recall_search(session, "planted input")
        assert json.loads((await stage.tk.recall(session, hit.handle)).text) == {"text": "planted in an input"}


async def test_a_handle_that_nothing_has_is_refused_in_words_the_model_can_use(play: Play) -> None:
    model = Scripted().calls("recall", handle="r0000000000").calls("recall", handle="nonsense").then().says("ok")
    async with play(model, tools=(RECALL,)) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        states = [of_type(ToolError, call.state) for call in outputs(await stage.messages(session))]
        missing, wrong = (state.error for state in states)
        assert missing == f"There is no text with the handle 'r0000000000' in session {session!r}"
        assert wrong.startswith("'nonsense' is no handle")
        with pytest.raises(NotFound, match="handle 'r0000000000'"):
            await stage.tk.recall(session, "r0000000000")
        with pytest.raises(NotFound, match="no session 'ses_missing'"):
            await stage.tk.recall("ses_missing", "r0000000000")
        with pytest.raises(Invalid, match="no handle"):
            await stage.tk.recall(session, "R0123456789")
        with pytest.raises(Invalid, match="holds no word"):
            await stage.tk.recall_search(session, "?")


async def test_another_sessions_texts_are_not_given(play: Play) -> None:
    async with play(Scripted().says("a secret").then().says("nothing")) as stage:
        one, other = await stage.session(), await stage.session()
        await stage.ask(one, "tell")
        await stage.ask(other, "nothing")
        assert (await stage.tk.recall(one, handle("a secret"))).label == "assistant"
        with pytest.raises(NotFound):
            await stage.tk.recall(other, handle("a secret"))
        assert await stage.tk.recall_search(other, "secret") == []


async def test_the_tool_is_offered_in_every_request(play: Play) -> None:
    model = Scripted().says("one").then().says("two")
    async with play(model, tools=load()) as stage:
        session = await stage.session()
        await stage.ask(session, "first")
        await stage.ask(session, "second")
        names = [[tool.name for tool in request.tools] for request in model.requests]
        assert "recall" in names[0]
        assert names[0] == names[1]


async def test_a_failed_calls_error_is_found_and_given_back(play: Play) -> None:
    async def breaks(text: str, context: ToolContext) -> str:
        raise RuntimeError("the flux capacitor is cold")

    async with play(Scripted().calls("breaks").then().says("ok"), tools=(*TOOLS, a_tool("breaks", breaks))) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        [hit] = await stage.tk.recall_search(session, "flux capacitor")
        assert hit.label == "breaks, error"
        page = await stage.tk.recall(session, hit.handle)
        assert page.text == "The tool failed: RuntimeError: the flux capacitor is cold"


async def test_a_users_own_long_command_is_kept_as_well(play: Play) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        message = await stage.tk.shell(session, "seq 1 30000")
        [call] = [part for part in message.parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolCompleted)
        [path] = call.state.output_paths or ()
        assert Path(path).read_text() == call.state.full
        [name] = handles_in(call.state.output)
        assert (await stage.tk.recall(session, name, limit=None)).text == "\n".join(map(str, range(1, 30_001)))
        assert [type(part) for part in (await stage.messages(session))[0].parts] == [TextPart]


async def test_words_at_the_far_end_of_a_huge_output_are_not_indexed_and_found_all_the_same(play: Play) -> None:
    huge = "filler words\n" * (TEXT_INDEXED_MAX // 13 + 1) + "faraway" + "\nmore" * 3000

    async def buries(text: str, context: ToolContext) -> str:
        return huge

    async with play(Scripted().calls("buries").then().says("ok"), tools=(a_tool("buries", buries),)) as stage:
        session, state = await a_long_output(stage)
        assert "faraway" not in state.output
        assert await stage.tk.search("faraway", session_id=session) == []
        assert [hit.handle for hit in await stage.tk.recall_search(session, "faraway")] == [handle(huge)]
