"""Value: the base class of all values. Frozen, compared by content, camelCase on the wire."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias, TypedDict, TypeVar, Unpack, dataclass_transform

import msgspec

Json: TypeAlias = object
"""Any JSON value of a tool, a provider or a plugin."""

JsonObject: TypeAlias = Mapping[str, object]

V = TypeVar("V", bound="Value")
T = TypeVar("T")

Private: TypeAlias = Annotated[T, msgspec.Meta(extra={"private": True})]
"""A field that is stored and not sent to clients (server/public.py)."""


def wire_name(name: str) -> str:
    """The name of a field on the wire: ``session_id`` is ``sessionID``, ``retry_count`` is ``retryCount``."""
    first, *rest = name.split("_")
    return first + "".join("ID" if word == "id" else word.capitalize() for word in rest)


class _Config(TypedDict, total=False):
    """The options of msgspec that values use."""

    frozen: bool
    kw_only: bool
    omit_defaults: bool
    array_like: bool
    gc: bool
    rename: Callable[[str], str] | Mapping[str, str] | None
    tag: str | bool | None
    tag_field: str | None


class _ValueMeta(msgspec.StructMeta):
    """Makes the fields of all subclasses keyword-only; msgspec does not inherit ``kw_only``."""

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **config: Unpack[_Config]
    ) -> "_ValueMeta":
        config.setdefault("kw_only", True)
        return super().__new__(mcls, name, bases, namespace, **config)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, metaclass=_ValueMeta, frozen=True, omit_defaults=True, rename=wire_name, gc=False):
    """Base class. A field whose default is None is left out of the JSON when it is None.

    Values are not tracked by the garbage collector: frozen values form no cycles, and a history has tens of thousands.
    """

    if TYPE_CHECKING:

        def but(self: V, **changes: object) -> V:
            """A copy with some fields changed."""

    else:
        but = msgspec.Struct.__replace__  # A wrapper function would be five times slower.


encode: Final[Callable[[object], bytes]] = msgspec.json.Encoder().encode
"""A value as compact JSON."""

UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""The exceptions of decoding stored bytes: invalid JSON, another shape, invalid UTF-8, or nested too deeply."""
