"""Registry: values under stable keys, registered for a scope. Leaving the scope removes them."""

from collections.abc import Iterator
from types import TracebackType
from typing import Generic, TypeVar

from turnkeeper.model.refusal import Conflict

T = TypeVar("T")


class DuplicateKey(Conflict):
    """A key is in use. Its registration must be closed before the key can be registered again."""


class Registration(Generic[T]):
    """A registered value. ``close``, or leaving the ``with`` block, removes it."""

    def __init__(self, registry: "Registry[T]", key: str, value: T) -> None:
        self.key, self.value = key, value
        self._registry = registry

    def close(self) -> None:
        """Remove the value. Closing again does nothing, even if the key was registered again."""
        self._registry._remove(self)

    def __enter__(self) -> T:
        return self.value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Registry(Generic[T]):
    """Values by key. ``noun`` names a value in error messages."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._registered: dict[str, Registration[T]] = {}

    def register(self, key: str, value: T) -> Registration[T]:
        """Add a value at once. Raises DuplicateKey if the key is in use."""
        if key in self._registered:
            raise DuplicateKey(f"a {self._noun} with the key {key!r} is already registered; choose another key")
        registration = self._registered[key] = Registration(self, key, value)
        return registration

    def __iter__(self) -> Iterator[T]:
        """The values in the order of their keys. An iteration is not changed by later registrations."""
        return iter([registration.value for _, registration in sorted(self._registered.items())])

    def _remove(self, registration: Registration[T]) -> None:
        if self._registered.get(registration.key) is registration:
            del self._registered[registration.key]
