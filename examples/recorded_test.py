"""A test that replays a recorded session: no network, no key, and it fails on any change of a request.

``TURNKEEPER_RECORD=1 python recorded_test.py`` records it where there is no recording yet, with the model that the
configuration names.
"""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import turnkeeper
from turnkeeper.testing import recorded

RECORDING = Path(__file__).parent / "recordings/search.json"
CONFIG = {"model": "offline/tk-1", "permission": {"*": "deny", "grep": "allow"}}
SEARCHER = turnkeeper.Agent("build", "You search in files.")


async def test_the_agent_searches() -> None:
    with TemporaryDirectory() as place:
        async with recorded(RECORDING, directory=place, config=CONFIG, agents=[SEARCHER]) as tk:
            answer = await tk.ask("search for tide")
            assert "`tide` was not found." in answer.text


if __name__ == "__main__":
    asyncio.run(test_the_agent_searches())
    print("replayed")
