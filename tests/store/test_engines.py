"""The table of engines: a store is opened by its name, and opening one loads no other."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from turnkeeper.store.crash import POINTS
from turnkeeper.store.engine import Key, path, paths
from turnkeeper.store.engine_table import ENGINES, store_names
from turnkeeper.store.engines import open_engine
from turnkeeper.store.engines.words import words


@pytest.mark.parametrize("url", ["oracle:host", "sqlite", "/tmp/store.db", "", "memory"])
async def test_an_unknown_store_is_refused_with_the_known_ones(url: str) -> None:
    with pytest.raises(ValueError, match="sqlite:, files:, postgres:, memory:"):
        await open_engine(url)


@pytest.mark.parametrize(
    "url", ["sqlite:", "files:", "postgres:", "postgresql:host", "memory:somewhere", "sqlite::memory:"]
)
async def test_a_store_without_its_place_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="write"):
        await open_engine(url)


async def test_a_store_is_opened_by_its_name(tmp_path: Path) -> None:
    engine = await open_engine(f"sqlite:{tmp_path}/store.db")
    assert engine.name == "sqlite"
    await engine.aclose()
    assert (tmp_path / "store.db").is_file()


def python(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, env=os.environ | environment, timeout=60)


def test_opening_one_engine_loads_no_other() -> None:
    code = (
        "import asyncio, sys; from turnkeeper.store.engines import open_engine;"
        "asyncio.run(open_engine('memory:'));"
        "print([name for name in sys.modules if name == 'apsw' or name.startswith('turnkeeper.store.engines.')])"
    )
    loaded = ["turnkeeper.store.engines.memory", "turnkeeper.store.engines.words"]
    assert sorted(eval(python(code).stdout)) == loaded
    assert {"sqlite", "files", "postgres", "memory"} <= set(ENGINES)


def test_an_armed_crash_point_ends_the_process_at_the_hit_it_names() -> None:
    point = POINTS[0]
    code = f"from turnkeeper.store.crash import crash_point as c; c({point!r}); print(1, flush=True); c({point!r})"
    ended = python(code, TURNKEEPER_CRASH=f"{point}:2")
    assert (ended.returncode, ended.stdout) == (137, "1\n")
    assert python(code).returncode == 0


def test_an_unknown_crash_point_is_refused() -> None:
    ended = python("import turnkeeper.store.crash", TURNKEEPER_CRASH="sqlite.nowhere")
    assert ended.returncode == 1
    assert "names no crash point" in ended.stderr


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_plain_text_is_cut_into_words_as_any_other_text_is(text: str) -> None:
    assert words(text) == [word for word in words(text + " é") if word != "é"]


@given(st.lists(st.lists(st.text(alphabet="a/\x00é\ud800", max_size=3), max_size=3).map(tuple), max_size=3))
@example([("a", "a/a")])
@example([("a",), ("a\x00",)])
@example([("a",), ("é\ud800",)])
@example([("a",), ("", "a")])
def test_many_keys_are_checked_together_as_each_is_alone(keys: list[Key]) -> None:
    assert _said(lambda: paths(keys)) == _said(lambda: [path(key) for key in keys])


def _said(work: Callable[[], list[str]]) -> list[str] | str:
    try:
        return work()
    except ValueError as error:
        return str(error)


def test_every_engine_is_named_once_and_the_others_follow_from_the_table() -> None:
    assert store_names() == "sqlite:PATH, files:DIR, postgres://USER@HOST/DATABASE or memory:"
    for name, entry in ENGINES.items():
        own = [point for point in POINTS if point.startswith(f"{name}.")]
        assert own == [f"{name}.{point}" for point in entry.crash_points]
