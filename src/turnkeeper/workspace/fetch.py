"""Fetch instructions from an address: briefly, boundedly, and not twice in a few minutes."""

import time
from collections.abc import Callable

from turnkeeper.core.limits import INSTRUCTION_BYTES_MAX

TIMEOUT_S = 4.0
FRESH_S = 300.0


class Fetcher:
    """Remembers what addresses said, so that a turn does not wait for the same answer again."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[str, tuple[float, str]] = {}

    async def text(self, url: str) -> str:
        """What the address says. Raises OSError or an HTTP error if it cannot be had."""
        known = self._known.get(url)
        if known is not None and self._clock() - known[0] < FRESH_S:
            return known[1]
        # Imported here: most sessions have no instructions from the network.
        import httpx2

        async with (
            httpx2.AsyncClient(timeout=TIMEOUT_S, follow_redirects=True) as client,
            client.stream("GET", url) as answer,
        ):
            answer.raise_for_status()
            body = b""
            async for chunk in answer.aiter_bytes():
                body += chunk
                if len(body) > INSTRUCTION_BYTES_MAX:
                    break
        text = body[:INSTRUCTION_BYTES_MAX].decode("utf-8", "replace").strip()
        self._known[url] = (self._clock(), text)
        return text
