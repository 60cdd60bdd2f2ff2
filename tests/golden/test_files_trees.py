"""Golden trees: a store that an earlier files engine wrote opens with all of its content, however it was left."""

import json
import shutil
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from turnkeeper.store.engine import Engine
from turnkeeper.store.engines import open_engine

TREES = Path(__file__).parent / "files-0.2"
LEFT = [("closed", "after"), ("acknowledged", "after"), ("placing", "after"), ("staged", "before")]


async def content(engine: Engine, fences: list[str]) -> dict[str, Any]:
    """Everything an engine can say about a store."""
    return {
        "logs": {name: await engine.read(name) for name in await engine.logs()},
        "fences": {name: await engine.fence(name) for name in fences},
        "documents": dict(await engine.scan(())),
        "apple": await engine.search("apple", ()),
    }


def recorded(name: str) -> dict[str, Any]:
    """What the earlier engine said about a store with this content."""
    then = json.loads((TREES / f"{name}.json").read_text("utf-8"))
    return {
        "logs": {log: [b64decode(entry) for entry in entries] for log, entries in then["logs"].items()},
        "fences": then["fences"],
        "documents": {tuple(key): b64decode(body) for key, body in then["documents"]},
        "apple": [tuple(key) for key in then["apple"]],
    }


@pytest.mark.parametrize(("left", "expected"), LEFT)
async def test_a_tree_of_0_2_opens_with_all_of_its_content(tmp_path: Path, left: str, expected: str) -> None:
    shutil.copytree(TREES / left, tmp_path / "tree")
    then = recorded(expected)
    for _ in range(2):
        engine = await open_engine(f"files:{tmp_path}/tree")
        assert await content(engine, list(then["fences"])) == then
        assert (await engine.inspect())["problems"] == []
        await engine.aclose()


@pytest.mark.parametrize(("left", "expected"), LEFT)
async def test_a_tree_of_0_2_can_be_written_to(tmp_path: Path, left: str, expected: str) -> None:
    shutil.copytree(TREES / left, tmp_path / "tree")
    then = recorded(expected)
    engine = await open_engine(f"files:{tmp_path}/tree")
    for log, entries in then["logs"].items():
        await engine.append(log, len(entries), [b"next"], {("new", log): b"1"}, texts={("text", log, "1"): "cherry"})
    await engine.aclose()
    engine = await open_engine(f"files:{tmp_path}/tree")
    for log, entries in then["logs"].items():
        assert await engine.read(log) == [*entries, b"next"]
    assert await engine.search("apple", ()) == []
    assert await engine.search("cherry", ()) == [("text", "ses_2", "1"), ("text", "ses_1", "1")]
    await engine.aclose()


@pytest.mark.parametrize("left", ["acknowledged", "placing"])
async def test_no_flipped_bit_in_the_journal_of_0_2_costs_a_log_its_entries(tmp_path: Path, left: str) -> None:
    """What the kill left whole on the disk stays; that the journal cannot be read is reported."""
    then = recorded("after" if left == "acknowledged" else "before")
    size = (TREES / left / ".store/journal").stat().st_size
    for position in range(0, size, 7):
        tree = tmp_path / str(position)
        shutil.copytree(TREES / left, tree)
        journal = tree / ".store/journal"
        data = bytearray(journal.read_bytes())
        data[position] ^= 1 << position % 8
        journal.write_bytes(data)
        engine = await open_engine(f"files:{tree}")
        assert {name: await engine.read(name) for name in await engine.logs()} == then["logs"], position
        if left == "acknowledged":
            assert await content(engine, list(then["fences"])) == then, position
        problems = (await engine.inspect())["problems"]
        assert isinstance(problems, list)
        assert any("journal" in problem for problem in problems), position
        await engine.aclose()
        again = await open_engine(f"files:{tree}")
        assert problems == (await again.inspect())["problems"]
        await again.aclose()
