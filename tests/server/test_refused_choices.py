"""An agent or a model that does not exist, or a prompt without words, is refused with 400; nothing is recorded."""

from pathlib import Path
from typing import Any

import pytest
from served import served

from turnkeeper.providers.scripted import Scripted

TEXT = {"type": "text", "text": "go"}
NO_MODEL = {"providerID": "acme", "modelID": "nope"}
NO_PROVIDER = {"providerID": "nobody", "modelID": "large"}
MINE = "msg_0000000000010000000000abcd"

FIRST: list[tuple[str, dict[str, Any]]] = [
    *(
        (way, {"parts": [TEXT], "model": model})
        for way in ("message", "prompt_async")
        for model in (NO_MODEL, NO_PROVIDER)
    ),
    *((way, {"parts": [TEXT], "agent": "nope"}) for way in ("message", "prompt_async")),
    ("message", {"parts": [TEXT], "noReply": True, "model": NO_MODEL}),
    ("command", {"command": "init", "arguments": "", "model": "acme/nope"}),
    ("command", {"command": "init", "arguments": "", "agent": "nope"}),
    ("shell", {"agent": "build", "command": "echo", "model": NO_MODEL}),
    ("shell", {"agent": "nope", "command": "echo"}),
    ("init", {**NO_MODEL, "messageID": MINE}),
]


@pytest.mark.parametrize(("way", "body"), FIRST)
async def test_the_first_generation_refuses_an_unknown_choice(tmp_path: Path, way: str, body: dict[str, Any]) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        before = await server.stage.tk.store.queries.state(session)
        refused: Any = await server.post(f"/session/{session}/{way}", body, 400)
        assert refused["name"] == "BadRequest"
        assert "nope" in refused["data"]["message"] or "nobody" in refused["data"]["message"]
        assert await server.stage.tk.store.queries.state(session) == before


async def test_a_summary_by_an_unknown_model_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path, Scripted().says("yes")) as server:
        session = await server.session()
        await server.ask(session, "go")
        refused: Any = await server.post(f"/session/{session}/summarize", NO_MODEL, 400)
        assert "nope" in refused["data"]["message"]


async def test_the_second_generation_refuses_to_switch_to_an_unknown_choice(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        before = await server.stage.tk.store.queries.state(session)
        for way, body in (("agent", {"agent": "nope"}), ("model", {"model": {"id": "nope", "providerID": "acme"}})):
            refused: Any = await server.post(f"/api/session/{session}/{way}", body, 400)
            assert refused["_tag"] == "InvalidRequestError"
        assert await server.stage.tk.store.queries.state(session) == before


async def test_the_second_generation_refuses_a_prompt_to_an_unknown_choice(tmp_path: Path) -> None:
    """Clients of the second generation choose agent and model for the session, here one that is gone since."""
    async with served(tmp_path) as server:
        for chosen in ({"agent": "nope"}, {"model": {"id": "nope", "providerID": "acme"}}):
            session = await server.session(**chosen)
            before = await server.stage.tk.store.queries.state(session)
            refused: Any = await server.post(f"/api/session/{session}/prompt", {"prompt": {"text": "go"}}, 400)
            assert refused["_tag"] == "InvalidRequestError"
            assert await server.stage.tk.store.queries.state(session) == before


@pytest.mark.parametrize("text", ["", " \n"])
async def test_a_prompt_without_words_is_refused(tmp_path: Path, text: str) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        before = await server.stage.tk.store.queries.state(session)
        for way in ("message", "prompt_async"):
            first: Any = await server.post(
                f"/session/{session}/{way}", {"parts": [{"type": "text", "text": text}]}, 400
            )
            assert first["data"]["message"] == "the prompt is empty; write something, or attach a file"
        second: Any = await server.post(f"/api/session/{session}/prompt", {"prompt": {"text": text}}, 400)
        assert second["message"] == "the prompt is empty; write something, or attach a file"
        assert await server.stage.tk.store.queries.state(session) == before
