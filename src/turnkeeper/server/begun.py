"""Begun: what need not be waited for is had at once, without a clock that would end the waiting."""

from collections.abc import Awaitable, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Begun(Generic[T]):
    """Something to await, begun already. To await it goes on where it stopped, or gives what it gave."""

    def __init__(self, awaitable: Awaitable[T]) -> None:
        self._steps = awaitable.__await__()
        self._given: list[T] = []
        try:
            self._awaited: object = next(self._steps)
        except StopIteration as ended:
            self._given.append(ended.value)

    @property
    def is_done(self) -> bool:
        """Whether there was nothing to wait for."""
        return bool(self._given)

    def __await__(self) -> Generator[Any, Any, T]:  # As in typeshed: what is awaited is the event loop's own affair.
        if self._given:
            return self._given[0]
        awaited = self._awaited
        try:
            while True:
                try:
                    sent = yield awaited
                except BaseException as error:  # It must hear of a cancellation too.
                    awaited = self._steps.throw(error)
                else:
                    awaited = self._steps.send(sent)
        except StopIteration as ended:
            given: T = ended.value
            return given
