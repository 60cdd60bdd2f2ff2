"""A server in a process of its own, in the project of a shop."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from cli_store import command
from workshop import Shop


@contextmanager
def serving(shop: Shop, port: int = 0) -> Iterator[str]:
    """Serve; gives the address."""
    with subprocess.Popen(
        command("serve", "--port", str(port), "--json"),
        cwd=shop.project,
        env=shop.environ(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as started:
        assert started.stdout is not None
        try:
            yield json.loads(started.stdout.readline())["url"]
        finally:
            started.terminate()
            started.wait(60)
