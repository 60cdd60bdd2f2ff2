"""The live check over real HTTP, against scripted hosts of all four protocols."""

from collections.abc import Callable
from pathlib import Path

import pytest

from turnkeeper.core.live_checks import CHECKS, CheckResult, estimate
from turnkeeper.model.catalog import Limits, ModelInfo, Price
from turnkeeper.model.value import encode
from turnkeeper.providers import PROVIDERS
from turnkeeper.providers.endpoint import Endpoint, Timeouts
from turnkeeper.providers.live_check import LiveCheck
from turnkeeper.providers.transport import Network
from turnkeeper.testing import RecordingChanged, Script, ScriptedServer, replay_check
from turnkeeper.testing.live_recording import CheckRecorder

KEY = "sk-very-secret"
SHORT = Timeouts(first_byte_s=1, idle_s=1, total_s=1)


def a_model(protocol: str, **changes: object) -> ModelInfo:
    whole = ModelInfo(
        provider_id="host",
        id="large",
        name="Large",
        api_id="large",
        protocol=protocol,
        limits=Limits(context=200_000, output=8_000),
        price=Price(input=3, output=15, cache_read=0.3, cache_write=3.75),
        modalities=("text", "image"),
    )
    return whole.but(**changes)


def able() -> Script:
    return (
        Script()
        .says("ready")
        .usage(input=30, output=2)
        .then()
        .calls("get_weather", city="Bern")
        .then()
        .calls("StructuredOutput", sum=42)
        .then()
        .says("Red.")
        .then()
        .says("ready")
        .usage(input=4600, output=2, cache_write=4500)
        .then()
        .says("ready")
        .usage(input=4600, output=2, cache_read=4500)
    )


async def checked(
    script: Script, model: ModelInfo, file: Path | None = None, timeouts: Timeouts | None = None
) -> tuple[dict[str, tuple[str, str]], LiveCheck, ScriptedServer]:
    """The verdicts and words, by check."""
    async with ScriptedServer(script) as server:
        endpoint = Endpoint(
            protocol=model.protocol,
            provider_id="host",
            base_url=server.url,
            api_key=KEY,
            timeouts=timeouts or Timeouts(),
        )
        network = Network()
        recorder = CheckRecorder(network.provider(endpoint), [KEY, server.url])
        check = LiveCheck(recorder.transport(endpoint), model)
        results = [one async for one in check.results()]
        await network.aclose()
        if file is not None:
            recorder.save(file, model, results)
    return {one.check: (one.verdict, one.words) for one in results}, check, server


@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_a_host_that_can_everything_gets_ok_everywhere_and_the_recording_replays(
    protocol: str, tmp_path: Path
) -> None:
    file = tmp_path / "checks" / "large.json"
    found, check, server = await checked(able(), a_model(protocol), file)
    assert {name: verdict for name, (verdict, _) in found.items()} == dict.fromkeys(CHECKS, "ok")
    assert found["usage"][1] == "30 tokens in, 2 out"
    assert found["cache"][1] == "the second request read 4500 tokens from the cache"
    assert check.requests == len(server.requests) == 6
    assert 0 < check.dollars < estimate(a_model(protocol)) < 0.06
    text = file.read_text()
    assert KEY not in text
    assert server.url not in text
    assert "req_" not in text
    replayed = await replay_check(file)
    assert {one.check: (one.verdict, one.words) for one in replayed} == found


@pytest.mark.parametrize("protocol", PROVIDERS)
async def test_a_host_that_can_nothing_more_than_text_is_told_apart(protocol: str) -> None:
    script = Script().says("ready").usage(None).then().says("I cannot.").forever()
    found, _, _ = await checked(script, a_model(protocol, price=Price(), modalities=("text",)))
    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "text": "ok",
        "usage": "failed",
        "tool call": "failed",
        "structured output": "failed",
        "image": "not supported",
        "cache": "not supported",
    }
    assert found["tool call"][1] == "it said 'I cannot.'"
    assert found["image"][1] == "the catalogue says that the model takes no images"


@pytest.mark.parametrize("protocol", PROVIDERS)
@pytest.mark.parametrize(
    ("script", "words"),
    [
        (lambda: Script().fails(401, message="invalid x-api-key"), "invalid x-api-key"),
        (lambda: Script().fails(429, message="slow down"), "slow down"),
        (lambda: Script().hangs(), "1 s"),
        (lambda: Script().garbles(), "stream"),
        (lambda: Script().cuts(), "connection"),
    ],
    ids=["401", "429", "hangs", "garbage", "cut"],
)
async def test_a_host_that_fails_is_quoted_and_not_asked_again(
    protocol: str, script: Callable[[], Script], words: str, tmp_path: Path
) -> None:
    file = tmp_path / "large.json"
    found, check, server = await checked(script(), a_model(protocol), file, SHORT)
    assert [verdict for verdict, _ in found.values()] == ["failed", *["skipped"] * 5]
    assert words in found["text"][1].lower()
    assert (check.requests, len(server.requests)) == (1, 1)
    assert [one.verdict for one in await replay_check(file)] == ["failed", *["skipped"] * 5]


async def test_what_the_host_does_not_support_is_no_failure() -> None:
    said = "tools are not supported by this model"
    script = Script().says("ready").then().fails(400, message=said).then().fails(400, message="bad schema").then()
    found, _, _ = await checked(script.says("blue").then().says("ready").forever(), a_model("openai-chat"))
    assert found["tool call"] == ("not supported", said)
    assert found["structured output"] == ("failed", "bad schema")
    assert found["image"] == ("failed", "it said 'blue'")
    assert found["cache"][0] == "failed"
    mute, _, _ = await checked(able(), a_model("openai-chat", tool_call=False, modalities=("text",)))
    assert [mute[name][0] for name in ("tool call", "structured output")] == ["not supported"] * 2


async def test_a_recording_whose_requests_or_verdicts_differ_fails_the_test(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    await checked(able(), a_model("anthropic"), file)
    text = file.read_text()
    file.write_text(text.replace("city Bern", "city Basel"))
    with pytest.raises(RecordingChanged, match="Basel"):
        await replay_check(file)
    verdict = encode(CheckResult(check="image", verdict="ok")).decode()
    assert '"verdict":"ok"' in verdict
    file.write_text(text.replace('"verdict": "ok"', '"verdict": "failed"', 1))
    with pytest.raises(RecordingChanged, match="the verdicts were"):
        await replay_check(file)
    file.write_text('{"version": 1, "exchanges": []}')
    with pytest.raises(RecordingChanged, match="is no recording"):
        await replay_check(file)
