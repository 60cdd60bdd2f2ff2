"""Plugins in turns: each hook changes what it is for, and one that fails or hangs changes nothing."""

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from plugin_files import a_plugin, texts, the_call

from turnkeeper.model.event import TurnStarted
from turnkeeper.model.notification import SessionFailed
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.request import UserTurn
from turnkeeper.plugins.plugin import Limits
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import reject_all
from turnkeeper.sessions.context import report
from turnkeeper.testing.harness import Play, Stage


async def causes(stage: Stage, session_id: str) -> Sequence[str | None]:
    events = await stage.events(session_id)
    return [one.prefix.cause for one in events if isinstance(one, TurnStarted) and one.prefix is not None]


async def test_a_prompt_is_recorded_as_plugins_change_it(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "shout",
        "def message(input, output):\n"
        "    first = output.parts[0]\n"
        "    output.parts = [first.but(text=first.text.upper())]\n"
        "return {'chat.message': message}",
    )
    model = Scripted().says("fine")
    async with play(model) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        assert await texts(stage, session_id) == ["HELLO", "fine"]
        assert await stage.is_sound(session_id)


async def test_a_text_of_the_model_is_recorded_as_plugins_change_it(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "redact",
        "class Hooks:\n"
        "    async def experimental_text_complete(self, input, output):\n"
        "        output.text = output.text.replace('secret', '[...]')\n"
        "return Hooks()",
    )
    model = Scripted().says("the secret is out").then().says("again")
    async with play(model) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        assert await texts(stage, session_id) == ["hello", "the [...] is out"]
        await stage.ask(session_id, "more")
        assert "secret" not in repr(model.requests[1].messages)
        assert await stage.is_sound(session_id)


async def test_a_request_is_sent_as_plugins_change_it_and_history_stays(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "change",
        "def params(input, output):\n"
        "    output.temperature, output.options['effort'] = 0.5, input.agent\n"
        "def headers(input, output):\n"
        "    output.headers['x-trace'] = input.session_id\n"
        "def system(input, output):\n"
        "    output.system.append('Be brief.')\n"
        "def messages(input, output):\n"
        "    from turnkeeper.model.request import Text, UserTurn\n"
        "    output.messages.append(UserTurn(content=(Text(text='(really)'),)))\n"
        "def definition(input, output):\n"
        "    output.description = f'{input.tool_id}!'\n"
        "return {'chat.params': params, 'chat_headers': headers, 'tool.definition': definition,\n"
        "        'experimental.chat.system.transform': system, 'experimental.chat.messages.transform': messages}",
    )
    model = Scripted().says("fine").then().says("fine")
    async with play(model) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        [request] = model.requests
        assert (request.temperature, request.options["effort"]) == (0.5, "build")
        assert request.headers == {"x-trace": session_id}
        assert request.system[-1] == "Be brief."
        assert isinstance(request.messages[-1], UserTurn)
        assert "(really)" in repr(request.messages[-1])
        assert {tool.description for tool in request.tools} == {"asks!", "echo!"}
        assert await texts(stage, session_id) == ["hello", "fine"]
        await stage.ask(session_id, "more")
        events = await stage.events(session_id)
        last = [one.prefix for one in events if isinstance(one, TurnStarted)][-1]
        assert last is not None
        assert last.changes == tuple(
            f"change: {one}" for one in ("tools", "parameters", "headers", "system", "messages")
        )
        # The message at the end of the first request is not at its place in the second one.
        assert last.cause == "the history was changed, by the plugin change"


async def test_a_plugin_that_breaks_the_cache_is_named(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "clock",
        "import itertools\n"
        "numbers = itertools.count()\n"
        "def system(input, output):\n"
        "    output.system[0] += f' It is {next(numbers)}.'\n"
        "return {'experimental.chat.system.transform': system}",
    )
    model = Scripted().says("a").then().says("b")
    async with play(model) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        await stage.ask(session_id, "more")
        assert (await causes(stage, session_id))[1] == "the System Context was rewritten, by the plugin clock"
        [_, request] = (await report(stage.tk.store, await stage.tk.store.journal.view(session_id))).requests
        assert request.changes == ("clock: system",)


async def test_only_a_plugin_that_brings_other_tools_is_named_for_them(play: Play, tmp_path: Path) -> None:
    tool = "def {0}() -> str:\n    '{1}'\n    return ''\nreturn {{'tool': {{'{0}': {0}}}}}"
    a_plugin(tmp_path, "steady", tool.format("steady", "Stays."))
    model = Scripted().says("ok").forever()
    async with play(model) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "one")
        a_plugin(tmp_path, "fresh", tool.format("fresh", "New."))
        await stage.ask(session_id, "two")
        a_plugin(tmp_path, "fresh", tool.format("fresh", "Described in other words."))
        await stage.ask(session_id, "three")
        await stage.ask(session_id, "four")
        why = "the tool list changed, by the plugin fresh"
        assert (await causes(stage, session_id))[1:] == [why, why, None]


