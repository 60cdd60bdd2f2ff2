"""Rows of a query as tuples of known types. The type checker cannot read SQL: the caller names the types."""

from collections.abc import Iterable
from typing import TypeVar, cast

import apsw

T = TypeVar("T")


def rows(shape: type[T], found: Iterable[object]) -> Iterable[T]:
    """The rows of a query: ``rows(tuple[int, bytes], cursor)``."""
    return cast("Iterable[T]", found)


def first_row(shape: type[T], found: apsw.Cursor) -> T | None:
    """The first row of a query; None if it has none."""
    return cast("T | None", found.fetchone())
