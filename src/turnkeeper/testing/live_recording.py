"""Recordings of live checks: written by ``turnkeeper models test --record``, and replayed as a test without a key.

async def test_the_recorded_model_is_understood() -> None:
    await turnkeeper.testing.replay_check("tests/sonnet.json")
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final

import msgspec

from turnkeeper.core.live_checks import CheckResult
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import ApiFailure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import Start, StreamError, StreamEvent
from turnkeeper.providers.live_check import LiveCheck
from turnkeeper.providers.provider import Provider
from turnkeeper.testing.recording import VERSION, Comparison, Exchange, Recorder, RecordingChanged, Replayer

MASK: Final = "***"
HIDDEN_MIN: Final = 6
"""Minimum length of a masked text: a shorter one is no secret, and could be a word of the file."""


class CheckFile(msgspec.Struct, frozen=True):
    """Content of a file: a recording, the model and the verdicts."""

    version: int
    model: ModelInfo
    results: tuple[CheckResult, ...]
    exchanges: tuple[Exchange, ...]


class CheckRecorder:
    """Records the answers of a provider, without data that identifies the account."""

    def __init__(self, provider: Provider, hidden: Sequence[str]) -> None:
        """``hidden`` are keys and addresses, which are masked wherever they occur."""
        self._recorder = Recorder(lambda endpoint: _Nameless(provider), Comparison({}))
        self.transport = self._recorder.provider
        """The provider to ask, by its endpoint."""
        self._hidden = sorted({one for one in hidden if len(one) >= HIDDEN_MIN}, key=len, reverse=True)

    def save(self, path: Path, model: ModelInfo, results: Sequence[CheckResult]) -> None:
        """Write the recording. Raises FileExistsError: a recording is not replaced."""
        found = CheckFile(
            version=VERSION,
            model=model.but(options={}, variants={}),
            results=tuple(results),
            exchanges=self._recorder.exchanges,
        )
        text = msgspec.json.format(msgspec.json.encode(found), indent=1).decode()
        for one in self._hidden:
            text = text.replace(msgspec.json.encode(one).decode()[1:-1], MASK)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(f"{text}\n")


async def replay_check(path: str | Path) -> tuple[CheckResult, ...]:
    """Make the checks of a recording again, with the recorded answers. It needs no key and no network.

    Raises RecordingChanged if a request or a verdict differs from the recorded one.
    """
    path = Path(path)
    replayer = Replayer(path, Comparison({}))
    try:
        recorded = msgspec.json.decode(path.read_bytes(), type=CheckFile)
    except msgspec.MsgspecError as error:
        raise RecordingChanged(f"{path} is no recording of `turnkeeper models test`: {error}") from error
    results = tuple([one async for one in LiveCheck(replayer, recorded.model).results()])
    replayer.check()
    if [(one.check, one.verdict) for one in results] != [(one.check, one.verdict) for one in recorded.results]:
        raise RecordingChanged(f"{path}: the verdicts were {recorded.results}, and now they are {results}")
    return results


class _Nameless:
    """A provider whose answers have no request ids and no headers: both identify the account."""

    def __init__(self, real: Provider) -> None:
        self._real = real

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Pass the answer on."""
        async with aclosing(self._real.stream(request)) as answer:
            async for portion in answer:
                yield [_nameless(event) for event in portion]


def _nameless(event: StreamEvent) -> StreamEvent:
    match event:
        case Start():
            return Start()
        case StreamError(failure=ApiFailure(data=data)):
            return event.but(failure=ApiFailure(data=data.but(response_headers=None, response_body=None)))
        case _:
            return event
