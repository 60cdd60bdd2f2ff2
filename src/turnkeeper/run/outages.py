"""Work that outlives an outage of the store: it is retried until the store takes it."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from turnkeeper.core.limits import RELEASE_RETRY_S
from turnkeeper.store.engine import StoreDamaged, StoreUnavailable

T = TypeVar("T")


async def once_stored(work: Callable[[], Awaitable[T]], sleep: Callable[[float], Awaitable[None]]) -> T:
    """The result of work, which is retried while the store is away. A damaged store is not tried again.

    An outage that is longer than the lease of the session stops the session, and this work with it.
    """
    while True:
        try:
            return await work()
        except StoreDamaged:
            raise
        except StoreUnavailable:
            await sleep(RELEASE_RETRY_S)
