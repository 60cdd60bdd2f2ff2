"""Stored documents that cannot be read: the error that names one, and the list that a tolerant reader fills."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec

from turnkeeper.model.value import UNREADABLE
from turnkeeper.store.engine import Key

__all__ = ["UNREADABLE", "DamagedDocument", "DamagedNames", "reading", "skipping"]

DamagedNames: TypeAlias = list[str]
"""The names of documents that a reader left out, or gave back although they are not what was written."""


class DamagedDocument(msgspec.ValidationError):
    """A document that cannot be read. ``name`` is its key as one word."""

    def __init__(self, name: str, reason: object) -> None:
        super().__init__(f"{name} cannot be read ({reason}); `turnkeeper doctor --fix` writes it again from the log")
        self.name = name


@contextmanager
def reading(key: Key) -> Iterator[None]:
    """Raise DamagedDocument for the document under this key if decoding fails inside."""
    try:
        yield
    except DamagedDocument:
        raise
    except UNREADABLE as error:
        raise DamagedDocument("/".join(key), error) from error


class skipping:  # noqa: N801 - It is used like ``contextlib.suppress``.
    """Like ``reading``, but with a list the name is added to it and the caller goes on."""

    def __init__(self, key: Key, damaged: DamagedNames | None) -> None:
        self._key, self._damaged = key, damaged

    def __enter__(self) -> None:
        """Nothing is held."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> bool:
        """Name what could not be read."""
        if not isinstance(error, UNREADABLE):
            return False
        found = error if isinstance(error, DamagedDocument) else DamagedDocument("/".join(self._key), error)
        if self._damaged is None:
            raise found from error
        self._damaged.append(found.name)
        return True
