"""Script: the answers of a fake model, built by chained calls. Played in process or over HTTP.

    Script().thinks("hm").calls("bash", command="ls").then().says("two files")

Each answer is a list of acts, played in order; ``then`` begins the next answer. A Gate blocks an answer until a test
opens it, so that tests need no sleeps.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, Self, TypeAlias

import anyio

from turnkeeper.core.failures import broken, http_failure
from turnkeeper.model.failure import Failure, OverflowData, OverflowFailure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import Usage
from turnkeeper.model.value import Json, encode

DEFAULT_USAGE: Final = Usage(input=10, output=5, total=15)
"""The usage of an answer without its own."""

WireFault: TypeAlias = Literal["garbage", "truncated", "scrambled", "duplicated"]


class Gate:
    """Blocks an answer at one act until a test opens it."""

    def __init__(self) -> None:
        self._reached = anyio.Event()
        self._opened = anyio.Event()

    def open(self) -> None:
        """Let the answer pass, now or later."""
        self._opened.set()

    async def wait_reached(self) -> None:
        """Wait until the answer has reached the gate."""
        await self._reached.wait()

    async def pass_through(self) -> None:
        """Wait until the gate is open. Called by the player of the script."""
        self._reached.set()
        await self._opened.wait()


@dataclass(frozen=True)
class Says:
    """Text, in these pieces."""

    pieces: tuple[str, ...]


@dataclass(frozen=True)
class Thinks:
    """Reasoning in these pieces, with an optional signature."""

    pieces: tuple[str, ...]
    signature: str | None


@dataclass(frozen=True)
class Calls:
    """A tool call. ``raw`` is its input, which may be invalid JSON. ``executed``: a hosted call with this output."""

    name: str
    raw: str
    id: str | None
    executed: bool = False
    output: Json = None


@dataclass(frozen=True)
class Waits:
    """The answer stops at a gate."""

    gate: Gate


@dataclass(frozen=True)
class Paces:
    """A pause in seconds before every following event."""

    seconds: float


@dataclass(frozen=True)
class Fails:
    """The answer fails."""

    failure: Failure


@dataclass(frozen=True)
class Hangs:
    """The answer sends nothing more and does not end."""


@dataclass(frozen=True)
class Cuts:
    """The connection is lost."""


@dataclass(frozen=True)
class Garbles:
    """The rest of the stream is damaged."""

    fault: WireFault


Act: TypeAlias = Says | Thinks | Calls | Waits | Paces | Fails | Hangs | Cuts | Garbles


@dataclass
class ScriptedAnswer:
    """The acts, usage and finish reason of one answer."""

    acts: list[Act] = field(default_factory=list)
    usage: Usage | None = DEFAULT_USAGE
    reason: str | None = None

    @property
    def finish(self) -> str:
        """The finish reason: the scripted one, else ``tool-calls`` or ``stop``."""
        calls = any(isinstance(act, Calls) and not act.executed for act in self.acts)
        return self.reason or ("tool-calls" if calls else "stop")


class Script:
    """A list of answers, one for each request."""

    def __init__(self) -> None:
        self._answers = [ScriptedAnswer()]
        self._given = 0
        self._repeats = False
        self._title: str | None = None

    # --- Writing it ---------------------------------------------------------------------------------------------

    def says(self, text: str, *, pieces: int | None = None) -> Self:
        """Text, word by word or in this many pieces of equal length."""
        return self._act(Says(_split(text, pieces)))

    def thinks(self, text: str, *, signature: str | None = "c2lnbmVk", pieces: int | None = None) -> Self:
        """Reasoning with a signature."""
        return self._act(Thinks(_split(text, pieces), signature))

    def calls(self, name: str, /, *, call_id: str | None = None, **arguments: Json) -> Self:
        """A tool call."""
        return self._act(Calls(name, encode(arguments).decode(), call_id))

    def calls_raw(self, name: str, raw: str, *, call_id: str | None = None) -> Self:
        """A tool call whose input is this text."""
        return self._act(Calls(name, raw, call_id))

    def runs(self, name: str, /, *, output: Json, call_id: str | None = None, **arguments: Json) -> Self:
        """A hosted tool call with its result."""
        return self._act(Calls(name, encode(arguments).decode(), call_id, executed=True, output=output))

    def usage(self, usage: Usage | None = None, /, **counts: int) -> Self:
        """The usage of this answer; None for an answer without usage."""
        self._answers[-1].usage = Usage(**counts) if counts else usage
        return self

    def finishes(self, reason: str) -> Self:
        """The finish reason of this answer: ``length``, ``content-filter``, ``pause`` and so on."""
        self._answers[-1].reason = reason
        return self

    def waits(self, gate: Gate) -> Self:
        """Stop here until the gate is opened."""
        return self._act(Waits(gate))

    def paces(self, seconds: float) -> Self:
        """Pause before every following event, so that people can watch."""
        return self._act(Paces(seconds))

    def fails(self, failure: Failure | int, *, message: str = "", headers: Mapping[str, str] | None = None) -> Self:
        """Fail with a failure, or with an HTTP status and these headers."""
        if isinstance(failure, int):
            body = encode({"error": {"message": message or f"scripted {failure}"}}).decode()
            failure = http_failure(failure, headers or {}, body, provider_id="scripted")
        return self._act(Fails(failure))

    def overflows(self) -> Self:
        """Fail because the request is larger than the context window."""
        return self._act(Fails(OverflowFailure(data=OverflowData(message="prompt is too long: 9 tokens > 8 maximum"))))

    def hangs(self) -> Self:
        """Send nothing more, and do not end."""
        return self._act(Hangs())

    def cuts(self) -> Self:
        """Lose the connection."""
        return self._act(Cuts())

    def garbles(self, fault: WireFault = "garbage") -> Self:
        """Damage the stream: broken JSON, a truncated end, events out of order, or duplicated events."""
        return self._act(Garbles(fault))

    def then(self) -> Self:
        """Begin the next answer."""
        self._answers.append(ScriptedAnswer())
        return self

    def forever(self) -> Self:
        """Repeat the last answer for all further requests."""
        self._repeats = True
        return self

    def titles(self, title: str) -> Self:
        """Answer requests for a title with this title, without using up an answer of the script."""
        self._title = title
        return self

    # --- Playing it ---------------------------------------------------------------------------------------------

    def take(self, *, is_title: bool = False) -> ScriptedAnswer:
        """The next answer. A script without another answer is an error in the test."""
        if is_title and self._title is not None:
            return ScriptedAnswer([Says(_split(self._title, None))])
        if self._repeats and self._given >= len(self._answers):
            return self._answers[-1]
        assert self._given < len(self._answers), f"the script has {len(self._answers)} answers; one more was asked for"
        self._given += 1
        return self._answers[self._given - 1]

    @property
    def is_over(self) -> bool:
        """Whether all answers were used."""
        return self._given >= len(self._answers)

    def _act(self, act: Act) -> Self:
        self._answers[-1].acts.append(act)
        return self


def lost_connection() -> Failure:
    """The failure of a lost connection."""
    return broken("The connection was lost.", code="ECONNRESET", is_retryable=True)


def nonsense(fault: WireFault) -> Failure:
    """The failure of a damaged stream."""
    if fault == "truncated":
        return broken("The answer ended before it was complete.", code="incomplete_stream", is_retryable=True)
    return broken(
        f"The stream cannot be understood: {fault}.", code="malformed_stream", is_retryable=fault == "garbage"
    )


def is_title(request: ModelRequest) -> bool:
    """Whether a request asks for a session's title."""
    return not request.tools and any("title" in text.lower() for text in request.system)


def _split(text: str, pieces: int | None) -> tuple[str, ...]:
    if pieces is None:
        # Each word keeps the space after it.
        words = text.split(" ")
        return tuple(each for each in [*(f"{word} " for word in words[:-1]), words[-1]] if each)
    size = max(1, -(-len(text) // pieces))
    return tuple(text[start : start + size] for start in range(0, len(text), size))
