"""The official Python SDK: every session method it has, and its events."""

import inspect
from pathlib import Path
from typing import Any

import opencode_ai
import pytest
from clients import Served
from narrow import of_type
from opencode_ai.types import AssistantMessage, TextPart, TextPartInputParam

MODEL: dict[str, Any] = {"model_id": "one", "provider_id": "scripted"}
METHODS = {
    *("abort", "chat", "create", "delete", "init", "list", "messages", "revert", "share", "summarize", "unrevert"),
    "unshare",
}


@pytest.fixture
def sdk(served: Served, place: Path) -> opencode_ai.Opencode:
    return opencode_ai.Opencode(
        base_url=served.url, default_headers={"x-opencode-directory": str(place)}, max_retries=0
    )


def said(words: str) -> list[TextPartInputParam]:
    return [{"type": "text", "text": words}]


def test_no_session_method_is_forgotten_here() -> None:
    found = inspect.getmembers(opencode_ai.resources.SessionResource, inspect.isfunction)
    assert {name for name, _ in found if not name.startswith("_")} == METHODS


def test_a_session_is_made_prompted_read_summarised_and_deleted(sdk: opencode_ai.Opencode) -> None:
    made = sdk.session.create(extra_body={"title": "Made by the SDK"})
    assert made.title == "Made by the SDK"
    assert made.id in [one.id for one in sdk.session.list()]

    answered: Any = sdk.session.chat(made.id, parts=said("[[text Said by the script.]]"), **MODEL)
    assert answered.info["role"] == "assistant"
    assert [part["text"] for part in answered.parts if part["type"] == "text"] == ["Said by the script."]

    asked, answer = sdk.session.messages(made.id)
    assert (asked.info.role, of_type(TextPart, asked.parts[0]).text) == ("user", "[[text Said by the script.]]")
    assert answer.info.id == answered.info["id"]
    assert sdk.session.summarize(made.id, **MODEL) is True
    assert sdk.session.init(made.id, message_id="msg_0000000000010000000000pypi", **MODEL) is True
    assert sdk.session.delete(made.id) is True
    with pytest.raises(opencode_ai.NotFoundError):
        sdk.session.messages(made.id)


async def test_a_turn_is_heard_and_aborted(served: Served, place: Path) -> None:
    headers = {"x-opencode-directory": str(place)}
    async with opencode_ai.AsyncOpencode(base_url=served.url, default_headers=headers, max_retries=0) as sdk:
        made = await sdk.session.create()
        heard: list[str] = []
        async with await sdk.event.list() as events:
            async for event in events:
                heard.append(event.type)
                if event.type == "server.connected":
                    path = f"/session/{made.id}/prompt_async"
                    await sdk.post(path, cast_to=object, body={"parts": said("[[slow 1000 50]]")})
                elif heard.count("message.part.delta") == 1 and heard[-1] == "message.part.delta":
                    assert await sdk.session.abort(made.id) is True
                elif event.type == "session.idle":
                    break
        assert {"message.updated", "message.part.updated", "session.error"} <= set(heard)
        _, stopped = await sdk.session.messages(made.id)
        error = of_type(AssistantMessage, stopped.info).error
        assert error is not None
        assert error.name == "MessageAbortedError"


def test_a_session_is_shared_and_unshared(sdk: opencode_ai.Opencode) -> None:
    made = sdk.session.create()
    shared = sdk.session.share(made.id)
    assert shared.share is not None
    assert f"/share/{made.id}#" in shared.share.url
    assert sdk.session.unshare(made.id).share is None


def test_a_session_is_reverted_and_brought_back(sdk: opencode_ai.Opencode) -> None:
    made = sdk.session.create()
    assert sdk.session.revert(made.id, message_id="msg_unknown").revert is None
    assert sdk.session.unrevert(made.id).id == made.id
