"""Storable: checks that a value from a caller can be read again once it is written.

Depth is bounded because JSON decoders recurse, and refuse JSON that is nested too deeply.
"""

from collections.abc import Mapping
from math import isfinite
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
    depth = 0
    for bracket in _outside_strings(text).translate(None, _OTHERS):
        depth += 1 if bracket in _OPENING else -1
        if depth > most:
            return True
    return False


def has_too_many(json: bytes, most: int) -> bool:
    """Whether objects and arrays hold more than ``most`` items together in this JSON text. It counts the commas."""
    return json.count(b",") > most and _outside_strings(json).count(b",") > most


def _outside_strings(json: bytes) -> bytes:
    """A JSON text without its strings: once escapes are removed, every second piece between quotation marks is one."""
    return b"".join(json.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2])


def storable(value: object, kind: type[V], what: str, most: int = JSON_DEPTH_MAX) -> tuple[V, bytes]:
    """A caller's value as it will be read again, and its JSON. Raises Invalid, which names ``what``.

    Python checks no types, so a value may hold anything. It is refused unless JSON represents it exactly.
    """
    found = readable(value, kind, what, most)
    check_plain(value, what)
    return found


def readable(value: object, kind: type[V], what: str, most: int = JSON_DEPTH_MAX) -> tuple[V, bytes]:
    """A value as it will be read again, and its JSON, without ``check_plain``. Raises Invalid, which names ``what``."""
    try:
        text = encode(value)
        if not is_too_deep(text, most):
            return msgspec.json.decode(text, type=kind), text
    except UnicodeEncodeError as error:  # The name of a file is bytes, and those that are no text become surrogates.
        raise Invalid(f"{what} cannot be stored: {error.object!r:.300} is not UTF-8") from error
    except (TypeError, ValueError, OverflowError) as error:  # msgspec's and Unicode's errors are ValueErrors.
        raise Invalid(f"{what} cannot be stored: {error}") from error
    except RecursionError:
        pass
    raise Invalid(f"{what} is nested more than {JSON_DEPTH_MAX} deep; flatten it")


def check_plain(value: object, what: str) -> None:
    """Raise Invalid, which names ``what``, unless JSON represents all of a caller's value exactly.

    Bytes, NaN and keys that are not text would be stored as something else. The depth of the value must be bounded.
    """
    match value:
        case None | str() | bool() | int():
            return
        case float() if isfinite(value):
            return
        case msgspec.Struct():
            inner = [getattr(value, name) for name in value.__struct_fields__]
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise Invalid(f"{what} holds the key {key!r:.80}, and a key is text")
            inner = list(value.values())
        case list() | tuple():
            inner = list(value)
        case _:
            raise Invalid(
                f"{what} holds {value!r:.80}, which JSON does not have; give text, a number, a list or a dict"
            )
    for one in inner:
        check_plain(one, what)
