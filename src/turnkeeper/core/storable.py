"""Storable: what can be read again once it is written. Values from outside are checked before they are kept.

Depth is bounded because readers of JSON recurse: what is too deep for one of them could never be read again.
"""

from typing import Final, TypeVar

import msgspec

from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import encode

V = TypeVar("V")

_OTHERS: Final = bytes(sorted(set(range(256)) - set(b"[]{}")))
_OPENING: Final = frozenset(b"[{")


def is_too_deep(json: bytes | str, most: int = JSON_DEPTH_MAX) -> bool:
    """Whether objects and arrays are nested more than ``most`` deep in this JSON text."""
    text = json.encode("utf-8", "surrogatepass") if isinstance(json, str) else json
    if text.count(b"[") + text.count(b"{") <= most:
        return False
    # Without escapes, every second piece between quotation marks is a string.
    outside = b"".join(text.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])
    depth = 0
    for bracket in outside.translate(None, _OTHERS):
        depth += 1 if bracket in _OPENING else -1
        if depth > most:
            return True
    return False


def storable(value: object, kind: type[V], what: str, most: int = JSON_DEPTH_MAX) -> tuple[V, bytes]:
    """The value as it will be read again, and its JSON. Raises Invalid, which names ``what``, if it never could be.

    A caller may put anything into a value: Python checks no types. Only what the JSON says is kept.
    """
    try:
        text = encode(value)
        if not is_too_deep(text, most):
            return msgspec.json.decode(text, type=kind), text
    except (TypeError, ValueError, OverflowError) as error:  # msgspec's and Unicode's errors are ValueErrors.
        raise Invalid(f"{what} cannot be stored: {error}") from error
    except RecursionError:
        pass
    raise Invalid(f"{what} is nested more than {JSON_DEPTH_MAX} deep; flatten it")
