"""Providers: one codec for each wire protocol. A new one is a module here and a line in PROVIDERS.

``http.HttpProvider`` sends requests and reads streams; a codec serialises and parses them. A codec is imported on first
use, so that unused protocols add nothing to the start-up time.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from turnkeeper.model.refusal import Invalid

if TYPE_CHECKING:
    from turnkeeper.providers.codec import Codec


def _anthropic() -> "Codec":
    from turnkeeper.providers import anthropic

    return anthropic


def _openai_chat() -> "Codec":
    from turnkeeper.providers import openai_chat

    return openai_chat


def _openai_responses() -> "Codec":
    from turnkeeper.providers import openai_responses

    return openai_responses


def _gemini() -> "Codec":
    from turnkeeper.providers import gemini

    return gemini


PROVIDERS: Final[Mapping[str, Callable[[], "Codec"]]] = {
    "anthropic": _anthropic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "gemini": _gemini,
}
"""The codecs of the supported wire protocols, by the name in a model's catalogue entry."""


def codec_of(protocol: str) -> "Codec":
    """The codec of a protocol. Raises Invalid, which lists the supported protocols."""
    if protocol not in PROVIDERS:
        raise Invalid(f"there is no protocol {protocol!r}; known are {', '.join(sorted(PROVIDERS))}")
    return PROVIDERS[protocol]()
