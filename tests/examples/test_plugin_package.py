"""The sample plugin is installed as a package, without a network, and each of its hooks is called."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from examples import EXAMPLES, LIMIT_S
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.plugins.hooks import AUTH, NAMES, PROVIDER, TOOL
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import reject_all
from turnkeeper.testing.harness import Stage, StageOptions, stage

CONFIG: dict[str, object] = {"plugin": [["sample", {"ending": "?"}]], "permission": {"asks": "ask"}}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The package, installed where this process finds it."""
    place = str(tmp_path_factory.mktemp("installed"))
    options = ["--quiet", "--no-index", "--no-build-isolation", "--no-deps", "--no-compile", "--target", place]
    command = [sys.executable, "-m", "pip", "install", *options, str(EXAMPLES / "plugin")]
    subprocess.run(command, check=True, timeout=LIMIT_S)
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    yield
    sys.path.remove(place)


async def _live(opened: Stage) -> str:
    """A session that comes by every hook."""
    session_id = await opened.session()
    await opened.ask(session_id, "Say it", agent="sampler")
    await opened.tk.wait_upkeep(session_id)
    await opened.tk.shell(session_id, 'echo "sample $SAMPLE"')
    await opened.tk.command(session_id, "sample", "water")
    await opened.tk.wait(session_id)
    await opened.tk.compact(session_id, force=True, auto=True)
    await opened.tk.wait(session_id)
    return session_id


@pytest.mark.usefixtures("installed")
async def test_every_hook_of_the_sample_package_is_called_and_has_its_effect(tmp_path: Path) -> None:
    model = (
        Scripted()
        .titles("Samples")
        .calls("louder", text="tide")
        .calls("asks", text="moon")
        .then()
        .says("the secret")
        .then()
        .says("water")
        .then()
        .says("## Objective\nSampling.")
    )
    given = StageOptions(config=CONFIG, titles=True, ask=reject_all)
    with anyio.fail_after(LIMIT_S):
        async with stage("memory:", tmp_path / "place", model, given) as opened:
            session_id = await _live(opened)
            messages = await opened.messages(session_id)
            assert opened.tk.runtime.directories.plugins.now(opened.directory).plugins[0].error is None
    parts = [part for message in messages for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    assert texts[:2] == ["Say it?", "the [...]"]
    assert "Take a sample of water.?" in texts
    outputs = [one.state.output for one in parts if isinstance(one, ToolPart) and isinstance(one.state, ToolCompleted)]
    assert outputs[:2] == ["VERY TIDE?", "moon?"]
    assert "sample 1" in outputs[2]
    first = next(one for one in model.requests if one.headers["x-sample"] == "turn")
    assert (first.temperature, first.system[-1], first.system[0]) == (0.25, "Sampled.", "You sample.")
    assert all(tool.description.endswith("(sampled)") for tool in first.tools)
    assert {one.headers["x-sample"] for one in model.requests} == {"turn", "title", "compaction"}
    seen = importlib.import_module("sample_plugin").seen
    assert {*seen, TOOL, PROVIDER, AUTH} == NAMES
    assert seen[-1] == "dispose"


def test_the_sample_has_every_hook() -> None:
    text = (EXAMPLES / "plugin/sample_plugin.py").read_text("utf-8")
    assert [name for name in sorted(NAMES) if name.replace(".", "_") not in text] == []
