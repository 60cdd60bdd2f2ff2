"""The context window: estimates the size of a request, and decides whether it is too large."""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from turnkeeper.core import flags
from turnkeeper.model.catalog import Limits
from turnkeeper.model.config import CompactionConfig
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.request import AssistantTurn, Media, ModelMessage, SystemTurn, ToolTurn, UserTurn
from turnkeeper.model.session import Tokens
from turnkeeper.model.value import Value, encode

CHARS_PER_TOKEN: Final = 4
OUTPUT_MAX: Final = 32_000
"""Tokens that are reserved for an answer, at most."""
RESERVED: Final = 20_000
"""Tokens kept free below a model's limit for its input."""
CERTAINLY: Final = 2
"""A request whose estimate is this many times the limit is not sent."""
IMAGE_TOKENS: Final = 1_600
"""The tokens that providers count for an image of the largest size they accept."""
FILE_CHARS_PER_TOKEN: Final = 40
"""Estimate for other media: base64 characters of a PDF for each token of its text."""

PruneMode: TypeAlias = Literal["never", "pays", "always"]


class Window(Value):
    """The settings of the context window."""

    auto: bool = True
    prune: PruneMode = "pays"
    reserved: int | None = None
    """Tokens reserved for an answer; None for the default."""
    output_max: int = OUTPUT_MAX
    tail_turns: int | None = None
    preserve_recent_tokens: int | None = None
    max_tokens: int | None = None
    max_messages: int | None = None


def window(config: CompactionConfig, environ: Mapping[str, str]) -> Window:
    """The settings of a directory; environment variables override them."""
    prune: PruneMode = "never" if config.prune is False else "always" if config.prune == "always" else "pays"
    return Window(
        auto=config.auto is not False and not flags.DISABLE_AUTOCOMPACT.is_on(environ),
        prune="never" if flags.DISABLE_PRUNE.is_on(environ) else prune,
        reserved=config.reserved,
        output_max=flags.OUTPUT_TOKEN_MAX.number(environ) or OUTPUT_MAX,
        tail_turns=config.tail_turns,
        preserve_recent_tokens=config.preserve_recent_tokens,
        max_tokens=config.max_tokens,
        max_messages=config.max_messages,
    )


def estimate(text: str) -> int:
    """An estimate of the tokens of a text: a quarter of its characters, halves rounded up."""
    return tokens_of(len(text))


def tokens_of(chars: int) -> int:
    """An estimate of the tokens of so many characters."""
    return (chars + CHARS_PER_TOKEN // 2) // CHARS_PER_TOKEN


def chars_of(message: ModelMessage, encoded: bytes | None = None) -> int:
    """The size of a message in characters. Media count by estimated tokens, not by their bytes."""
    size = len(encoded if encoded is not None else encode(message))
    return size + sum(_seen(one) - len(one.data or "") for one in _media(message))


def output_room(limits: Limits, settings: Window) -> int:
    """Tokens of the window to reserve for an answer; a limit of 0 is unknown."""
    return min(limits.output, settings.output_max) or settings.output_max


def answer_max(limits: Limits, settings: Window) -> int | None:
    """Tokens that an answer may have; None if the model's limits are unknown, so that the provider decides."""
    if not limits.output and not limits.context:
        return None
    room = output_room(limits, settings)
    return min(room, limits.context // 2) if limits.context else room


def exceeds(count: int, limits: Limits) -> bool:
    """Whether a request is certainly too large: ``count``, an estimate, is more than CERTAINLY times the limit."""
    most = limits.input or limits.context
    return bool(most) and count > CERTAINLY * most


def usable(limits: Limits, settings: Window) -> int | None:
    """Tokens that a request may have; None if unknown."""
    room = output_room(limits, settings)
    if limits.input:
        reserved = settings.reserved if settings.reserved is not None else min(RESERVED, room)
        return max(0, limits.input - reserved)
    if not limits.context:
        return None
    if settings.reserved is not None:
        room = settings.reserved
    # The output limit of a small model may be its whole window: half is left for the request.
    return max(0, limits.context - min(room, limits.context // 2))


def used(tokens: Tokens) -> int:
    """The tokens of a turn, as the provider counted them."""
    return tokens.total or (tokens.input + tokens.output + tokens.cache.read + tokens.cache.write)


def overflows(count: int, messages: int, limits: Limits, settings: Window) -> bool:
    """Whether a request must be made smaller before it is sent."""
    if not settings.auto:
        return False
    if settings.max_tokens is not None and count > settings.max_tokens:
        return True
    if settings.max_messages is not None and messages > settings.max_messages:
        return True
    room = usable(limits, settings)
    return room is not None and count >= room


class Gauge:
    """Estimates the size of a growing conversation. The usage that a provider reports replaces the estimate."""

    def __init__(self) -> None:
        self.chars = 0
        self._report = (0, 0, 0)

    def add(self, chars: int) -> None:
        """Add characters to the conversation."""
        self.chars += chars

    def report(self, message: AssistantMessage, at: int) -> None:
        """Take the usage of a turn, which counts the first ``at`` characters: results of its calls follow them."""
        if message.finish is not None and message.error is None and not message.summary and used(message.tokens):
            self._report = (message.seq, used(message.tokens), at)

    def tokens(self, around: int, since: int) -> int:
        """The tokens of the next request. ``around`` are the characters of system and tools.

        A report from before event ``since`` is ignored: the history was changed there.
        """
        seq, counted, at = self._report
        if counted and seq > since:
            return counted + tokens_of(self.chars - at)
        return tokens_of(around + self.chars)


def _seen(media: Media) -> int:
    if media.mime.startswith("image/"):
        return IMAGE_TOKENS * CHARS_PER_TOKEN
    return len(media.data or "") * CHARS_PER_TOKEN // FILE_CHARS_PER_TOKEN


def _media(message: ModelMessage) -> list[Media]:
    match message:
        case UserTurn(content=content):
            return [one for one in content if isinstance(one, Media)]
        case ToolTurn(results=results):
            return [one for result in results for one in result.output if isinstance(one, Media)]
        case AssistantTurn() | SystemTurn():
            return []
