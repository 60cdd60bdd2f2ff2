"""A process that captures: ``snapshot_child.py TOP FILE TIMES`` writes a file and captures, over and over;
no times at all removes what is no longer kept.
"""

import os
import sys
from pathlib import Path

import anyio

from turnkeeper.model.config import Config
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.snapshots import Snapshots


async def main(top: Path, name: str, times: int) -> int:
    """Say each tree; fail if there is none."""
    shadow = await Snapshots(os.environ, lambda: 1_800_000_000_000).of(await identify(top), Config())
    assert shadow is not None
    if not times:
        await shadow.collect()
    for number in range(times):
        (top / name).write_text(f"{number}\n")
        tree = await shadow.capture("ses_child")
        assert tree is not None
        content = (await shadow.read([(await shadow.entries(tree, [name]))[name].blob])).popitem()[1]
        assert content == f"{number}\n".encode()
        print(tree, flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(anyio.run(main, Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
