"""Recordings: the exchanges with a provider, recorded once and replayed in tests for ever.

    async with turnkeeper.testing.recorded("tests/wind.json", config=CONFIG) as tk:
        answer = await tk.ask("Where is the wind?")

The file is written if it does not exist and ``TURNKEEPER_RECORD`` is set, and else replayed, without network or keys.
A request that differs from the recorded one fails the test with the difference. What depends on the machine (directory,
platform, clock, ids) is made equal before.
"""

import os
import platform
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from difflib import unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import msgspec

from turnkeeper.app import Turnkeeper, open_program
from turnkeeper.core.settings import merged
from turnkeeper.mint import Mint
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import UnknownData, UnknownFailure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamError, StreamEvent
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.transport import Network
from turnkeeper.run.runtime import Settings
from turnkeeper.workspace import paths
from turnkeeper.workspace.config import CONTENT_VARIABLES, FILE_VARIABLES, PERMISSION_VARIABLE
from turnkeeper.workspace.project import identify

if TYPE_CHECKING:
    from turnkeeper.api.agent import Agent
    from turnkeeper.context.component import ContextComponent
    from turnkeeper.providers.endpoint import Endpoint
    from turnkeeper.tools.custom import Function
    from turnkeeper.tools.tool import AnyTool

VARIABLE: Final = "TURNKEEPER_RECORD"
VERSION: Final = 1
DIFFERENCE_LINES_MAX: Final = 60
_USERS: Final = frozenset({*FILE_VARIABLES, *CONTENT_VARIABLES, PERMISSION_VARIABLE})
"""Variables with settings of the user."""


class RecordingChanged(AssertionError):
    """A test made another request than was recorded, or fewer. The message has the difference."""


class Exchange(msgspec.Struct, frozen=True):
    """A request, as far as it must stay the same, and the events of its answer in the portions they came in."""

    session: str
    """The number of the session, in the order of their first requests."""
    request: JsonObject
    answer: tuple[tuple[StreamEvent, ...], ...]


class RecordingFile(msgspec.Struct, frozen=True):
    """Content of a file."""

    version: int
    exchanges: tuple[Exchange, ...]


class Comparison:
    """Makes requests of two runs comparable: values that depend on the machine or the run get the same name in both."""

    def __init__(self, same: Mapping[str, str]) -> None:
        self._same = dict(same)
        self._sessions: dict[str, str] = {}

    def session(self, request: ModelRequest) -> str:
        """The name of the session of a request."""
        return self._sessions.setdefault(request.session_id, f"session {len(self._sessions) + 1}")

    def plain(self, request: ModelRequest) -> JsonObject:
        """A request without headers, which may hold keys, and with names in place of paths and session ids."""
        self.session(request)
        sent = request.but(headers={}, model=_named(request.model), messages=tuple(request.messages))
        text = msgspec.json.encode(sent).decode()
        named = {**self._same, **self._sessions}
        for found in sorted(named, key=len, reverse=True):
            text = text.replace(msgspec.json.encode(found).decode()[1:-1], f"{{{named[found]}}}")
        return msgspec.json.decode(text, type=dict[str, object])


class Recorder:
    """Makes providers that record the answers of real ones. ``save`` writes the recording."""

    def __init__(self, transport: "Callable[[Endpoint], Provider]", comparison: Comparison) -> None:
        self._transport, self._comparison = transport, comparison
        self._exchanges: list[Exchange] = []

    def provider(self, endpoint: "Endpoint") -> Provider:
        """The provider of an endpoint, recorded."""
        return _Recording(self._transport(endpoint), self._note)

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """The exchanges recorded so far."""
        return tuple(self._exchanges)

    def save(self, path: Path) -> None:
        """Write the recording."""
        found = RecordingFile(version=VERSION, exchanges=self.exchanges)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")

    def _note(self, request: ModelRequest, answer: Sequence[tuple[StreamEvent, ...]]) -> None:
        plain = self._comparison.plain(request)
        self._exchanges.append(Exchange(self._comparison.session(request), plain, tuple(answer)))


class _Recording:
    def __init__(self, real: Provider, note: Callable[[ModelRequest, Sequence[tuple[StreamEvent, ...]]], None]) -> None:
        self._real, self._note = real, note

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Pass the answer on, and record it when it has ended, or was stopped."""
        portions: list[tuple[StreamEvent, ...]] = []
        try:
            async with aclosing(self._real.stream(request)) as answer:
                async for portion in answer:
                    portions.append(tuple(portion))
                    yield portion
        finally:
            self._note(request, portions)


class Replayer:
    """A provider that answers each request as it was answered when it was recorded, session by session."""

    def __init__(self, path: Path, comparison: Comparison) -> None:
        """Raises RecordingChanged if there is no recording."""
        self._path, self._comparison = path, comparison
        try:
            found = msgspec.json.decode(path.read_bytes(), type=RecordingFile)
        except (OSError, msgspec.MsgspecError) as error:
            advice = f"set {VARIABLE}=1 to record it" if not path.exists() else f"delete it and set {VARIABLE}=1"
            raise RecordingChanged(f"the recording {str(path)!r} cannot be read: {error}; {advice}") from error
        self.exchanges = found.exchanges
        self._waiting = list(found.exchanges)
        self.problem = ""
        """Description of the first request that differs from the recording."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Replay the next answer of the session."""
        session, given = self._comparison.session(request), self._comparison.plain(request)
        expected = next((one for one in self._waiting if one.session == session), None)
        if expected is None or expected.request != given:
            self.problem = self.problem or _problem(session, expected, given)
            said = "the request differs from the recorded one"
            yield [StreamError(failure=UnknownFailure(data=UnknownData(message=said)))]
            return
        self._waiting.remove(expected)
        for portion in expected.answer:
            yield portion

    def check(self) -> None:
        """Raise RecordingChanged unless every recorded request was made, and no other."""
        advice = f"If the change is wanted, delete the recording and run the test with {VARIABLE}=1."
        if self.problem:
            raise RecordingChanged(f"{self._path}: {self.problem}\n{advice}")
        if self._waiting:
            raise RecordingChanged(f"{self._path}: {len(self._waiting)} recorded requests were not made. {advice}")


