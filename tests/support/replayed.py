"""An answer read by the project: its bytes through parser, reader and Scribe, to the parts of a message."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import msgspec

from turnkeeper.core.transcribe import Scribe, ScribeOutput
from turnkeeper.core.usage import step_tokens
from turnkeeper.model.event import PartRecorded
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Delta
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.stream import Start, StartStep
from turnkeeper.providers import codec_of
from turnkeeper.providers.sse import SseParser
from turnkeeper.testing.builders import NOW, an_assistant

TURN = an_assistant("ses_one", "msg_1", "msg_0")


@dataclass
class Replayed:
    """The parts of an answer, and what the Scribe knows of it beside them."""

    parts: list[Part]
    deltas: dict[str, str]
    scribe: Scribe
    message: AssistantMessage

    def texts(self, kind: type[TextPart] | type[ReasoningPart]) -> str:
        """All text of one kind."""
        return "".join(part.text for part in self.parts if isinstance(part, kind))

    @property
    def calls(self) -> list[ToolPart]:
        """The calls that the project runs."""
        return [part for part in self.parts if isinstance(part, ToolPart) and part.provider is None]

    @property
    def hosted(self) -> list[ToolPart]:
        """The calls that the provider ran, and its items of other kinds."""
        return [part for part in self.parts if isinstance(part, ToolPart) and part.provider is not None]

    @property
    def files(self) -> list[FilePart]:
        """Files that the model made."""
        return [part for part in self.parts if isinstance(part, FilePart)]

    @property
    def strings(self) -> str:
        """Every string that is kept, in one."""
        return "\0".join(_strings(msgspec.to_builtins(self.parts)))

    @property
    def tokens(self) -> tuple[int, int] | None:
        """Tokens in and out, all kinds together."""
        if self.scribe.usage is None:
            return None
        metadata = self.scribe.finish.metadata if self.scribe.finish is not None else None
        tokens = step_tokens(self.scribe.usage, metadata)
        return tokens.input + tokens.cache.read + tokens.cache.write, tokens.output + tokens.reasoning


def replay(protocol: str, provider_id: str, chunks: Sequence[bytes]) -> Replayed:
    """Read a stream that comes in these chunks."""
    reader, parser, numbers = codec_of(protocol).Reader(provider_id), SseParser(), count(1)
    scribe = Scribe(TURN, "/prj", lambda: f"prt_{next(numbers)}")
    acts: list[ScribeOutput] = list(scribe.feed([Start(), StartStep()], NOW))
    for chunk in chunks:
        for name, data in parser.feed(chunk):
            acts += scribe.feed(reader.feed(name, data), NOW)
    acts += scribe.feed(reader.end(parser.end()), NOW)
    acts += scribe.close(NOW)
    parts: dict[str, Part] = {}
    deltas: dict[str, str] = {}
    for act in acts:
        match act:
            case PartRecorded(part=part):
                parts[part.id] = part
            case Delta(part_id=part_id, delta=text):
                deltas[part_id] = deltas.get(part_id, "") + text
            case _:
                pass
    return Replayed(list(parts.values()), deltas, scribe, TURN)


def cut(stream: bytes, seed: str) -> list[bytes]:
    """A stream in pieces of random length."""
    chance, pieces, start = random.Random(seed), [], 0
    while start < len(stream):
        end = start + chance.choice((1, 2, 5, 30, 200, 1500, 5000))
        pieces.append(stream[start:end])
        start = end
    return pieces


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for one in value.values():
                yield from _strings(one)
        case list() | tuple():
            for one in value:
                yield from _strings(one)
