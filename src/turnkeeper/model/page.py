"""Page: a bounded number of items of a list."""

from typing import Generic, TypeVar

from turnkeeper.model.value import Value

T = TypeVar("T")


class Page(Value, Generic[T]):
    """Items in order. ``older`` and ``newer`` are cursors of the neighbouring pages; None if there is none."""

    items: tuple[T, ...]
    older: str | None = None
    newer: str | None = None
    damaged: tuple[str, ...] = ()
    """Names of documents of this page that cannot be read."""
