"""A message that a provider does not accept cannot brick a session: over real HTTP, in every protocol."""

import pytest

from turnkeeper.model import event as e
from turnkeeper.model.failure import ApiFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import FilePart
from turnkeeper.model.prompt import FileInput, Prompt, TextInput
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.http import HttpProvider, new_client
from turnkeeper.providers.script import Script
from turnkeeper.testing.harness import MODEL, Play, Stage
from turnkeeper.testing.server import ScriptedServer

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
PROTOCOLS = {
    "anthropic": "messages.{}.content.1.image.source.base64: The image cannot be decoded",
    "openai-chat": "Invalid 'messages[{}].content[1].image_url': the image is broken",
    "openai-responses": "Invalid image in input[{}].content[1]",
    "gemini": "Unable to process the image at contents[{}].parts[1]",
}


def config(protocol: str) -> dict[str, object]:
    model = {**MODEL, "modalities": {"input": ["text", "image"]}}
    provider = {"protocol": protocol, "options": {"baseURL": "http://localhost:1/v1"}, "models": {"large": model}}
    return {"model": "acme/large", "provider": {"acme": provider}}


async def look(stage: Stage, session: str) -> str:
    image = FileInput(url=PNG, mime="image/png", filename="broken.png")
    await stage.tk.prompt(session, Prompt(parts=(TextInput(text="what is this?"), image)))
    return (await stage.tk.wait(session)).reason


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_what_a_provider_points_at_is_left_out_and_the_turn_tried_once_more(play: Play, protocol: str) -> None:
    script = Script().says("hello")
    async with ScriptedServer(script) as server, new_client(user_agent="test") as client:
        endpoint = Endpoint(protocol=protocol, provider_id="acme", base_url=server.url, api_key="k")
        async with play(HttpProvider(endpoint, client), config=config(protocol)) as stage:
            session = await stage.session()
            await stage.ask(session, "hello")
            words = PROTOCOLS[protocol].format(wire_length(server) + 1)  # Behind the greeting and its answer.
            script.then().fails(400, message=words).then().says("I see nothing.").then().says("b")
            assert await look(stage, session) == "answered"
            assert (await stage.ask(session, "go on")).reason == "answered"
            [told] = [one for one in await stage.events(session) if isinstance(one, e.PartsQuarantined)]
            assert "rejected one part of your newest message" in told.reason
            assert ["iVBORw0KGgo" in str(one.body) for one in server.requests] == [False, True, False, False]
            kept = [part for m in await stage.messages(session) for part in m.parts if isinstance(part, FilePart)]
            assert [part.id for part in kept] == list(told.part_ids)
            assert await stage.is_sound(session)
            async with stage.tk.subscribe() as heard:
                forked = (await stage.tk.fork(session)).id
                heard.close()
                assert "session.error" not in [one.type async for one in heard if isinstance(one, Notification)]
            script.then().says("c")
            assert (await stage.tk.run(forked)).reason == "answered"
            assert (await stage.ask(forked, "and in a copy?")).reason == "answered"
            assert "iVBORw0KGgo" not in str(server.requests[-1].body)
            assert await stage.is_sound(forked)


def wire_length(server: ScriptedServer) -> int:
    """How many messages the newest request had for the provider, the system prompt among them where it is one."""
    body = server.requests[-1].body
    messages = next(body[name] for name in ("messages", "input", "contents") if name in body)
    assert isinstance(messages, list)
    return len(messages)


@pytest.mark.parametrize(
    "words",
    ["Could not process image", "The image data you provided does not represent a valid image", "Invalid MIME type"],
)
async def test_a_file_that_is_rejected_without_its_place_is_left_out(play: Play, words: str) -> None:
    script = Script().says("hello").then().fails(400, message=words).then().says("I see nothing.").then().says("b")
    async with ScriptedServer(script) as server, new_client(user_agent="test") as client:
        endpoint = Endpoint(protocol="anthropic", provider_id="acme", base_url=server.url, api_key="k")
        async with play(HttpProvider(endpoint, client), config=config("anthropic")) as stage:
            session = await stage.session()
            await stage.ask(session, "hello")
            assert await look(stage, session) == "answered"
            assert (await stage.ask(session, "go on")).reason == "answered"
            assert ["iVBORw0KGgo" in str(one.body) for one in server.requests] == [False, True, False, False]
            assert await stage.is_sound(session)


async def test_of_several_files_the_rejected_one_is_found_from_the_newest_on(play: Play) -> None:
    words = "Could not process image"
    script = Script().says("a").then().fails(400, message=words).then().fails(400, message=words)
    script.then().fails(400, message=words).then().says("b")
    async with ScriptedServer(script) as server, new_client(user_agent="test") as client:
        endpoint = Endpoint(protocol="anthropic", provider_id="acme", base_url=server.url, api_key="k")
        async with play(HttpProvider(endpoint, client), config=config("anthropic")) as stage:
            session = await stage.session()
            assert await look(stage, session) == "answered"
            assert "ApiFailure" in await look(stage, session)
            assert (await stage.ask(session, "go on")).reason == "answered"
            assert [str(one.body).count("iVBORw0KGgo") for one in server.requests] == [1, 2, 1, 1, 0]


async def test_a_second_rejection_is_the_end_of_the_turn(play: Play) -> None:
    words = PROTOCOLS["anthropic"].format(0)
    script = Script().fails(400, message=words).then().fails(400, message=words).then().says("unasked")
    async with ScriptedServer(script) as server, new_client(user_agent="test") as client:
        endpoint = Endpoint(protocol="anthropic", provider_id="acme", base_url=server.url, api_key="k")
        async with play(HttpProvider(endpoint, client), config=config("anthropic")) as stage:
            session = await stage.session()
            assert "ApiFailure" in await look(stage, session)
            assert len(server.requests) == 2
            last = (await stage.messages(session))[-1].info
            assert isinstance(last, AssistantMessage)
            assert isinstance(last.error, ApiFailure)


async def test_a_rejection_that_points_nowhere_quarantines_nothing(play: Play) -> None:
    async with (
        ScriptedServer(Script().fails(400, message="bad request")) as server,
        new_client(user_agent="t") as client,
    ):
        endpoint = Endpoint(protocol="anthropic", provider_id="acme", base_url=server.url, api_key="k")
        async with play(HttpProvider(endpoint, client), config=config("anthropic")) as stage:
            session = await stage.session()
            assert "ApiFailure" in await look(stage, session)
            assert not any(isinstance(one, e.PartsQuarantined) for one in await stage.events(session))