@asynccontextmanager
async def recorded(
    path: str | Path,
    *,
    directory: str | Path | None = None,
    config: JsonObject | None = None,
    tools: "Sequence[AnyTool | Function]" = (),
    components: "Sequence[ContextComponent]" = (),
    agents: "Sequence[Agent]" = (),
    provider: Provider | None = None,
    settings: Settings | None = None,
    record: bool | None = None,
) -> AsyncIterator[Turnkeeper]:
    """Open a store in memory whose provider replays a recording, or records one: see the module.

    ``record`` decides in place of the variable and the file. ``provider`` is recorded in place of the configured ones.
    Titles and snapshots are off. Raises RecordingChanged when the scope is left.
    """
    path, place = Path(path), await identify(directory or Path.cwd())
    comparison = Comparison(
        {
            str(place.directory): "directory",
            **({str(place.worktree): "project"} if place.worktree not in (place.directory, Path("/")) else {}),
            f"Platform: {platform.system().lower()}": "platform",
        }
    )
    given = msgspec.structs.replace(settings or Settings(), titles=False, snapshots=False)
    async with AsyncExitStack() as stack:
        given = msgspec.structs.replace(given, environ=_alone(given.environ, stack))
        is_recording = bool(os.environ.get(VARIABLE)) and not path.exists() if record is None else record
        recorder = Recorder(_real(provider, given, stack), comparison) if is_recording else None
        replayer = Replayer(path, comparison) if recorder is None else None
        keys = _keys(replayer.exchanges) if replayer is not None else {}
        opening = open_program(
            "memory:",
            directory=place.directory,
            config=merged([{"timezone": "UTC"}, keys, config or {}]),
            tools=tools,
            components=components,
            agents=agents,
            settings=msgspec.structs.replace(
                given, transport=recorder.provider if recorder is not None else lambda endpoint: replayer
            ),
            mint=Mint.fixed(step_ms=1),
        )
        try:
            yield await stack.enter_async_context(opening)
        except Exception:
            if replayer is not None and replayer.problem:
                replayer.check()  # The difference explains more than the exception that it caused.
            raise
    if recorder is not None:
        recorder.save(path)
    if replayer is not None:
        replayer.check()


def _real(provider: Provider | None, settings: Settings, stack: AsyncExitStack) -> "Callable[[Endpoint], Provider]":
    """The transport that is recorded."""
    if provider is not None:
        return lambda endpoint: provider
    if settings.transport is not None:
        return settings.transport
    network = Network(settings.environ)
    stack.push_async_callback(network.aclose)
    return network.provider


def _alone(environ: Mapping[str, str], stack: AsyncExitStack) -> dict[str, str]:
    """The environment without the user's settings and instructions, which other machines do not have; keys stay."""
    home = stack.enter_context(TemporaryDirectory(prefix="turnkeeper-recorded-"))
    data = {paths.DATA_VARIABLE: str(paths.data(environ))}
    kept = {name: value for name, value in environ.items() if name not in _USERS}
    return {**kept, **data, "HOME": home, "XDG_CONFIG_HOME": str(Path(home) / "config")}


def _keys(exchanges: Sequence[Exchange]) -> JsonObject:
    """Settings with dummy keys, so that no key is needed to replay."""
    models = (one.request.get("model") for one in exchanges)
    providers = {str(model["providerID"]) for model in models if isinstance(model, dict) and "providerID" in model}
    return {"provider": {name: {"options": {"apiKey": "replayed"}} for name in sorted(providers)}}


def _named(model: ModelInfo) -> ModelInfo:
    """A model with only the fields that matter for a request: no prices, for example."""
    return ModelInfo(provider_id=model.provider_id, id=model.id, name="", api_id=model.api_id, protocol=model.protocol)


def _problem(session: str, expected: Exchange | None, given: JsonObject) -> str:
    if expected is None:
        return f"a request of {session} was not recorded:\n{difference({}, given)}"
    return f"a request of {session} differs from the recorded one:\n{difference(expected.request, given)}"


def difference(recorded: JsonObject, given: JsonObject) -> str:
    """The difference of two requests, line by line."""
    before, after = (
        msgspec.json.format(msgspec.json.encode(one), indent=2).decode().replace("\\n", "\n").splitlines()
        for one in (recorded, given)
    )
    lines = list(unified_diff(before, after, "recorded", "now", lineterm="", n=2))
    more = [f"... and {len(lines) - DIFFERENCE_LINES_MAX} lines more"] if len(lines) > DIFFERENCE_LINES_MAX else []
    return "\n".join([*lines[:DIFFERENCE_LINES_MAX], *more])
