"""Opener: the process that opened a store. A forked process has the store's values without its threads."""

import os

from turnkeeper.store.engine import StoreUnavailable


class Opener:
    """The process that created this object."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    @property
    def is_here(self) -> bool:
        """Whether this is still that process, and not a fork of it."""
        return os.getpid() == self._pid

    def check(self) -> None:
        """Raise StoreUnavailable in a forked process, where a call would wait for ever for a missing thread."""
        if not self.is_here:
            raise StoreUnavailable(
                f"the store was opened in another process ({self._pid}) before a fork; open it again in this one"
            )
