"""Page cache: encoded pages of histories. A page is valid until something happens in its session.

Clients ask for the same pages again and again: each time they start, and whenever a person comes back to a session.
"""

from collections import OrderedDict
from typing import Final, TypeAlias

import msgspec

from turnkeeper.server.service import Service

BYTES_MAX: Final = 16 * 1024 * 1024
"""All pages together; the least recently used go first."""
PAGE_BYTES_MAX: Final = BYTES_MAX // 4

PageKey: TypeAlias = tuple[str, int | None, str | None]
"""The session, how many of its messages, and before which cursor."""


class CachedPage(msgspec.Struct, frozen=True):
    """An answer's body, and the cursor to older messages."""

    body: bytes
    older: str | None


class PageCache:
    """Pages by what was asked for, each with the hash of the log's head that it shows."""

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
        """Keep a page. ``head`` was read before the page: if it is still the same later, nothing came in between."""
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
