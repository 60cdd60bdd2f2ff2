"""What the guide to the sandbox shows is what happens."""

import json
import re
from pathlib import Path

import pytest
from confined import ConfinedWorld, needs_kernel

from turnkeeper.core.settings import checked
from turnkeeper.model.config import SandboxConfig

GUIDE = (Path(__file__).parents[2] / "docs/guides/sandbox.md").read_text("utf-8")
SESSIONS = re.findall(r"```console ?([\w-]*)\n(.*?)```", GUIDE, re.DOTALL)
CONFIGS = {
    "": SandboxConfig(),
    "read-only": SandboxConfig(mode="read-only"),
    "no-network": SandboxConfig(network=False),
}


@needs_kernel
@pytest.mark.parametrize(("kind", "session"), SESSIONS, ids=[kind or "workspace" for kind, _ in SESSIONS])
async def test_a_command_of_the_guide_prints_what_the_guide_says(tmp_path: Path, kind: str, session: str) -> None:
    world = ConfinedWorld(tmp_path, CONFIGS[kind])
    if kind == "read-only":
        (world.project / "notes.txt").write_text("hello\n")
    shown = ""
    for command in re.findall(r"^\$ (.*)$", session, re.MULTILINE):
        shown += f"$ {command}\n{(await world.run(command)).output}"
    assert shown.replace(str(world.home), "~") == session


def test_each_kind_of_session_is_shown() -> None:
    assert sorted(kind for kind, _ in SESSIONS) == sorted(CONFIGS)


def test_the_settings_of_the_guide_are_settings() -> None:
    shown = re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)
    assert [list(checked(json.loads(one), "guide")) for one in shown] == [["sandbox"], ["command_environment"]]
