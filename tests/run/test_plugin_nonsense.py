"""Outputs of plugins that make no sense: nothing changes, the plugin is named, and the turn goes on."""

import logging
from pathlib import Path

import pytest
from plugin_files import a_plugin, texts, the_call

from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play

NONSENSE = {
    "chat.headers": "output.headers['two\\nlines'] = 'x'",
    "chat.params": "output.max_output_tokens = -5",
    "chat.message": "output.parts.clear()",
    "experimental.chat.system.transform": "output.system = 'text'",
    "experimental.chat.messages.transform": "output.messages = [5]",
    "experimental.text.complete": "output.text = '\\ud800'",
    "tool.definition": "output.parameters = None",
    "tool.execute.before": "output.args = 'text'",
    "tool.execute.after": "output.metadata['x'] = object()",
    "permission.ask": "output.status = 'perhaps'",
}


@pytest.mark.parametrize("hook", NONSENSE)
async def test_an_output_that_makes_no_sense_changes_nothing_and_its_plugin_is_named(
    play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture, hook: str
) -> None:
    a_plugin(tmp_path, "odd", f"def odd(input, output):\n    {NONSENSE[hook]}\nreturn {{{hook!r}: odd}}")
    model = Scripted().calls("asks", text="tide").then().says("fine")
    async with play(model, config={"permission": {"asks": "ask"}}) as stage:
        session_id = await stage.session()
        with caplog.at_level(logging.WARNING):
            await stage.ask(session_id, "hello")
        assert await texts(stage, session_id) == ["hello", "fine"]
        state = (await the_call(stage, session_id)).state
        assert isinstance(state, ToolCompleted)
        assert state.output == "tide"
        assert model.requests[0].headers == {}
        assert f"the plugin 'odd' ({tmp_path}/place/.turnkeeper/plugin/odd.py) failed in {hook}: " in caplog.text
        [found] = stage.tk.runtime.directories.plugins.now(stage.directory).plugins
        assert (found.status.failures > 0, (found.error or "").startswith(f"{hook}: ")) == (True, True)
        assert await stage.is_sound(session_id)


async def test_a_part_that_a_plugin_adds_gets_an_id_of_its_own(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "more",
        "def message(input, output):\n"
        "    first = output.parts[0]\n"
        "    output.parts += [first.but(text='twice'), first.but(id='', text='thrice')]\n"
        "return {'chat.message': message}",
    )
    async with play(Scripted().says("fine")) as stage:
        session_id = await stage.session()
        await stage.ask(session_id, "hello")
        assert await texts(stage, session_id) == ["hello", "twice", "thrice", "fine"]
        [prompt, _] = await stage.messages(session_id)
        assert len({part.id for part in prompt.parts}) == 3
        assert await stage.is_sound(session_id)


async def test_a_model_that_nobody_knows_is_not_taken_from_a_plugin(
    play: Play, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a_plugin(
        tmp_path,
        "choose",
        "def message(input, output):\n"
        "    output.message = output.message.but(model=input.model.but(model_id='nowhere'))\n"
        "def small(input, output):\n"
        "    output.model = 'no/where'\n"
        "return {'chat.message': message, 'experimental.provider.small_model': small}",
    )
    model = Scripted().says("fine").titles("A title")
    async with play(model, titles=True) as stage:
        session_id = await stage.session()
        with caplog.at_level(logging.WARNING):
            await stage.ask(session_id, "hello")
            await stage.tk.runtime.wait_upkeep(session_id)
        assert "fine" in await texts(stage, session_id)
        assert "failed in chat.message: " in caplog.text
        assert "failed in experimental.provider.small_model: " in caplog.text
        assert (await stage.tk.get(session_id)).title == "A title"


async def test_a_command_that_a_plugin_empties_is_sent_as_it_was(play: Play, tmp_path: Path) -> None:
    a_plugin(
        tmp_path,
        "empty",
        "def command(input, output):\n    output.parts.clear()\nreturn {'command.execute.before': command}",
    )
    async with play(Scripted().says("fine"), config={"command": {"say": {"template": "Say $1"}}}) as stage:
        session_id = await stage.session()
        await stage.tk.command(session_id, "say", "two")
        await stage.tk.wait(session_id)
        assert await texts(stage, session_id) == ["Say two", "fine"]