async def test_a_call_runs_with_changed_arguments_and_its_output_is_changed(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "wrap",
        "def before(input, output):\n"
        "    output.args['text'] = input.tool + ' ' + output.args['text']\n"
        "def after(input, output):\n"
        "    output.output += f' of {input.args}'\n"
        "    output.metadata['seen'] = True\n"
        "return {'tool.execute.before': before, 'tool.execute.after': after}",
    )
    async with play(Scripted().calls("echo", text="tide").then().says("done")) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        state = (await the_call(stage, session_id)).state
        assert isinstance(state, ToolCompleted)
        assert state.output == "echo tide of {'text': 'echo tide'}"
        assert state.input == {"text": "tide"}
        changed = {"arguments": {"text": "echo tide"}, "changedBy": ["wrap"]}
        assert state.metadata == {"seen": True, "truncated": False, **changed}


@pytest.mark.parametrize(("status", "expected"), [("allow", "tide"), ("deny", "The plugin guard denies this call")])
async def test_a_plugin_answers_in_the_place_of_the_user(
    play: Play, tmp_path: Path, status: str, expected: str
) -> None:
    a_plugin(
        tmp_path,
        "guard",
        "def ask(input, output):\n"
        f"    output.status = {status!r} if input.request.permission == 'asks' else 'ask'\n"
        "return {'permission.ask': ask}",
    )
    model = Scripted().calls("asks", text="tide").then().says("done")
    async with play(model, ask=reject_all, config={"permission": {"asks": "ask"}}) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        state = (await the_call(stage, session_id)).state
        said = state.output if isinstance(state, ToolCompleted) else state.error if isinstance(state, ToolError) else ""
        assert said.startswith(expected)
        assert not [one for one in await stage.events(session_id) if type(one).__name__ == "PermissionAsked"]


async def test_what_the_rules_decide_no_plugin_is_asked(play: Play, tmp_path: Path) -> None:
    a_plugin(tmp_path, "yes", "def ask(input, output):\n    output.status = 'allow'\nreturn {'permission.ask': ask}")
    model = Scripted().calls("asks", text="tide").then().says("done")
    async with play(model, config={"permission": {"asks": {"*": "allow", "tide": "deny"}}}) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        assert isinstance((await the_call(stage, session_id)).state, ToolError)


