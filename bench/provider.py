"""A provider in its own process, and a configuration that names it."""

import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.prompt import Prompt, TextInput


def a_prompt() -> Prompt:
    """A word for that provider."""
    return Prompt(parts=(TextInput(text="go"),), model=ModelChoice(provider_id="bench", model_id="bench"))


@asynccontextmanager
async def talking(folder: Path, deltas: int, *, steps: int = 0, files: int = 1) -> AsyncIterator[None]:
    """Run ``bench.talker``, and let the sessions of this folder know of it."""
    command = [sys.executable, "-m", "bench.talker", *map(str, (deltas, steps, files))]
    process = await anyio.to_thread.run_sync(
        lambda: subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parent.parent, env=os.environ
        )
    )
    assert process.stdout is not None, "it was asked for"
    port = int(await anyio.to_thread.run_sync(process.stdout.readline))
    provider = {
        "protocol": "openai-chat",
        "options": {"baseURL": f"http://127.0.0.1:{port}/v1"},
        "models": {"bench": {"limit": {"context": 2_000_000, "output": 8000}}},
    }
    (folder / "turnkeeper.json").write_bytes(msgspec.json.encode({"provider": {"bench": provider}}))
    try:
        yield
    finally:
        process.kill()
        process.wait()
