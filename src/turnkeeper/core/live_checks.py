"""Live checks: requests to a real host that test its features, and the verdict on each answer."""

import base64
import struct
import zlib
from typing import Final, Literal, TypeAlias

from turnkeeper.core.next_action import STRUCTURED_TOOL
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import ApiFailure, Failure, words_of
from turnkeeper.model.request import Media, ModelRequest, Text, ToolDefinition, UserTurn
from turnkeeper.model.stream import ToolCall, Usage
from turnkeeper.model.value import Value

Check: TypeAlias = Literal["text", "usage", "tool call", "structured output", "image", "cache"]
Verdict: TypeAlias = Literal["ok", "failed", "not supported", "skipped"]

CHECKS: Final[tuple[Check, ...]] = ("text", "usage", "tool call", "structured output", "image", "cache")
SESSION: Final = "ses_live_check"
OUTPUT_TOKENS: Final = 200
THINKING_TOKENS: Final = 1200
"""The limit of an answer of a model that reasons, which counts as output."""
CACHED_TOKENS: Final = 4500
"""The tokens of the text that is cached: hosts cache nothing below 1,024 to 4,096 tokens."""
CACHED_TOKENS_DEAR: Final = 1500
DEAR: Final = 5.0
"""Dollars for a million input tokens above which the shorter text is sent."""
SMALL_REQUEST_TOKENS: Final = 400
WORDS_MAX: Final = 300

_CITY: Final = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
_SUM: Final = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
_UNSUPPORTED: Final = ("not support", "unsupported", "does not accept", "not available for this model")


class CheckAnswer(Value):
    """The answer to one request."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    failure: Failure | None = None


class CheckResult(Value):
    """The verdict on one check, and its explanation: the message of the host, if the host refused."""

    check: Check
    verdict: Verdict
    words: str = ""


def unsupported(check: Check, model: ModelInfo) -> str:
    """Why a check is not made, because the catalogue says that the model cannot do it; empty if it can."""
    if check in ("tool call", "structured output") and not model.tool_call:
        return "the catalogue says that the model calls no tools"
    if check == "image" and "image" not in model.modalities:
        return "the catalogue says that the model takes no images"
    return ""


def requests(check: Check, model: ModelInfo) -> tuple[ModelRequest, ...]:
    """The requests of a check, made one after the other. Equal models give equal requests."""
    match check:
        case "text":
            return (_request(model, Text(text="Answer with the one word: ready")),)
        case "usage":
            return ()  # It is a verdict on the answer to "text".
        case "tool call":
            tool = ToolDefinition(name="get_weather", description="The weather in a city.", schema=_CITY)
            asked = Text(text="Call get_weather for the city Bern. Write nothing else.")
            return (_request(model, asked).but(tools=(tool,)),)
        case "structured output":
            tool = ToolDefinition(name=STRUCTURED_TOOL, description="Takes your answer.", schema=_SUM)
            asked = Text(text="What is 17 + 25? Answer by calling the tool.")
            return (_request(model, asked).but(tools=(tool,), tool_choice="required"),)
        case "image":
            image = Media(mime="image/png", data=_red_png(), filename="check.png")
            return (_request(model, Text(text="Which colour has this image? Answer with one word."), image),)
        case "cache":
            long = _request(model, Text(text="Answer with the one word: ready")).but(system=(_long_text(model),))
            return (long, long)


def result(check: Check, answers: tuple[CheckAnswer, ...], model: ModelInfo) -> CheckResult:
    """The verdict on the answers to the requests of a check; for "usage" on the answer to "text"."""
    failure = next((one.failure for one in answers if one.failure is not None), None)
    if failure is not None:
        return _refused(check, failure)
    last = answers[-1]
    match check:
        case "text":
            return _judged(check, bool(last.text.strip()), f"it said {last.text.strip()!r}", "the answer has no text")
        case "usage":
            used = last.usage or Usage()
            counted = f"{used.input} tokens in, {used.output} out"
            return _judged(check, used.input > 0 and used.output > 0, counted, f"the host reports {counted}")
        case "tool call":
            is_right = any(one.name == "get_weather" and _member(one, "city") == "Bern" for one in last.calls)
            return _judged(check, is_right, "it called get_weather with Bern", _instead(last))
        case "structured output":
            is_right = any(one.name == STRUCTURED_TOOL and _member(one, "sum") == 42 for one in last.calls)
            return _judged(check, is_right, "the answer fits the schema", _instead(last))
        case "image":
            return _judged(check, "red" in last.text.lower(), "it saw a red image", _instead(last))
        case "cache":
            read = last.usage.cache_read if last.usage else 0
            if not read and not model.price.cache_read:
                words = "nothing was read from a cache, and the catalogue has no price for it"
                return CheckResult(check=check, verdict="not supported", words=words)
            said = "the second request read nothing from the cache, which may be chance"
            return _judged(check, read > 0, f"the second request read {read} tokens from the cache", said)


def estimate(model: ModelInfo) -> float:
    """The most that all checks cost, in dollars."""
    thinking = THINKING_TOKENS if model.reasoning else OUTPUT_TOKENS
    cached = max(model.price.cache_write, model.price.input) + model.price.input
    tokens_in = 4 * SMALL_REQUEST_TOKENS * model.price.input + _cached_tokens(model) * cached
    return (tokens_in + 6 * thinking * model.price.output) / 1_000_000


def _request(model: ModelInfo, *content: Text | Media) -> ModelRequest:
    return ModelRequest(
        model=model,
        system=("This is a check of the connection. Be brief.",),
        messages=(UserTurn(content=content),),
        output_max=THINKING_TOKENS if model.reasoning else OUTPUT_TOKENS,
        session_id=SESSION,
    )


def _refused(check: Check, failure: Failure) -> CheckResult:
    words = words_of(failure)[:WORDS_MAX]
    is_unsupported = (
        isinstance(failure, ApiFailure)
        and failure.data.status_code == 400
        and any(one in words.lower() for one in _UNSUPPORTED)
    )
    return CheckResult(check=check, verdict="not supported" if is_unsupported else "failed", words=words)


def _judged(check: Check, is_right: bool, right: str, wrong: str) -> CheckResult:
    words = right if is_right else wrong
    return CheckResult(check=check, verdict="ok" if is_right else "failed", words=words[:WORDS_MAX])


def _instead(answer: CheckAnswer) -> str:
    if answer.calls:
        return f"it called {answer.calls[0].name} with {answer.calls[0].input!r}"
    return f"it said {answer.text.strip()!r}" if answer.text.strip() else "the answer is empty"


def _member(call: ToolCall, name: str) -> object:
    return call.input.get(name) if isinstance(call.input, dict) else None


def _cached_tokens(model: ModelInfo) -> int:
    return CACHED_TOKENS_DEAR if model.price.input > DEAR else CACHED_TOKENS


def _long_text(model: ModelInfo) -> str:
    """A text of about as many tokens: a number of a line and six short words are about ten."""
    lines = (f"{number}. the wind turns at the coast" for number in range(1, _cached_tokens(model) // 9))
    return "These lines mean nothing; they are only to be cached.\n" + "\n".join(lines)


def _red_png(side: int = 64) -> str:
    """A red square as PNG in base64."""
    rows = (b"\x00" + b"\xff\x00\x00" * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()
