"""The Python interface for scripts without ``async``: the methods of Turnkeeper, each of which blocks.

One wrapper serves all methods. Their types are in ``blocking.pyi``, which ``scripts/blocking_stub.py`` writes.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial, wraps
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from anyio.from_thread import BlockingPortal

from turnkeeper.api.opener import Opener
from turnkeeper.api.streamed_answer import StreamedAnswer
from turnkeeper.api.turnkeeper import Turnkeeper
from turnkeeper.bus import Subscription
from turnkeeper.model.answer import Answer
from turnkeeper.store.engine import StoreUnavailable

T = TypeVar("T")

_END = object()
CLOSED: Final = "the store was closed; open it again"


class OpenLoop:
    """The event loop of an open store, in a thread of its own."""

    def __init__(self, portal: BlockingPortal) -> None:
        self._portal, self.is_closed = portal, False
        self._opener = Opener()

    def call(self, function: Callable[..., Awaitable[T] | T], *args: object) -> T:
        """Call a function on the loop and wait for its result.

        Raises StoreUnavailable when the store is closed, and in a process that was forked from the one that opened it.
        """
        self._opener.check()
        if self.is_closed:
            raise StoreUnavailable(CLOSED)
        return self._portal.call(function, *args)  # type: ignore[arg-type]  # Its parameters are not known here.

    def is_lost(self) -> bool:
        """Whether the thread of the loop is missing, because this process was forked from the one that opened it.

        If so, the portal is marked as stopped: a call that waits for it would wait for ever.
        """
        if self._opener.is_here:
            return False
        with suppress(StopIteration):
            self._portal.stop().send(None)  # It awaits nothing, and so needs no event loop.
        return True


class BlockingIterator(Generic[T]):
    """Iterates over what comes from the event loop. ``next`` blocks until there is something."""

    def __init__(self, loop: OpenLoop, items: AsyncIterator[T]) -> None:
        self._loop, self._items = loop, items

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> T:
        found: Any = self._loop.call(_next, self._items)
        if found is _END:
            raise StopIteration
        return found  # type: ignore[no-any-return]  # ``_next`` gives an item, or the end.


class BlockingSubscription(BlockingIterator[T]):
    """A subscription: ``with tk.subscribe() as notifications: for one in notifications``."""

    def __init__(self, loop: OpenLoop, items: Subscription[T]) -> None:
        super().__init__(loop, items)
        self._subscription = items

    def __enter__(self) -> Self:
        self._loop.call(self._subscription.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call(self._subscription.__aexit__, kind, error, traceback)

    def close(self) -> None:
        """Unsubscribe. What waits is still delivered, then the iterator ends."""
        self._loop.call(self._subscription.close)


class BlockingStreamedAnswer(BlockingIterator[str], Generic[T]):
    """The text of an answer as it comes, and the whole answer when it has ended.

    ``with tk.stream("...") as answer``: leaving the block before the end stops the turn.
    """

    def __init__(self, loop: OpenLoop, items: StreamedAnswer[T]) -> None:
        super().__init__(loop, items)
        self._stream = items

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call(self._stream.__aexit__, kind, error, traceback)

    @property
    def session_id(self) -> str:
        """The session of the answer. Raises Invalid before the first piece."""
        return self._stream.session_id

    @property
    def answer(self) -> Answer[T]:
        """The whole answer. Raises Invalid while there is more text to come."""
        return self._stream.answer

    def close(self) -> None:
        """Stop receiving. The session goes on."""
        self._loop.call(self._stream.aclose)


class BlockingTurnkeeper:
    """An open store with the methods of Turnkeeper. Threads may share it; methods run one after another on its loop."""

    def __init__(self, turnkeeper: Turnkeeper, loop: OpenLoop) -> None:
        self._turnkeeper, self._loop = turnkeeper, loop

    def _run(self, method: Callable[..., object], *args: object, **given: object) -> object:
        found = self._loop.call(_called, partial(method, self._turnkeeper, *args, **given))
        match found:
            case Subscription():
                return BlockingSubscription(self._loop, found)
            case StreamedAnswer():
                return BlockingStreamedAnswer(self._loop, found)
            case AsyncIterator():
                return BlockingIterator(self._loop, found)
            case _:
                return found


async def _called(method: Callable[[], object]) -> object:
    """The result of a method of any kind. It is called on the event loop, which its values belong to."""
    found = method()
    return await found if isinstance(found, Awaitable) else found


async def _next(items: AsyncIterator[object]) -> object:
    return await anext(items, _END)


def _blocking(method: Callable[..., object]) -> Callable[..., object]:
    @wraps(method)
    def blocking(self: BlockingTurnkeeper, *args: object, **given: object) -> object:
        return self._run(method, *args, **given)

    return blocking


for _name, _method in inspect.getmembers(Turnkeeper, inspect.isfunction):
    if not _name.startswith("_"):
        setattr(BlockingTurnkeeper, _name, _blocking(_method))
