"""A model with a context window: it counts the tokens of a request, refuses a long one, and writes summaries.

It is for tests of long sessions. Its answers depend only on the request, so they are equal before and after a crash.
"""

import re
from collections.abc import AsyncGenerator, Callable, Sequence

import anyio.lowlevel

from turnkeeper.context.texts import text
from turnkeeper.core.window import chars_of, tokens_of
from turnkeeper.model import stream as s
from turnkeeper.model.failure import OverflowData, OverflowFailure
from turnkeeper.model.request import ModelRequest, Text, ToolTurn, UserTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.model.value import JsonObject, Value, encode

TOO_LONG = OverflowFailure(data=OverflowData(message="prompt is too long"))


class WindowedTurn(Value):
    """The answer of the model in a turn: a text, and calls of a tool."""

    text: str = ""
    tool: str = ""
    calls: tuple[JsonObject, ...] = ()


class Windowed:
    """A Provider with a context window of ``context`` tokens.

    ``answers`` gets the newest text of the user and the tool results after it. ``summarises`` gets the text of a
    request for a Summary, and by default writes a valid one.
    """

    def __init__(
        self,
        context: int,
        answers: Callable[[str, ToolTurn | None], WindowedTurn],
        summarises: Callable[[str], WindowedTurn] | None = None,
    ) -> None:
        self.context, self._answers, self._summarises = context, answers, summarises or honest
        self.requests: list[ModelRequest] = []
        self.sizes: list[int] = []
        """The tokens of each request, also of those for Summaries."""
        self.refused = 0
        self.summaries = 0

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Stream an answer, or the failure of a request that is too long."""
        size = size_of(request)
        self.sizes.append(size)
        self.requests = [*self.requests[-1:], request]
        await anyio.lowlevel.checkpoint()
        if size > self.context:
            self.refused += 1
            yield [s.Start(), s.StreamError(failure=TOO_LONG)]
            return
        yield [s.Start(), s.StartStep()]
        said = self._said(request)
        if said.text:
            yield [s.TextStart(id="t"), s.TextDelta(id="t", text=said.text), s.TextEnd(id="t")]
        for number, given in enumerate(said.calls):
            name, raw = f"call_{len(self.sizes)}_{number}", encode(given).decode()
            yield [
                s.ToolInputStart(id=name, name=said.tool),
                s.ToolInputDelta(id=name, text=raw),
                s.ToolInputEnd(id=name),
                s.ToolCall(id=name, name=said.tool, input=given, raw=raw),
            ]
        usage = s.Usage(input=size, output=tokens_of(len(said.text)) + 20 * len(said.calls))
        yield [s.FinishStep(reason="tool-calls" if said.calls else "stop", usage=usage), s.Finish()]

    def _said(self, request: ModelRequest) -> WindowedTurn:
        if is_summary(request):
            self.summaries += 1
            return self._summarises(_words(request))
        last = request.messages[-1]
        return self._answers(_words(request), last if isinstance(last, ToolTurn) else None)


def is_summary(request: ModelRequest) -> bool:
    """Whether a request asks for a Summary."""
    return request.system == (text("compaction"),)


def size_of(request: ModelRequest) -> int:
    """The tokens of a request, by the estimate of the runtime."""
    around = len(encode(request.tools)) + sum(map(len, request.system))
    return tokens_of(around + sum(chars_of(message) for message in request.messages))


def honest(asked: str) -> WindowedTurn:
    """A short Summary with everything that the request demands."""
    request = re.search(r"<last-request>\n(.*?)\n</last-request>", asked, re.DOTALL)
    demanded = re.findall(r"^- (?:open task|plan|file): (.*)$", asked, re.MULTILINE)
    lines = ["## Objective", request[1] if request else "See below.", "", "## Work State", *demanded]
    return WindowedTurn(text="\n".join(lines))


def _words(request: ModelRequest) -> str:
    """The newest text of the user."""
    for message in reversed(request.messages):
        if isinstance(message, UserTurn):
            return "\n".join(part.text for part in message.content if isinstance(part, Text))
    return ""
