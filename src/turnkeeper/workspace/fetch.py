"""Fetches instructions from URLs, with a timeout, a maximum size and a cache of a few minutes."""

import time
from collections.abc import Callable

import anyio

from turnkeeper.core.limits import FETCH_FAILED_S, FETCH_FRESH_S, FETCH_S, INSTRUCTION_BYTES_MAX


class Fetcher:
    """Fetches texts and caches them and failures, so that turns do not wait for a URL again and again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, timeout_s: float = FETCH_S) -> None:
        self._clock, self._timeout_s = clock, timeout_s
        self._known: dict[str, tuple[float, str]] = {}
        self._failed: dict[str, tuple[float, str]] = {}

    async def text(self, url: str) -> str:
        """The text at a URL. Raises OSError if it cannot be fetched."""
        now = self._clock()
        if (known := self._known.get(url)) is not None and now - known[0] < FETCH_FRESH_S:
            return known[1]
        if (failed := self._failed.get(url)) is not None and now - failed[0] < FETCH_FAILED_S:
            raise OSError(failed[1])
        # Imported here: most sessions fetch no instructions.
        import httpx2

        try:
            with anyio.fail_after(self._timeout_s):
                text = await _get(url)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            reason = f"{url}: {str(error) or type(error).__name__}"
            self._failed[url] = (self._clock(), reason)
            raise OSError(reason) from error
        self._known[url] = (self._clock(), text)
        return text


async def _get(url: str) -> str:
    import httpx2

    body = b""
    async with httpx2.AsyncClient(timeout=None, follow_redirects=True) as client, client.stream("GET", url) as answer:
        answer.raise_for_status()
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > INSTRUCTION_BYTES_MAX:
                break
    return body[:INSTRUCTION_BYTES_MAX].decode("utf-8", "replace").strip()
