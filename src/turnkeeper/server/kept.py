"""Kept pages: a page of a history that was told stays as it is until something happens in its session.

Clients ask for the same pages again and again: each time they start, and whenever a person comes back to a session.
"""

from collections import OrderedDict
from typing import Final, TypeAlias

import msgspec

from turnkeeper.server.service import Service

BYTES_MAX: Final = 16 * 1024 * 1024
"""All that is kept; what was not asked for longest goes first."""
PAGE_BYTES_MAX: Final = BYTES_MAX // 4

Asked: TypeAlias = tuple[str, int | None, str | None]
"""The session, how many of its messages, and before which place."""


class Page(msgspec.Struct, frozen=True):
    """An answer's body, and where the page before it begins."""

    body: bytes
    older: str | None


class Kept:
    """Pages by what was asked for, each with the state of the session that it shows.

    The state document has the hash of the log's head, so a page of the same state is the same page, whoever wrote.
    """

    def __init__(self, _: Service) -> None:
        self._pages: OrderedDict[Asked, tuple[bytes, Page]] = OrderedDict()
        self._bytes = 0

    def page(self, asked: Asked, state: bytes) -> Page | None:
        """The page, if it was kept and still is what the session has."""
        found = self._pages.get(asked)
        if found is None:
            return None
        if found[0] != state:
            self._drop(asked)
            return None
        self._pages.move_to_end(asked)
        return found[1]

    def keep(self, asked: Asked, state: bytes, page: Page) -> None:
        """Keep a page. ``state`` was read before the page: if it is still the same later, nothing came in between."""
        if len(page.body) > PAGE_BYTES_MAX:
            return
        if asked in self._pages:
            self._drop(asked)
        self._pages[asked] = (state, page)
        self._bytes += len(page.body)
        while self._bytes > BYTES_MAX:
            self._drop(next(iter(self._pages)))

    def _drop(self, asked: Asked) -> None:
        _, page = self._pages.pop(asked)
        self._bytes -= len(page.body)
