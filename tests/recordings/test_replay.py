"""Recorded answers of real providers, read by the project, say what a straight walk over their JSON finds."""

import functools
from random import Random

import pytest
from expected import UNREADABLE, Expected, expected
from recorded import Recording, needs_recordings, of_kind
from replayed import Replayed, cut, replay
from streams import stream_of

from turnkeeper.model.failure import ApiFailure
from turnkeeper.model.parts import ReasoningPart, TextPart
from turnkeeper.providers import PROVIDERS

pytestmark = needs_recordings

TRIMMED = "its pieces were shortened by hand, the whole text at the end was not: the pieces are what is read"
LEFT = {"sse-0286": TRIMMED, "sse-0292": TRIMMED}
"""Recordings that are not read as they should be, with the reason. A recording that is read well must not be here.

``replay.py`` of the recordings counts 17 others, which are read as the walk here expects:

- json-0830, json-0834, json-0888, json-0889, json-0893, json-0896, sse-0156, sse-0167: what stands between think tags
  is reasoning here, and text there.
- sse-0135, sse-0136, sse-0137, sse-0141: the pieces of a call make one call here, and each is a call there. We never
  ask for calls in pieces.
- sse-0075, sse-0076: a compaction and a change of model by the provider are parts of their own here; there they are
  looked for under other names. We never ask for them.
- x-json-0632, x-json-0633: the reason 1 is ``STOP`` by its number, and an unknown word there.
- json-1139: what is noted about a file has a hash, and is looked for as an address there.
"""


@functools.cache
def streams(protocol: str) -> list[tuple[Recording, bytes]]:
    """The recordings of a protocol with their streams."""
    found = ((one, stream_of(one)) for one in of_kind("sse", "json") if one.protocol == protocol)
    return [(one, stream) for one, stream in found if stream is not None]


def differences(wanted: Expected, got: Replayed) -> dict[str, object]:
    """Where what was read is not what the JSON says."""
    if wanted.is_error or got.scribe.failure is not None:
        noticed = got.scribe.failure is not None
        return {} if noticed == wanted.is_error else {"failure": (wanted.is_error, got.scribe.failure)}
    pairs: dict[str, tuple[object, object]] = {
        "text": (wanted.text, got.texts(TextPart)),
        "reasoning": (wanted.reasoning, got.texts(ReasoningPart)),
        "calls": (wanted.calls, calls(wanted, got)),
        "hosted": (True, len(got.hosted) >= wanted.hosted),
        "files": (wanted.files, len(got.files)),
        "kept": ([], [one for one in wanted.kept if one not in got.strings]),
        "finish": (wanted.finish, got.scribe.finish.reason if got.scribe.finish is not None else None),
        "usage": (wanted.usage, got.tokens if wanted.usage is not None else None),
        "deltas": ([], [part.id for part in got.parts if part.id in got.deltas and got.deltas[part.id] != part.text]),  # type: ignore[union-attr] # Only texts have deltas.
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def calls(wanted: Expected, got: Replayed) -> list[object]:
    """The calls that were read; an id that the project made up and an input that nobody can read count as wanted."""
    found: list[object] = []
    for index, part in enumerate(got.calls):
        call_id, _, given = wanted.calls[index] if index < len(wanted.calls) else (part.call_id, "", {})
        found.append(
            (call_id and part.call_id, part.tool, UNREADABLE if given == UNREADABLE else dict(part.state.input))
        )
    return found


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_an_answer_says_what_its_json_says(protocol: str) -> None:
    wrong = {
        one.id: found
        for one, stream in streams(protocol)
        if (found := differences(expected(protocol, stream), replay(protocol, one.family, [stream])))
    }
    left = {one.id for one, _ in streams(protocol)} & LEFT.keys()
    assert {name: found for name, found in wrong.items() if name not in LEFT} == {}
    assert left - wrong.keys() == set(), "these are read well now; take them off the list"


def same(one: Replayed, other: Replayed) -> bool:
    return (one.parts, one.scribe.finish, _code(one)) == (other.parts, other.scribe.finish, _code(other))


def _code(got: Replayed) -> object:
    """The kind of a failure; its text quotes the stream."""
    failure = got.scribe.failure
    return failure and (type(failure), getattr(failure.data, "metadata", None))


NEWS = {
    "anthropic": b'event: news\ndata: {"type":"news","index":99,"value":[1]}\n\n',
    "openai-chat": b'data: {"object":"news","value":[1]}\n\n',
    "openai-responses": b'data: {"type":"response.news","item_id":"x","value":[1]}\n\n',
    "gemini": b'data: {"news":[1]}\n\n',
}


def disguised(protocol: str, stream: bytes) -> list[bytes]:
    """The same answer with other line ends, comments, and an event of a kind that is not invented yet."""
    plain = stream.replace(b"\r\n", b"\n")
    begin, mark, end = plain.partition(b"\n\n")
    return [
        plain.replace(b"\n", b"\r\n"),
        plain.replace(b"\n\n", b"\n\n: ping\n\n"),
        begin + mark + NEWS[protocol] + end,
    ]


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_an_answer_does_not_depend_on_how_it_is_cut_and_framed(protocol: str) -> None:
    wrong = []
    for one, stream in streams(protocol):
        plain = replay(protocol, one.family, [stream])
        versions = [cut(stream, one.id), *([version] for version in disguised(protocol, stream))]
        if not all(same(plain, replay(protocol, one.family, version)) for version in versions):
            wrong.append(one.id)
    assert wrong == []


@pytest.mark.parametrize("protocol", PROVIDERS)
def test_an_answer_that_breaks_off_is_whole_or_may_be_tried_again(protocol: str) -> None:
    wrong = []
    for one, stream in streams(protocol):
        scribe = replay(protocol, one.family, [stream[: Random(one.id).randrange(1, len(stream))]]).scribe
        is_retryable = isinstance(scribe.failure, ApiFailure) and scribe.failure.data.is_retryable
        if scribe.finish is None and not is_retryable and not expected(protocol, stream).is_error:
            wrong.append(one.id)
    assert wrong == []
