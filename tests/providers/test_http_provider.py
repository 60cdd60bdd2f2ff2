"""Requests over real HTTP on loopback: what goes out, what comes in, and every way in which it breaks."""

from collections.abc import AsyncIterator

import anyio
import httpx2
import msgspec
import pytest
from anyio.abc import SocketStream
from loopback import END, Answer, Server, accepting, chunk, cutting, head, serving, stalling, whole
from wire_cases import KEY, a_provider, a_request, an_endpoint, ask, code_of, read_recording, recording

from turnkeeper.model.failure import ApiFailure, AuthData, AuthFailure, Failure, OverflowFailure
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.request import Text, UserTurn
from turnkeeper.model.stream import Finish, Start, StartStep, StreamError, StreamEvent, TextDelta, UsageCounted
from turnkeeper.providers import PROVIDERS, codec_of
from turnkeeper.providers.codec import encode_body
from turnkeeper.providers.endpoint import Timeouts
from turnkeeper.providers.http import HttpProvider, new_client


@pytest.fixture
async def client() -> AsyncIterator[httpx2.AsyncClient]:
    async with new_client(user_agent="turnkeeper/test") as shared:
        yield shared


async def answered(
    client: httpx2.AsyncClient, answer: Answer, protocol: str = "anthropic", **changes: object
) -> list[StreamEvent]:
    async with serving(answer) as server:
        return await ask(a_provider(client, server.url, protocol, **changes), a_request(protocol))


async def failed(client: httpx2.AsyncClient, answer: Answer, protocol: str = "anthropic", **changes: object) -> Failure:
    """The failure of an answer that ends in exactly one error."""
    events = await answered(client, answer, protocol, **changes)
    assert [event for event in events if isinstance(event, StreamError | Finish)] == events[-1:]
    assert isinstance(events[-1], StreamError)
    return events[-1].failure


@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_a_whole_answer_comes_through(client: httpx2.AsyncClient, protocol: str) -> None:
    events = await answered(client, whole(recording(f"{protocol}.tool"), x_request_id="req_1"), protocol)
    told = [one for one in events if not isinstance(one, UsageCounted)]
    assert told == [Start(request_id="req_1"), StartStep(), *read_recording(f"{protocol}.tool")]


async def test_what_is_counted_before_the_end_is_told_at_once(client: httpx2.AsyncClient) -> None:
    """An answer that is never read to its end is paid all the same."""
    begin, _, _ = recording("anthropic.text").partition(b"event: content_block_start")
    events = await answered(client, cutting(head(), chunk(begin)), "anthropic")
    [counted] = [one.usage for one in events if isinstance(one, UsageCounted)]
    assert counted.input > 0


@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_what_goes_out_is_what_the_codec_says(client: httpx2.AsyncClient, protocol: str) -> None:
    request = a_request(protocol, parent_session_id="ses_0", headers={"X-Mine": "3", "X-Both": "request"})
    changes = {"headers": {"X-Yours": "4", "x-both": "endpoint"}}
    async with serving(whole(recording(f"{protocol}.text"))) as server:
        await ask(a_provider(client, server.url, protocol, **changes), request)
    (sent,) = server.requests
    codec, endpoint = codec_of(protocol), an_endpoint(protocol, api_key=KEY)
    assert sent.line == f"POST /v1{codec.path(request)} HTTP/1.1"
    assert sent.body == encode_body(codec.body(request, endpoint))
    expected = {
        **codec.headers(endpoint),
        "content-type": "application/json",
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "user-agent": "turnkeeper/test",
        "x-session-affinity": "ses_1",
        "x-session-id": "ses_1",
        "x-parent-session-id": "ses_0",
        "x-mine": "3",
        "x-yours": "4",
        "x-both": "request",
    }
    assert expected.items() <= sent.headers.items()


async def test_a_portion_is_what_arrived_together(client: httpx2.AsyncClient) -> None:
    first, second = recording("anthropic.text").split(b"event: content_block_stop", 1)
    go = anyio.Event()

    async def answer(stream: SocketStream) -> None:
        await stream.send(head() + chunk(first))
        await go.wait()
        await stream.send(chunk(b"event: content_block_stop" + second) + END)

    async with serving(answer) as server:
        stream = a_provider(client, server.url).stream(a_request("anthropic"))
        assert len(await anext(stream)) == 2
        assert (
            "".join(event.text for event in await anext(stream) if isinstance(event, TextDelta)) == "Hello, wörld 🌍!"
        )
        go.set()
        assert (await anext(stream))[-1] == Finish()
        assert [portion async for portion in stream] == []


