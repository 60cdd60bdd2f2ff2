"""Damaged documents: the error that names one, and context managers that raise it or collect its name."""

from contextlib import AbstractContextManager
from typing import TypeAlias

import msgspec

from turnkeeper.model.value import UNREADABLE
from turnkeeper.store.engine import Key

__all__ = ["UNREADABLE", "DamagedDocument", "DamagedNames", "reading", "skipping"]

DamagedNames: TypeAlias = list[str]
"""The names of documents that a reader left out or found altered."""


class DamagedDocument(msgspec.ValidationError):
    """A document that cannot be read. ``name`` is its key, joined with slashes."""

    def __init__(self, name: str, reason: object) -> None:
        super().__init__(f"{name} cannot be read ({reason}); `turnkeeper doctor --fix` writes it again from the log")
        self.name = name


class skipping:  # noqa: N801 - It is used like ``contextlib.suppress``.
    """If decoding fails inside, add the key to the list and go on; without a list, raise DamagedDocument."""

    def __init__(self, key: Key, damaged: DamagedNames | None) -> None:
        self._key, self._damaged = key, damaged

    def __enter__(self) -> None:
        """Nothing is held."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> bool:
        """Suppress the error, or raise DamagedDocument."""
        if not isinstance(error, UNREADABLE) or (self._damaged is None and isinstance(error, DamagedDocument)):
            return False
        found = error if isinstance(error, DamagedDocument) else DamagedDocument("/".join(self._key), error)
        if self._damaged is None:
            raise found from error
        self._damaged.append(found.name)
        return True


def reading(key: Key) -> AbstractContextManager[None]:
    """Raise DamagedDocument for the document under this key if decoding fails inside."""
    return skipping(key, None)
