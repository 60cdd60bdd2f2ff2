"""Where the stores of tests are: an empty one of each engine."""

import os
import tempfile
from pathlib import Path

from turnkeeper.testing.postgres import end_shared_cluster, shared_cluster

VARIABLE = "TK_TEST_POSTGRES"
"""The directory of the Postgres server of this run, and the process that ends it: the one that started the run."""


def store_url(engine: str, directory: Path, name: str = "store") -> str:
    """A store that does not exist yet."""
    match engine:
        case "memory":
            return "memory:"
        case "postgres":
            owner, _, place = os.environ[VARIABLE].partition(":")
            return shared_cluster(Path(place), int(owner)).url()
        case _:
            return f"{engine}:{directory}/{name}"


def begin_run() -> None:
    """Say where the Postgres server of this run is to be. The first test that needs it starts it."""
    os.environ[VARIABLE] = f"{os.getpid()}:{tempfile.gettempdir()}/tkpg-{os.getpid()}"


def end_run() -> None:
    """End the server, if a test has started it."""
    place = Path(os.environ.pop(VARIABLE).partition(":")[2])
    if place.exists():
        end_shared_cluster(place)
