"""What a program opens a store with is refused where it makes no sense, and nothing is made on the way."""

from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

import turnkeeper
from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.runtime import Settings
from turnkeeper.testing.harness import TOOLS, a_tool, echo


@pytest.mark.parametrize("store", ["", "sqlite", "sqlite:", "sqlite::memory:", "mysql:x", "memory:x", 5, Path("a.db")])
async def test_what_names_no_store_is_refused(store: Any, tmp_path: Path) -> None:
    with chdir(tmp_path), pytest.raises(Invalid, match=r"store|place"):
        async with turnkeeper.open(store):
            raise AssertionError("it was opened")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["echo", "my tool!"])
async def test_a_prompt_is_refused_while_tools_have_wrong_names(name: str, tmp_path: Path) -> None:
    tools = (*TOOLS, a_tool(name, echo))
    settings = Settings(transport=lambda _: Scripted(), tools=lambda: tools, titles=False)
    async with turnkeeper.open("memory:", directory=tmp_path, settings=settings) as tk:
        session = await tk.create()
        with pytest.raises(Invalid, match="name"):
            await tk.prompt(session.id, "go")
        assert (await tk.messages(session.id)).items == ()
