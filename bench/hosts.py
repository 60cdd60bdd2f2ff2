"""Servers and workers as people start them, each a process of its own on one Postgres, and what they cost."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import httpx2

LIMITS = {"models": {"bench": {"limit": {"context": 100_000, "output": 1_000}}}}


def configure(folder: Path, provider_url: str) -> None:
    """Let the processes of a folder know one model."""
    provider = {"protocol": "openai-chat", "options": {"baseURL": provider_url}, **LIMITS}
    given = {"model": "bench/bench", "small_model": "bench/bench", "provider": {"bench": provider}}
    (folder / "turnkeeper.json").write_text(json.dumps(given))


@asynccontextmanager
async def started(folder: Path, url: str, *words: str) -> AsyncIterator[tuple["subprocess.Popen[str]", dict[str, str]]]:
    """A command that goes on until it is killed, and what it said when it was ready."""
    environ = {**os.environ, "HOME": str(folder), "TURNKEEPER_TRUST": "1", "TURNKEEPER_STORE": url}
    environ["TURNKEEPER_DATA"] = str(folder / "data")
    command = [sys.executable, "-m", "turnkeeper.cli.main", *words, "--log-level", "error", "--json"]
    process = await anyio.to_thread.run_sync(
        lambda: subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True)
    )
    with process:
        try:
            assert process.stdout is not None, "it was asked for"
            yield process, json.loads(await anyio.to_thread.run_sync(process.stdout.readline))
        finally:
            process.kill()


@asynccontextmanager
async def serving(folder: Path, url: str) -> AsyncIterator[tuple["subprocess.Popen[str]", httpx2.AsyncClient]]:
    """A server that runs nothing, and a client of it."""
    async with (
        started(folder, url, "serve", "--no-run", "--port", "0") as (process, said),
        httpx2.AsyncClient(base_url=said["url"], timeout=300) as http,
    ):
        yield process, http


async def new_session(http: httpx2.AsyncClient) -> str:
    """A session with a title, so that no model is asked for one."""
    return str((await http.post("/session", json={"title": "measured"})).json()["id"])


async def prompt(http: httpx2.AsyncClient, session_id: str) -> None:
    """Send a prompt, which waits until the session would rest."""
    body = {"prompt": {"text": "go"}, "delivery": "queue"}
    answer = await http.post(f"/api/session/{session_id}/prompt", json=body)
    answer.raise_for_status()


def cpu_s(*pids: int) -> float:
    """Seconds of CPU that these processes have used, with those of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        total += sum(map(int, fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def database_cpu_s(directory: Path) -> float:
    """Seconds of CPU that a Postgres server has used."""
    postmaster = int((directory / "data" / "postmaster.pid").read_text().split()[0])
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return cpu_s(postmaster, *map(int, children))
