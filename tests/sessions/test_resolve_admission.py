"""Parts are resolved before a prompt is admitted, and never again."""

from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from turnkeeper.mint import Mint
from turnkeeper.model.message import ModelChoice, UserMessage
from turnkeeper.model.parts import FilePart, TextPart
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, Prompt, TextInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import TOOLS, Stage, StageOptions, a_tool, echo, stage


@pytest.fixture
async def on(tmp_path: Path) -> AsyncIterator[Stage]:
    config = {
        "permission": {"task": {"explore": "deny"}},
        "agent": {"explore": {}, "other": {}},
        "attachment": {"image": {"auto_resize": False, "max_width": 3, "max_base64_bytes": 1000}},
    }
    options = StageOptions(config=config, tools=(*TOOLS, a_tool("task", echo)))
    async with stage("memory:", tmp_path / "place", Scripted(), options) as ready:
        yield ready


async def admitted(on: Stage, session_id: str, *parts: PartInput, message_id: str | None = None) -> list[str | None]:
    """Admit a prompt and say what its parts are."""
    await on.tk.prompt(session_id, Prompt(parts=parts, message_id=message_id, no_reply=True))
    *_, message = await on.messages(session_id)
    return [one.text if isinstance(one, TextPart) else getattr(one, "mime", None) for one in message.parts]


async def test_a_missing_file_does_not_fail_the_prompt(on: Stage) -> None:
    """A6."""
    missing = FileInput(mime="text/plain", url=(on.directory / "gone").as_uri())
    parts = await admitted(on, await on.session(), missing, TextInput(text="look"))
    assert parts[2] == "look"
    assert "does not exist" in str(parts[1])


async def test_an_image_that_is_refused_leaves_no_trace(on: Stage) -> None:
    """A7."""
    session_id = await on.session()
    before = await on.tk.store.journal.view(session_id)
    image = FileInput(mime="image/png", url="data:image/png;base64,bm9uZQ==")
    with pytest.raises(Invalid):
        await admitted(on, session_id, TextInput(text="look"), image)
    assert await on.tk.store.journal.view(session_id) == before


@pytest.mark.parametrize(("width", "is_taken"), [(3, True), (4, False)])
async def test_the_limits_of_the_configuration_hold_for_images(on: Stage, width: int, is_taken: bool) -> None:
    """A7."""
    head = b"GIF89a" + width.to_bytes(2, "little") + (4).to_bytes(2, "little")
    image = FileInput(mime="image/gif", url=f"data:image/gif;base64,{b64encode(head).decode()}")
    if is_taken:
        assert await admitted(on, await on.session(), image) == ["image/gif"]
    else:
        with pytest.raises(Invalid, match="over the limit of 3x2000 pixels and 1000 bytes"):
            await admitted(on, await on.session(), image)


async def test_a_prompt_sent_again_is_the_one_that_was_resolved_first(on: Stage) -> None:
    session_id = await on.session()
    (on.directory / "a.txt").write_text("before")
    file = FileInput(mime="text/plain", url=(on.directory / "a.txt").as_uri())
    first = await admitted(on, session_id, file, message_id="msg_mine")
    (on.directory / "a.txt").write_text("after")
    assert await admitted(on, session_id, file, message_id="msg_mine") == first
    assert len(await on.messages(session_id)) == 1


async def test_the_rules_of_the_configuration_count_for_an_agent_that_is_named(on: Stage) -> None:
    """A10."""
    parts = await admitted(on, await on.session(), AgentInput(name="explore"), AgentInput(name="other"))
    assert ["A rule keeps you" in str(hint) for hint in (parts[1], parts[3])] == [True, False]


async def test_the_model_reads_a_file_that_the_user_attached(on: Stage) -> None:
    session_id = await on.session()
    (on.directory / "a.txt").write_text("the word is swordfish")
    script = on.provider
    assert isinstance(script, Scripted)
    script.says("thanks")
    file = FileInput(mime="text/plain", url=(on.directory / "a.txt").as_uri())
    await on.tk.prompt(session_id, Prompt(parts=(TextInput(text="read"), file)))
    await on.tk.wait(session_id)
    assert "1: the word is swordfish" in str(script.requests[-1].messages)
    [user, _] = await on.messages(session_id)
    assert isinstance(user.parts[-1], FilePart)


async def test_a_prompt_is_resolved_where_another_process_moved_the_session(tmp_path: Path) -> None:
    """What one process knows of a session may be old; the prompt is worked out again for what is true."""
    store = f"sqlite:{tmp_path / 'store.db'}"
    here, there = tmp_path / "here", tmp_path / "there"
    async with (
        stage(store, here, Scripted()) as one,
        stage(
            store, there, Scripted(), StageOptions(config={"default_agent": "plan"}), mint=Mint.fixed(seed=1)
        ) as other,
    ):
        session_id = await one.session()
        await other.tk.move(session_id, there)
        await one.say(session_id, "there", no_reply=True)
        await other.say(session_id, "more", no_reply=True, model=ModelChoice(provider_id="acme", model_id="other"))
        await one.say(session_id, "last", no_reply=True)
        said = [message.info for message in await one.messages(session_id)]
        assert [info.agent for info in said if isinstance(info, UserMessage)] == ["plan", "plan", "plan"]
        assert [info.model.model_id for info in said if isinstance(info, UserMessage)] == [
            "large",
            "other",
            "other",
        ]
