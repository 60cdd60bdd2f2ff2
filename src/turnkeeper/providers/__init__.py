"""Providers: one codec a wire protocol. A new one is a module here and a line in PROVIDERS.

``http.HttpProvider`` sends requests and reads streams; a codec says what they look like. Codecs are imported when
they are first used: nobody pays for a protocol that is not spoken.
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
"""The wire protocols we speak, by the name a model's catalogue entry gives."""


def codec_of(protocol: str) -> "Codec":
    """The codec of a protocol. Raises Invalid, and names those there are."""
    if protocol not in PROVIDERS:
        raise Invalid(f"there is no protocol {protocol!r}; known are {', '.join(sorted(PROVIDERS))}")
    return PROVIDERS[protocol]()
