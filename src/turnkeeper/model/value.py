"""Value: the base of every word in the system. Frozen, compared by content, camelCase on the wire."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar, dataclass_transform

import msgspec

Json: TypeAlias = object
"""Any JSON value: whatever a tool, a provider or a plugin put there. We keep it and never look inside."""

JsonObject: TypeAlias = Mapping[str, object]

V = TypeVar("V", bound="Value")
T = TypeVar("T")

Private: TypeAlias = Annotated[T, msgspec.Meta(extra={"private": True})]
"""A field that only we keep: it is stored, and left out of what clients are sent (server/public.py)."""


def wire_name(name: str) -> str:
    """How a field is spelt on the wire: ``session_id`` is ``sessionID``, ``retry_count`` is ``retryCount``."""
    first, *rest = name.split("_")
    return first + "".join("ID" if word == "id" else word.capitalize() for word in rest)


class _ValueMeta(msgspec.StructMeta):
    """Makes every field keyword-only: msgspec would ask each class to say so again. ``Any`` is msgspec's own."""

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **config: Any) -> "_ValueMeta":
        config.setdefault("kw_only", True)
        return super().__new__(mcls, name, bases, namespace, **config)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, metaclass=_ValueMeta, frozen=True, omit_defaults=True, rename=wire_name, gc=False):
    """Base class. A field whose default is None is left out of the JSON when it is None.

    The garbage collector does not look at values: frozen, they cannot hold each other in a circle, and a history has
    tens of thousands of them.
    """

    if TYPE_CHECKING:

        def but(self: V, **changes: object) -> V:
            """The same value with some fields changed."""

    else:
        but = msgspec.Struct.__replace__  # Itself, for a function around it costs five times what it does.


encode: Final[Callable[[object], bytes]] = msgspec.json.Encoder().encode
"""A value as compact JSON."""

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""What decoding stored bytes may raise: they are not JSON, not of this shape, not text, or nested too deeply."""