async def test_the_next_request_uses_the_same_connection(client: httpx2.AsyncClient) -> None:
    async with serving(whole(recording("anthropic.text"))) as server:
        provider = a_provider(client, server.url)
        for _ in range(3):
            await ask(provider, a_request("anthropic"))
    assert (server.connections, len(server.requests)) == (1, 3)


STATUSES = [
    ("400 Bad Request", '{"error":{"type":"invalid_request_error","message":"max_tokens: wrong"}}', False),
    ("403 Forbidden", "<html>no</html>", False),
    ("429 Too Many Requests", '{"error":{"type":"rate_limit_error","message":"slow down"}}', True),
    ("500 Internal Server Error", "", True),
    ("529 Overloaded", '{"error":{"type":"overloaded_error","message":"Overloaded"}}', True),
    ("307 Temporary Redirect", "", False),
]


@pytest.mark.parametrize(("status", "body", "is_retryable"), STATUSES)
@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_an_error_status_is_one_failure_and_is_not_tried_again(
    client: httpx2.AsyncClient, protocol: str, status: str, body: str, is_retryable: bool
) -> None:
    answer = whole(body.encode(), status, "application/json", retry_after="3", location="http://127.0.0.1:9/")
    async with serving(answer) as server:
        events = await ask(a_provider(client, server.url, protocol), a_request(protocol))
    match events:
        case [StreamError(failure=ApiFailure(data=data))]:
            assert (data.status_code, data.is_retryable) == (int(status[:3]), is_retryable)
            assert (data.response_headers or {})["retry-after"] == "3"
            assert data.response_body == (body or None)
        case other:
            pytest.fail(f"{other}")
    assert len(server.requests) == 1


async def test_a_refused_key_is_an_auth_failure_that_does_not_show_it(client: httpx2.AsyncClient) -> None:
    body = msgspec.json.encode({"error": {"type": "authentication_error", "message": f"Wrong key {KEY}."}})
    failure = await failed(client, whole(body, "401 Unauthorized", "application/json"))
    assert failure == AuthFailure(data=AuthData(provider_id="anthropic", message="Wrong key [the key]."))


async def test_a_word_in_the_place_of_a_key_changes_nothing_that_the_provider_says(client: httpx2.AsyncClient) -> None:
    message = "maximum context length is 4096 tokens. However, you requested 5000 tokens"
    answer = whole(msgspec.json.encode({"error": {"message": message}}), "400 Bad Request", "application/json")
    failure = await failed(client, answer, "openai-chat", api_key="token")
    assert isinstance(failure, OverflowFailure)
    assert failure.data.message == message


async def test_a_request_that_is_too_large_is_an_overflow(client: httpx2.AsyncClient) -> None:
    assert isinstance(await failed(client, whole(b"", "413 Content Too Large")), OverflowFailure)


async def test_a_refusal_counts_though_it_comes_before_the_request_is_read_whole(client: httpx2.AsyncClient) -> None:
    refusal = head("413 Payload Too Large", "application/json") + chunk(b"{}") + END

    async def answer(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(refusal)
        while True:
            await stream.receive()

    long = a_request("anthropic", messages=(UserTurn(content=(Text(text="long " * 400_000),)),))
    async with accepting(answer) as url:
        (failure,) = await ask(a_provider(client, url), long)
    assert isinstance(failure, StreamError)
    assert isinstance(failure.failure, OverflowFailure)


async def test_cookies_and_long_bodies_are_not_kept(client: httpx2.AsyncClient) -> None:
    failure = await failed(client, whole(b"x" * 100_000, "500 Oh", "text/plain", set_cookie="a=b", x_other="c"))
    assert isinstance(failure, ApiFailure)
    assert len(failure.data.response_body or "") == 16 * 1024
    assert "set-cookie" not in (failure.data.response_headers or {})
    assert (failure.data.response_headers or {})["x-other"] == "c"


async def test_gemini_says_in_the_body_how_long_to_wait(client: httpx2.AsyncClient) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.07s"}]
    body = msgspec.json.encode(
        {"error": {"code": 429, "message": "Quota", "status": "RESOURCE_EXHAUSTED", "details": details}}
    )
    failure = await failed(client, whole(body, "429 Too Many Requests", "application/json"), "gemini")
    assert isinstance(failure, ApiFailure)
    assert (failure.data.response_headers or {})["retry-after"] == "34.07"


async def test_an_error_body_that_breaks_off_leaves_the_status(client: httpx2.AsyncClient) -> None:
    failure = await failed(client, cutting(head("503 Oh"), chunk(b"half")))
    assert isinstance(failure, ApiFailure)
    assert (failure.data.status_code, failure.data.response_body) == (503, "half")


@pytest.mark.parametrize("protocol", PROVIDERS)
@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("cut", ("incomplete_stream", True)),
        ("garbage", ("malformed_stream", True)),
        ("duplicate", ("malformed_stream", False)),
        ("out_of_order", ("malformed_stream", False)),
    ],
)
async def test_a_stream_that_makes_no_sense_is_one_failure(
    client: httpx2.AsyncClient, protocol: str, name: str, code: tuple[str, bool]
) -> None:
    assert code_of(await failed(client, whole(recording(f"{protocol}.{name}")), protocol)) == code


