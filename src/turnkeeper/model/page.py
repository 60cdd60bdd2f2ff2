"""Page: a bounded piece of a list."""

from typing import Generic, TypeVar

from turnkeeper.model.value import Value

T = TypeVar("T")


class Page(Value, Generic[T]):
    """Some items in order. ``older`` and ``newer`` are cursors to the neighbouring pages; None where there is none."""

    items: tuple[T, ...]
    older: str | None = None
    newer: str | None = None
    damaged: tuple[str, ...] = ()
    """Names of documents that belong here and cannot be read."""
