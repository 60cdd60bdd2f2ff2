"""Commands become prompts: what is stored, what may run, and that a refusal leaves nothing behind."""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from confined import needs_kernel

from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import AgentPart, FilePart, SubtaskPart, TextPart
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.prompt import FileInput, Prompt, TextInput
from turnkeeper.model.refusal import Conflict, Forbidden, Invalid, NotFound
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import reject_all
from turnkeeper.store.engine import Key, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.testing.harness import Stage, StageOptions, stage

SERVER = Path(__file__).parents[1] / "support/language_server.py"
RUNS = {"template": "Now: !`echo $((40 + 2))` and !`echo out; echo err >&2; exit 3`."}


@asynccontextmanager
async def open_stage(place: Path, commands: Mapping[str, object], **given: Any) -> AsyncIterator[Stage]:
    config = {"command": commands, **given.pop("config", {})}
    async with stage("memory:", place, Scripted().says("Done."), StageOptions(config=config, **given)) as on:
        yield on


async def sent(on: Stage, name: str, arguments: str = "", **given: Any) -> str:
    """Send a command without running it; the text of the prompt that was admitted."""
    session_id = await on.session()
    await on.tk.command(session_id, name, arguments, resume=False, **given)
    [waiting] = (await on.tk.store.journal.view(session_id)).inbox
    [text, *_] = waiting.parts
    assert isinstance(text, TextPart)
    return text.text


async def test_outputs_stand_in_the_prompt_and_a_failure_is_text(tmp_path: Path) -> None:
    async with open_stage(tmp_path, {"now": RUNS}) as on:
        said = await sent(on, "now", "Thanks")
    assert said == "Now: 42 and out\nerr\n[exit code 3].\n\nThanks"


