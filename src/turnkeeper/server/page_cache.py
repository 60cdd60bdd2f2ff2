"""Page cache: encoded pages of message histories. A page is valid until its session's log grows.

Clients request one page many times: at each start, and whenever a user opens the session again.
"""

from collections import OrderedDict
from typing import Final, TypeAlias

import msgspec

from turnkeeper.server.service import Service

BYTES_MAX: Final = 16 * 1024 * 1024
"""Size of all pages together; the least recently used pages are dropped first."""
PAGE_BYTES_MAX: Final = BYTES_MAX // 4

PageKey: TypeAlias = tuple[str, int | None, str | None]
"""The session, the number of messages, and the cursor they are before."""


class CachedPage(msgspec.Struct, frozen=True):
    """The body of a response, and the cursor to older messages."""

    body: bytes
    older: str | None


class PageCache:
    """Pages by request, each with the hash of the log's head when the page was read."""

    def __init__(self, _: Service) -> None:
        self._pages: OrderedDict[PageKey, tuple[str, CachedPage]] = OrderedDict()
        self._bytes = 0

    def get(self, key: PageKey, head: str) -> CachedPage | None:
        """The page, if the log still has this head."""
        found = self._pages.get(key)
        if found is None:
            return None
        if found[0] != head:
            self._drop(key)
            return None
        self._pages.move_to_end(key)
        return found[1]

    def put(self, key: PageKey, head: str, page: CachedPage) -> None:
        """Store a page. ``head`` must be read before the page, so that a page is never newer than its head says."""
        if len(page.body) > PAGE_BYTES_MAX:
            return
        if key in self._pages:
            self._drop(key)
        self._pages[key] = (head, page)
        self._bytes += len(page.body)
        while self._bytes > BYTES_MAX:
            self._drop(next(iter(self._pages)))

    def _drop(self, key: PageKey) -> None:
        _, page = self._pages.pop(key)
        self._bytes -= len(page.body)
