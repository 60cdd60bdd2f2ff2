"""A process that says something in a session, for tests that kill it at the boundary.

``python context_child.py URL PLACE SESSION WORDS``
"""

import asyncio
import sys
from pathlib import Path

from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import stage


async def main(url: str, place: str, session: str, words: str) -> None:
    """Say the words and wait for the answer, unless this process dies before."""
    # Another seed: two processes that count alike would make the same ids.
    mint = Mint.fixed(FIXED_START_MS + 1000, seed=1)
    async with stage(url, Path(place), Scripted().says("Yes.").forever(), mint=mint) as opened:
        await opened.ask(session, words)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