@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_a_connection_that_breaks_is_one_failure_worth_a_retry(client: httpx2.AsyncClient, protocol: str) -> None:
    text = recording(f"{protocol}.text")
    assert code_of(await failed(client, cutting(head(), chunk(text[:300])), protocol)) == ("ECONNRESET", True)
    assert code_of(await failed(client, cutting(), protocol)) == ("ECONNRESET", True)


async def test_an_answer_that_was_whole_before_the_connection_broke_is_whole(client: httpx2.AsyncClient) -> None:
    text = recording("openai-chat.text").removesuffix(b"data: [DONE]\n\n")
    events = await answered(client, cutting(head(), chunk(text)), "openai-chat")
    assert [one for one in events[2:] if not isinstance(one, UsageCounted)] == read_recording("openai-chat.text")


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"base_url": "ftp://127.0.0.1/v1"}, "INVALID_URL"),
        ({"base_url": "127.0.0.1"}, "INVALID_URL"),
        ({"base_url": "http://[::1"}, "INVALID_URL"),
        ({"base_url": "http://127.0.0.1:99999/v1"}, "INVALID_URL"),
        ({"api_key": "sk-\u00e9"}, "INVALID_REQUEST"),
        ({"api_key": "sk-a\r\nx: y"}, "INVALID_REQUEST"),
        ({"headers": {"bad name": "x"}}, "INVALID_REQUEST"),
    ],
)
async def test_settings_that_make_no_sense_are_a_failure_not_worth_a_retry(
    client: httpx2.AsyncClient, changes: dict[str, object], code: str
) -> None:
    async with serving(whole(recording("anthropic.text"))) as server:
        provider = HttpProvider(an_endpoint("anthropic", **{"base_url": server.url, **changes}), client)
        match await ask(provider, a_request("anthropic")):
            case [StreamError(failure=failure)]:
                assert code_of(failure) == (code, False)
            case other:
                pytest.fail(f"{other}")
    assert server.requests == []


async def test_without_a_key_nothing_is_sent_where_one_is_needed(client: httpx2.AsyncClient) -> None:
    async with serving(whole(recording("anthropic.text"))) as server:
        events = await ask(a_provider(client, server.url, api_key=None, key_required=True), a_request("anthropic"))
    failure = AuthFailure(
        data=AuthData(provider_id="anthropic", message="There is no API key for provider 'anthropic'.")
    )
    assert events == [StreamError(failure=failure)]
    assert server.requests == []


async def test_a_login_in_the_address_goes_along(client: httpx2.AsyncClient) -> None:
    async with serving(whole(recording("openai-chat.text"))) as server:
        provider = a_provider(client, server.url.replace("//", "//me:word@"), "openai-chat", api_key=None)
        events = await ask(provider, a_request("openai-chat"))
    assert isinstance(events[-1], Finish)
    assert server.requests[0].headers["authorization"] == "Basic bWU6d29yZA=="


@pytest.mark.parametrize("answer", ["refused", "a page"])
async def test_a_key_in_the_query_of_the_address_is_in_no_failure(client: httpx2.AsyncClient, answer: str) -> None:
    async with serving(whole(b"<html>", kind="text/html")) as server:
        url = server.url if answer == "a page" else "http://127.0.0.1:1/v1"
        events = await ask(a_provider(client, f"{url}?key=s3cret", "openai-chat"), a_request("openai-chat"))
    assert isinstance(events[-1], StreamError)
    assert "s3cret" not in str(events)


async def test_a_local_server_needs_no_key(client: httpx2.AsyncClient) -> None:
    events = await answered(client, whole(recording("openai-chat.text")), "openai-chat", api_key=None)
    assert events[-1] == Finish()


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        (b"<html>Sign in</html>", "text/html; charset=utf-8", ("not_a_stream", False)),
        (b'{"choices":[]}', "application/json", ("not_a_stream", False)),
        (b'{"error":{"message":"busy","code":"server_error"}}', "application/json", ("server_error", True)),
        (b"no events at all", "text/event-stream", ("incomplete_stream", True)),
        (b"", "text/event-stream", ("incomplete_stream", True)),
    ],
)
@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_an_answer_that_is_no_stream_is_one_failure(
    client: httpx2.AsyncClient, protocol: str, body: bytes, kind: str, code: tuple[str, bool]
) -> None:
    assert code_of(await failed(client, whole(body, kind=kind), protocol)) == code


