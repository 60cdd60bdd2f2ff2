"""Opener: the process that opened a store. One that is forked from it has the store's values without its threads."""

import os

from turnkeeper.store.engine import StoreUnavailable


class Opener:
    """Remembers the process that makes it."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is still that process, and not one that was forked from it."""
        return os.getpid() == self._pid

    def check(self) -> None:
        """Raise StoreUnavailable in a forked process, where a call would wait for ever for a thread of the other."""
        if not self.is_here:
            raise StoreUnavailable(
                f"the store was opened in another process ({self._pid}) before a fork; open it again in this one"
            )