async def test_what_a_command_expanded_to_is_stored_and_stays(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("one")
    async with open_stage(tmp_path, {"state": {"template": "State: !`cat state`"}}) as on:
        session_id = await on.session()
        await on.tk.command(session_id, "state")
        (tmp_path / "state").write_text("two")
        await on.tk.wait(session_id)
        [asked, _] = await on.messages(session_id)
        [text] = asked.parts
        assert isinstance(text, TextPart)
        assert text.text == "State: one"


@pytest.mark.parametrize(
    ("permission", "template", "arguments", "words"),
    [
        ({"bash": "deny"}, "!`echo hi`", "", "denies bash of echo hi"),
        ({"bash": {"*": "allow", "rm *": "deny"}}, "!`touch ran` !`rm -rf x`", "", "denies bash of rm -rf x"),
        ({"bash": {"*": "allow", "rm *": "deny"}}, "!`touch ran $1`", "a; rm -rf x", "denies bash of"),
        ({"edit": "deny"}, "!`echo x > made`", "", "denies edit of made"),
        ({"external_directory": "deny"}, "!`cat /etc/hostname`", "", "denies external_directory"),
        ({"bash": "ask"}, "!`echo hi`", "", "needs the permission bash.*allow it in `permission.bash`"),
        ({}, "!`cat /etc/hostname`", "", "allow it in `permission.external_directory`"),
    ],
)
async def test_what_is_not_allowed_is_refused_before_anything_is_run_or_admitted(
    tmp_path: Path, permission: dict[str, object], template: str, arguments: str, words: str
) -> None:
    config = {"permission": permission}
    async with open_stage(tmp_path, {"go": {"template": template}}, config=config, ask=None) as on:
        session_id = await on.session()
        before = await on.tk.store.journal.view(session_id)
        with pytest.raises(Forbidden, match=words):
            await on.tk.command(session_id, "go", arguments)
        assert await on.tk.store.journal.view(session_id) == before
    assert not (tmp_path / "ran").exists()


async def test_the_rules_are_those_of_the_agent_that_the_prompt_is_for(tmp_path: Path) -> None:
    commands = {"careful": {"template": "!`echo hi`", "agent": "shy"}, "plain": {"template": "!`echo hi`"}}
    config = {"agent": {"shy": {"permission": {"bash": "deny"}}}}
    async with open_stage(tmp_path, commands, config=config) as on:
        assert await sent(on, "plain") == "hi"
        with pytest.raises(Forbidden, match="agent 'shy'"):
            await sent(on, "careful")
        with pytest.raises(Forbidden, match="agent 'shy'"):
            await sent(on, "plain", agent="shy")


async def test_a_subtask_of_the_plan_agent_writes_nothing(tmp_path: Path) -> None:
    commands = {"write": {"template": "!`touch made`", "subtask": True, "agent": "general"}}
    async with open_stage(tmp_path, commands, ask=reject_all) as on:
        session_id = await on.session()
        with pytest.raises(Forbidden):
            await on.tk.command(session_id, "write", agent="plan")
    assert not (tmp_path / "made").exists()


async def test_the_user_is_asked_where_the_rules_ask_and_always_is_kept(tmp_path: Path) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []
    replies = ["reject", "always"]

    async def ask(request: PermissionRequest) -> Reply:
        asked.append((request.permission, request.patterns))
        return Reply(answer=replies.pop(0))  # type: ignore[arg-type]  # The words above are answers.

    commands = {"go": {"template": "!`echo hi`"}}
    async with open_stage(tmp_path, commands, config={"permission": {"bash": "ask"}}, ask=ask) as on:
        with pytest.raises(Forbidden, match="you rejected it"):
            await sent(on, "go")
        assert await sent(on, "go") == "hi"
        assert await sent(on, "go") == "hi", "allowed for good"
    assert asked == [("bash", ("echo hi",))] * 2


async def test_the_users_own_command_needs_no_permission_unless_an_argument_is_in_it(tmp_path: Path) -> None:
    own = tmp_path / ".config/turnkeeper/command/mine.md"
    own.parent.mkdir(parents=True)
    own.write_text("!`echo mine`")
    (own.parent / "open.md").write_text("!`echo $1`")
    config = {"permission": {"bash": "deny"}}
    async with open_stage(tmp_path, {"theirs": {"template": "!`echo theirs`"}}, config=config) as on:
        assert await sent(on, "mine") == "mine"
        for name in ("open", "theirs"):
            with pytest.raises(Forbidden):
                await sent(on, name, "x")


@needs_kernel
async def test_the_sandbox_holds_also_for_the_users_own_command(tmp_path: Path) -> None:
    own = tmp_path / "place/.config/turnkeeper/command/mine.md"
    own.parent.mkdir(parents=True)
    own.write_text(f"!`touch {tmp_path}/outside`")
    async with open_stage(tmp_path / "place", {}, config={"sandbox": "workspace"}) as on:
        await sent(on, "mine")
    assert not (tmp_path / "outside").exists()


async def test_outputs_in_a_command_are_bounded(tmp_path: Path) -> None:
    commands = {"long": {"template": "!`seq 100000`"}}
    async with open_stage(tmp_path, commands, config={"tool_output": {"max_bytes": 2000}}) as on:
        assert len(await sent(on, "long")) < 4000


async def test_files_folders_and_agents_are_mentioned_by_the_template_and_the_arguments_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    (tmp_path / "b.txt").write_text("beta")
    (tmp_path / "secret.txt").write_text("s3cret")
    commands = {"look": {"template": "Look at @a.txt and $1: !`echo @secret.txt`"}}
    async with open_stage(tmp_path, commands) as on:
        session_id = await on.session()
        await on.tk.command(session_id, "look", "@b.txt @explore", input="@secret.txt", resume=False)
        [waiting] = (await on.tk.store.journal.view(session_id)).inbox
    parts = waiting.parts
    assert [one.filename for one in parts if isinstance(one, FilePart)] == ["a.txt", "b.txt"]
    assert [one.name for one in parts if isinstance(one, AgentPart)] == ["explore"]
    texts = [one.text for one in parts if isinstance(one, TextPart)]
    assert texts[0] == "Look at @a.txt and @b.txt @explore: @secret.txt\n\n@secret.txt"
    assert not any("s3cret" in text for text in texts)


async def test_a_plain_prompt_attaches_what_it_mentions_only_if_it_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alpha")
    async with open_stage(tmp_path, {}) as on:
        session_id = await on.session()
        for mentions in (False, True):
            text = TextInput(text="see @a.txt", mentions=mentions)
            await on.tk.prompt(session_id, Prompt(parts=(text,)), resume=False)
        plain, full = (await on.tk.store.journal.view(session_id)).inbox
    assert len(plain.parts) == 1
    assert [one.filename for one in full.parts if isinstance(one, FilePart)] == ["a.txt"]


async def test_a_subtask_is_told_which_files_are_named_and_files_of_the_call_stay(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("alpha")
    (tmp_path / "c.txt").write_text("gamma")
    attached = FileInput(mime="text/plain", url="data:text/plain,hello", filename="note")
    async with open_stage(tmp_path, {"sub": {"template": "Do @c.txt", "subtask": True, "agent": "general"}}) as on:
        session_id = await on.session()
        await on.tk.command(session_id, "sub", files=[attached], resume=False)
        [waiting] = (await on.tk.store.journal.view(session_id)).inbox
    [subtask] = [one for one in waiting.parts if isinstance(one, SubtaskPart)]
    assert subtask.prompt == (
        f"Do @c.txt\n\nThe user names these files and folders; read of them what you need: {tmp_path / 'c.txt'}"
    )
    assert any(isinstance(one, TextPart) and one.text == "hello" for one in waiting.parts)


async def test_a_command_sent_again_is_run_once_and_another_one_conflicts(tmp_path: Path) -> None:
    commands = {"count": {"template": "!`echo x >> count; wc -l < count`"}}
    async with open_stage(tmp_path, commands, environ={"TURNKEEPER_CONFIG_CONTENT": '{"sandbox": "off"}'}) as on:
        session_id, id = await on.session(), "msg_0000000000010000000000abcd"
        first = await on.tk.command(session_id, "count", "a", id=id)
        await on.tk.wait(session_id)
        assert await on.tk.command(session_id, "count", "a", id=id) == first
        with pytest.raises(Conflict):
            await on.tk.command(session_id, "count", "b", id=id)
    assert (tmp_path / "count").read_text() == "x\n"


async def test_the_commands_model_agent_and_variant_come_first(tmp_path: Path) -> None:
    commands = {"who": {"template": "Who?", "agent": "other", "model": "acme/other", "variant": "high"}}
    commands |= {"mine": {"template": "Who?", "agent": "other"}, "any": {"template": "Who?"}}
    config = {"agent": {"other": {"model": "acme/large"}}}
    async with open_stage(tmp_path, commands, config=config) as on:
        found = []
        for name in ("who", "mine", "any"):
            session_id = await on.session()
            await on.tk.command(session_id, name, model="acme/other", resume=False)
            [waiting] = (await on.tk.store.journal.view(session_id)).inbox
            assert isinstance(waiting.message, UserMessage)
            found.append((waiting.message.agent, str(waiting.message.model), waiting.message.model.variant))
    assert found == [
        ("other", "acme/other", "high"),
        ("other", "acme/large", None),
        ("build", "acme/other", None),
    ]


async def test_what_is_no_command_is_refused(tmp_path: Path) -> None:
    commands = {"empty": {"template": ""}, "odd": {"template": "x", "model": "nonsense"}}
    commands |= {"nobody": {"template": "x", "agent": "nobody"}, "many": {"template": "!`true`" * 33}}
    commands |= {"run": {"template": "!`echo $1`"}}
    async with open_stage(tmp_path, commands) as on:
        session_id = await on.session()
        before = await on.tk.store.journal.view(session_id)
        with pytest.raises(NotFound, match="nearest are: empty"):
            await on.tk.command(session_id, "emty")
        for name in ("empty", "odd", "nobody", "many", "undo"):
            with pytest.raises(Invalid):
                await on.tk.command(session_id, name)
        with pytest.raises(Invalid, match="NUL"):
            await on.tk.command(session_id, "run", "a\0b")
        with pytest.raises(NotFound):
            await on.tk.command("ses_none", "empty")
        assert await on.tk.store.journal.view(session_id) == before


async def test_the_commands_of_a_directory_are_listed_with_their_files(tmp_path: Path) -> None:
    own = tmp_path / ".config/opencode/commands/sub/t2.md"
    own.parent.mkdir(parents=True)
    own.write_text("Do $2 with $ARGUMENTS")
    async with open_stage(tmp_path, {"init": {"template": "Mine"}}) as on:
        known = {one.name: one for one in await on.tk.commands()}
    assert list(known) == sorted(known)
    assert {"help", "compact", "undo", "redo", "share", "unshare", "export", "init", "review", "sub/t2"} == set(known)
    assert (known["sub/t2"].where, known["sub/t2"].is_own) == (str(own), True)
    assert known["sub/t2"].hints == ("$2", "$ARGUMENTS")
    assert (known["init"].template, known["init"].is_own) == ("Mine", False)
    assert known["init"].where == str(tmp_path / "turnkeeper.json")
    assert (known["review"].subtask, known["review"].where) == (True, "built-in")


async def test_a_skill_is_a_command_and_overrides_none(tmp_path: Path) -> None:
    for name in ("notes", "review"):
        skill = tmp_path / f".claude/skills/{name}/SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(f"---\nname: {name}\ndescription: Writes notes\n---\nDo !`touch run` for $1.")
    async with open_stage(tmp_path, {}) as on:
        known = {one.name: one for one in await on.tk.commands()}
        session_id = await on.session()
        await on.tk.command(session_id, "notes", "for 2.0")
        await on.tk.wait(session_id)
        [asked, *_] = await on.messages(session_id)
    assert (known["notes"].source, known["notes"].description) == ("skill", "Writes notes")
    assert known["review"].source == "command"
    where = tmp_path / ".claude/skills/notes"
    expected = f"Do !`touch run` for $1.\n\nPaths in this text are relative to {where}.\n\nfor 2.0"
    assert [part.text for part in asked.parts if isinstance(part, TextPart)] == [expected]
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("action", ["allow", "ask", "deny"])
async def test_a_skill_that_the_user_calls_needs_no_permission(tmp_path: Path, action: str) -> None:
    skill = tmp_path / ".claude/skills/notes/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: notes\n---\nWrite notes.")
    async with open_stage(tmp_path, {}, config={"permission": {"skill": {"notes": action}}}) as on:
        assert (await sent(on, "notes", "for 2.0")).startswith("Write notes.")


async def test_that_a_command_was_executed_is_told_when_the_session_rests(tmp_path: Path) -> None:
    async with open_stage(tmp_path, {"go": {"template": "Go"}}) as on:
        session_id = await on.session()
        async with on.tk.subscribe(session_id=session_id) as heard:
            receipt = await on.tk.command(session_id, "go", "now")
            told = []
            async for one in heard:
                told.append(one.type)
                if one.type == "command.executed":
                    break
        assert "session.idle" in told or "session.status" in told
        assert (await on.messages(session_id))[0].info.id == receipt.message_id


async def test_symbols_are_found_by_the_language_server_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "app.x").write_text("one\nDEF run\nbody\nrest\n")
    server = {"command": [sys.executable, str(SERVER), "symbols"], "extensions": [".x"]}
    commands = {"explain": {"template": "Explain @app.x#run"}}
    async with open_stage(tmp_path, commands, config={"lsp": {"mine": server}}) as on:
        session_id = await on.session()
        await on.tk.command(session_id, "explain", resume=False)
        text = TextInput(text="and @app.x#run", mentions=True)
        line = FileInput(mime="text/plain", url=f"{(tmp_path / 'app.x').as_uri()}?start=2&end=2")
        await on.tk.prompt(session_id, Prompt(parts=(text, line)), resume=False)
        waiting = [one.parts for one in (await on.tk.store.journal.view(session_id)).inbox]
    texts = [part.text for parts in waiting for part in parts if isinstance(part, TextPart)]
    assert [one.count("2: DEF run\n3: body\n") for one in texts] == [0, 0, 1, 0, 0, 1, 0, 1]
    assert not any("4: rest" in one for one in texts)


class AwayAtTheEnd(MemoryEngine):
    """A store that cannot be read from the moment on that a session rests."""

    is_away = False

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        if self.is_away and any(key[0] == "session" for key in keys):
            raise StoreUnavailable("the network is cut")
        return await super().get(keys)


async def test_a_store_that_is_away_when_a_command_was_executed_ends_no_other_session(tmp_path: Path) -> None:
    engine = AwayAtTheEnd()
    options = StageOptions(config={"command": {"greet": {"template": "Greet $1"}}})
    async with stage(engine, tmp_path, Scripted().says("Hello.").forever(), options) as on:
        first, second = await on.session(), await on.session()
        async with on.tk.subscribe() as heard:
            await on.tk.command(first, "greet", "Ada")
            async for one in heard:
                engine.is_away = engine.is_away or one.type == "session.idle"
                if one.type == "command.executed":
                    break
        engine.is_away = False
        assert (await on.tk.ask("hello", session=second)).text == "Hello."
