"""Cursor: an opaque place in a list."""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import TypeVar

import msgspec

from turnkeeper.core.limits import PAGE_MAX
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Value, encode

P = TypeVar("P", bound=Value)


def cursor(place: Value) -> str:
    """A place in a list as an opaque string."""
    return urlsafe_b64encode(encode(place)).rstrip(b"=").decode()


def place_of(text: str, kind: type[P]) -> P:
    """The place of a cursor. Raises Invalid if the text is not a cursor."""
    try:
        return msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)), type=kind)
    except (ValueError, TypeError, RecursionError) as error:  # binascii.Error and msgspec.MsgspecError are ValueErrors.
        raise Invalid(f"{text!r:.200} is not a cursor; leave it out to begin at the newest") from error


def check_limit(limit: object) -> int:
    """A page size, at most PAGE_MAX. Raises Invalid."""
    if not isinstance(limit, int):
        raise Invalid(f"a page size is a whole number, not {limit!r}")
    if limit < 1:
        raise Invalid(f"a page holds at least one item, not {limit}")
    return min(limit, PAGE_MAX)
