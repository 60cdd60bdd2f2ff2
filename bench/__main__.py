"""``make bench``: run every measurement and print the table. ``python -m bench forks`` runs one."""

import importlib
import os
import sys
import tempfile
from pathlib import Path

import anyio

from bench.measure import Figure, table

ALL = (
    "appends",
    "postgres_appends",
    "forks",
    "pages",
    "opening",
    "commands",
    "streaming",
    "fanout",
    "wakes",
    "workers",
    "takeover",
    "turns",
    "steps",
    "window",
    "serving",
    "snapshots",
)


async def main(names: list[str]) -> int:
    """Measure, print, and say by the exit code whether every aim was met."""
    figures: list[Figure] = []
    os.environ["TURNKEEPER_TRUST"] = "1"  # The settings below the scratch folders are our own.
    for name in names or ALL:
        print(f"measuring {name} ...", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            figures += await importlib.import_module(f"bench.{name}").measure(Path(folder))
    print(table(figures))
    return 0 if all(figure.good for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