async def test_a_hook_that_fails_or_hangs_is_named_and_the_turn_goes_on(
    play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a_plugin(
        tmp_path,
        "bad",
        "import anyio, threading\n"
        "def raises(input, output):\n"
        "    output.headers['x'] = 'half'\n"
        "    raise KeyError('tide')\n"
        "async def hangs(input, output):\n"
        "    output.text = 'half'\n"
        "    await anyio.sleep_forever()\n"
        "def leaves(input, output):\n"
        "    raise SystemExit(3)\n"
        "def mistypes(input, output):\n"
        "    output.temperature = 'warm'\n"
        "return {'chat.headers': raises, 'experimental.text.complete': hangs, 'chat.message': leaves,\n"
        "        'chat.params': mistypes}",
    )
    a_plugin(
        tmp_path, "good", "def headers(input, output):\n    output.headers['y'] = '1'\nreturn {'chat.headers': headers}"
    )
    model = Scripted().says("fine").then().says("fine")
    async with play(model, plugin_limits=Limits(hook_s=0.5)) as stage:
        session_id = await stage.session()
        async with stage.tk.subscribe() as notifications:
            with caplog.at_level(logging.WARNING):
                await stage.ask(session_id, "hello")
            errors = [await anext(notifications) for _ in range(len(notifications._queue))]
        assert model.requests[0].headers == {"y": "1"}
        assert model.requests[0].temperature is None
        assert await texts(stage, session_id) == ["hello", "fine"]
        told = [str(one.error.data) for one in errors if isinstance(one, SessionFailed)]
        assert len(told) == 4
        for words in ("KeyError: 'tide'", "it took more than 0.5 s", "SystemExit(3)", "Expected `float | null`"):
            assert any(words in one for one in told), words
            assert words in caplog.text
        assert "the plugin 'bad'" in caplog.text
        caplog.clear()
        await stage.ask(session_id, "more")
        assert "it took more than" not in caplog.text
        assert await stage.is_sound(session_id)


@pytest.mark.parametrize("begin", ["def", "async def"])
async def test_a_hook_that_raises_what_ctrl_c_raises_interrupts_nobody(
    play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture, begin: str
) -> None:
    hook = f"{begin} stops(input, output):\n    raise KeyboardInterrupt\n"
    a_plugin(tmp_path, "bad", f"{hook}return {{'chat.params': stops, 'chat.message': stops}}")
    async with play(Scripted().says("fine")) as stage:
        session_id = await stage.session()
        with caplog.at_level(logging.WARNING):
            await stage.ask(session_id, "hello")
        assert await texts(stage, session_id) == ["hello", "fine"]
        assert "StrayExit: KeyboardInterrupt()" in caplog.text


async def test_commands_tools_agents_and_components_of_a_plugin_come_and_go_with_its_file(
    play: Play, tmp_path: Path
) -> None:
    file = a_plugin(
        tmp_path,
        "many",
        "from turnkeeper.context.component import ContextComponent, Loaded\n"
        "async def load(sampling):\n"
        "    return Loaded(baseline='The tide is low.', update='The tide is low.')\n"
        "def greet(name: str) -> str:\n"
        "    '''Greets.'''\n"
        "    return f'Hello {name}'\n"
        "context.register_component(ContextComponent('acme/tide', load))\n"
        "context.register_command('tide', 'Tell the tide of $1.')\n"
        "context.register_agent('sailor', {'prompt': 'You sail.', 'mode': 'primary'})\n"
        "context.register_provider('boat', {'protocol': 'openai-chat', 'models': {'small': {}},\n"
        "    'options': {'baseURL': 'http://localhost:1/v1'}})\n"
        "return {'tool': {'greet': greet}}",
    )
    model = Scripted().calls("greet", name="Ada").then().says("a").then().says("b").then().says("c")
    async with play(model) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello", agent="sailor")
        state = (await the_call(stage, session_id)).state
        assert isinstance(state, ToolCompleted)
        assert state.output == "Hello Ada"
        assert "The tide is low." in "".join(model.requests[0].system)
        assert "You sail." in "".join(model.requests[0].system)
        assert "tide" in [one.name for one in await stage.tk.commands()]
        text = file.read_text()
        file.write_text(text.replace("is low", "is high"))
        await stage.ask(session_id, "more", agent="sailor")
        assert "The tide is high." in repr(model.requests[2].messages)
        file.unlink()
        await stage.ask(session_id, "more", agent="build")
        assert "acme/tide" in repr(model.requests[3].messages)
        assert "greet" not in [tool.name for tool in model.requests[3].tools]
        assert (await causes(stage, session_id))[3] == "the tool list changed, by the plugin many"
        assert "tide" not in [one.name for one in await stage.tk.commands()]


async def test_a_command_and_its_environment_are_changed(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "env",
        "def env(input, output):\n"
        "    output.env['TIDE'] = 'low ' + ('call' if input.call_id else 'user')\n"
        "def command(input, output):\n"
        "    output.parts[0] = output.parts[0].but(text=input.command + ' ' + input.arguments)\n"
        "return {'shell.env': env, 'command.execute.before': command}",
    )
    config = {"command": {"say": {"template": "Say $1"}}}
    async with play(Scripted().says("fine"), config=config) as stage:
        session_id = await stage.session()
        shell = await stage.tk.shell(session_id, "echo $TIDE")
        assert "low user" in repr(shell.parts)
        await stage.tk.command(session_id, "say", "two")
        await stage.tk.wait(session_id)
        assert "say two" in await texts(stage, session_id)


async def test_events_and_the_end_are_told(play: Play, tmp_path: Path) -> None:
    out = tmp_path / "heard"
    a_plugin(
        tmp_path,
        "listen",
        "def write(word):\n"
        f"    with open({str(out)!r}, 'a') as file:\n"
        "        file.write(word + '\\n')\n"
        "def event(event):\n    write(event.type)\n"
        "def config(settings):\n    settings['username'] = 'Ada'\n"
        "return {'event': event, 'dispose': lambda: write('disposed'), 'config': config}",
    )
    async with play(Scripted().says("fine")) as stage:
        session_id = await stage.session()
        await stage.tk.prompt(session_id, Prompt(parts=(TextInput(text="hello"),)))
        await stage.tk.wait(session_id)
    heard = out.read_text().split()
    assert {"message.updated", "session.status"} <= set(heard)
    assert heard[-1] == "disposed"


async def test_what_plugins_make_of_settings_holds_also_if_a_file_refers_to_a_variable(
    play: Play, tmp_path: Path
) -> None:
    a_plugin(
        tmp_path,
        "crew",
        "def config(settings):\n"
        "    settings['default_agent'] = 'sailor'\n"
        "context.register_agent('sailor', {'prompt': 'You sail.', 'mode': 'primary'})\n"
        "return {'config': config}",
    )
    model = Scripted().says("fine")
    async with play(model, config={"username": "{env:HOME}"}) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        assert "You sail." in "".join(model.requests[0].system)
