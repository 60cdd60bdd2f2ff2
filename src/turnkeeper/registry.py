"""Registry: things under stable keys, registered for a scope. Leaving the scope removes them."""

from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Generic, TypeVar

from turnkeeper.model.refusal import Conflict

T = TypeVar("T")


class DuplicateKey(Conflict):
    """A key is taken. Whoever holds it must leave its scope before another may have it."""


class Registration(Generic[T]):
    """One thing's stay in a registry: until ``close``, or until its ``with`` block is left."""

    def __init__(self, registry: "Registry[T]", key: str, value: T) -> None:
        self.key, self.value = key, value
        self._registry = registry

    def close(self) -> None:
        """Remove the thing. Closing again does nothing, even if the key has a new holder by then."""
        self._registry._remove(self)

    def __enter__(self) -> T:
        return self.value

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class Registry(Generic[T]):
    """Built-in things in the order they were declared, then registered ones in the order of their keys.

    ``noun`` names what is kept, for error messages. Registering anew after leaving is how a plugin is
    reloaded; an iteration under way goes on over what was there when it began.
    """

    def __init__(self, noun: str, built_in: Iterable[tuple[str, T]] = ()) -> None:
        self._noun = noun
        self._built_in: dict[str, T] = {}
        self._registered: dict[str, Registration[T]] = {}
        for key, value in built_in:
            self._refuse_duplicate(key)
            self._built_in[key] = value

    def register(self, key: str, value: T) -> Registration[T]:
        """Add a thing at once and return its scope, to enter or close; DuplicateKey if the key is taken."""
        self._refuse_duplicate(key)
        registration = self._registered[key] = Registration(self, key, value)
        return registration

    def get(self, key: str) -> T | None:
        """The thing under a key, if there is one."""
        registration = self._registered.get(key)
        return registration.value if registration is not None else self._built_in.get(key)

    def items(self) -> list[tuple[str, T]]:
        """Keys and things, in order."""
        registered = sorted(self._registered.items())
        return [*self._built_in.items(), *((key, registration.value) for key, registration in registered)]

    def __iter__(self) -> Iterator[T]:
        return iter([value for _, value in self.items()])

    def __contains__(self, key: object) -> bool:
        return key in self._registered or key in self._built_in

    def __len__(self) -> int:
        return len(self._built_in) + len(self._registered)

    def _refuse_duplicate(self, key: str) -> None:
        if key in self:
            raise DuplicateKey(f"a {self._noun} with the key {key!r} is already registered; choose another key")

    def _remove(self, registration: Registration[T]) -> None:
        if self._registered.get(registration.key) is registration:
            del self._registered[registration.key]