async def test_a_body_that_cannot_be_decoded_is_one_failure(client: httpx2.AsyncClient) -> None:
    failure = await failed(client, whole(b"no gzip", content_encoding="gzip"))
    assert code_of(failure)[1]


SOON = 0.02


@pytest.mark.parametrize(
    ("sent", "timeouts", "code"),
    [
        ((), Timeouts(first_byte_s=SOON), "first_byte_timeout"),
        ((head(),), Timeouts(first_byte_s=SOON), "first_byte_timeout"),
        ((head("500 Oh"),), Timeouts(first_byte_s=SOON), None),
        ((head() + chunk(recording("anthropic.text")[:700]),), Timeouts(idle_s=SOON), "idle_timeout"),
        ((head() + chunk(recording("anthropic.text")[:700]),), Timeouts(total_s=SOON), "total_timeout"),
        ((), Timeouts(total_s=SOON), "total_timeout"),
    ],
    ids=["no head", "no body", "no error body", "silent", "too long", "too long from the start"],
)
async def test_a_provider_that_stalls_is_left_after_the_time_allowed(
    client: httpx2.AsyncClient, sent: tuple[bytes, ...], timeouts: Timeouts, code: str | None
) -> None:
    async with serving(stalling(*sent)) as server:
        events = await ask(a_provider(client, server.url, timeouts=timeouts), a_request("anthropic"))
        await server.until_closed()
    match events[-1]:
        case StreamError(failure=ApiFailure(data=data)):
            assert ((data.metadata or {}).get("code") if code else None, data.is_retryable) == (code, True)
        case other:
            pytest.fail(f"{other}")


async def test_an_answer_that_was_whole_before_it_went_silent_is_whole(client: httpx2.AsyncClient) -> None:
    text = recording("openai-chat.text").removesuffix(b"data: [DONE]\n\n")
    events = await answered(client, stalling(head() + chunk(text)), "openai-chat", timeouts=Timeouts(idle_s=SOON))
    assert events[-1] == Finish()


async def test_an_answer_is_over_with_its_last_event_whether_or_not_the_stream_ends(client: httpx2.AsyncClient) -> None:
    async with serving(stalling(head() + chunk(recording("anthropic.text")))) as server:
        events = await ask(a_provider(client, server.url, timeouts=Timeouts(idle_s=None)), a_request("anthropic"))
        await server.until_closed()
    assert events[-1] == Finish()


async def test_what_breaks_behind_the_end_of_an_answer_says_nothing(client: httpx2.AsyncClient) -> None:
    async with serving(cutting(head() + chunk(recording("anthropic.text")), b"not a chunk")) as server:
        portions = [portion async for portion in a_provider(client, server.url).stream(a_request("anthropic"))]
    assert portions[-1][-1] == Finish()


def half_an_answer() -> Answer:
    return stalling(head() + chunk(recording("anthropic.text")[:700]))


async def started(server: Server, client: httpx2.AsyncClient, seen: anyio.Event) -> None:
    async for portion in a_provider(client, server.url).stream(a_request("anthropic")):
        if any(isinstance(event, TextDelta) for event in portion):
            seen.set()


async def test_cancelling_closes_the_connection(client: httpx2.AsyncClient) -> None:
    async with serving(half_an_answer()) as server, anyio.create_task_group() as group:
        seen = anyio.Event()
        group.start_soon(started, server, client, seen)
        await seen.wait()
        group.cancel_scope.cancel()
        with anyio.CancelScope(shield=True):
            await server.until_closed()
    assert server.closed.is_set()


async def test_closing_the_generator_closes_the_connection(client: httpx2.AsyncClient) -> None:
    async with serving(half_an_answer()) as server:
        stream = a_provider(client, server.url).stream(a_request("anthropic"))
        await anext(stream)
        await anext(stream)
        await stream.aclose()
        await server.until_closed()
    assert server.closed.is_set()


async def test_one_client_serves_many_answers_at_once(client: httpx2.AsyncClient) -> None:
    done: list[StreamEvent] = []

    async def one(provider: HttpProvider) -> None:
        done.append((await ask(provider, a_request("anthropic")))[-1])

    async with serving(whole(recording("anthropic.tool"))) as server, anyio.create_task_group() as group:
        for _ in range(40):
            group.start_soon(one, a_provider(client, server.url))
    assert done == [Finish()] * 40


def test_a_protocol_nobody_speaks_is_refused_by_name() -> None:
    with pytest.raises(Invalid, match=r"'smtp'.*anthropic, gemini, openai-chat, openai-responses"):
        codec_of("smtp")
