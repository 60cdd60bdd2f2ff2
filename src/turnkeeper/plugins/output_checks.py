"""Checks of outputs whose types are right: values that no provider and no session accepts are errors of the plugin.

Each check raises Invalid.
"""

import re
from typing import Final

from turnkeeper.model.message import model_choice
from turnkeeper.model.refusal import Invalid
from turnkeeper.plugins import payloads as p

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")


def nothing(output: p.Output) -> None:
    """No check: any value of the type is accepted."""


def headers(output: p.HeadersOutput) -> None:
    """Header names and values are valid in HTTP."""
    for name, value in output.headers.items():
        if _NAME.fullmatch(name) is None:
            raise Invalid(f"{name!r:.80} cannot name a header")
        if _VALUE.fullmatch(value) is None:
            raise Invalid(f"the header {name!r:.80} has a character that HTTP does not have")


def params(output: p.ParamsOutput) -> None:
    """The limit allows at least one token."""
    if output.max_output_tokens is not None and output.max_output_tokens < 1:
        raise Invalid(f"max_output_tokens is {output.max_output_tokens}, and an answer has at least one token")


def message(output: p.ChatMessageOutput) -> None:
    """A message has at least one part."""
    if not output.parts:
        raise Invalid("a message has at least one part")


def command(output: p.CommandBeforeOutput) -> None:
    """A prompt has at least one part."""
    if not output.parts:
        raise Invalid("a prompt has at least one part")


def small_model(output: p.SmallModelOutput) -> None:
    """The model, if given, is named as ``provider/model``."""
    if output.model is not None:
        model_choice(output.model)
