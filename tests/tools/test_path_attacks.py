"""Attempts to leave the project by a path: none of them reads or writes what lies outside."""

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from shell_project import ShellProject

from turnkeeper.model.permission import Action, Rule
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import Denied, ToolFailure

DATA = Path(__file__).resolve().parents[1] / "data/path_attacks.jsonl"


FOUND_OUTSIDE = ("SECRET", "U0VDUkVU", "root:x", "plan.txt", "HOME=", "shadow", "hosts.allow", "7 ../secret")
"""What is only known to a call that got out: contents, contents in base64, names, sizes."""


class Attack(Value):
    """One call. ``links`` are there before it; ``swap`` replaces files by links while the user is asked.

    ``during`` names the permission that is asked for then; it is the first one if nothing is named.
    """

    tool: str
    arguments: dict[str, Any]
    links: dict[str, str] = {}
    swap: dict[str, str] = {}
    during: str = ""


ATTACKS = [msgspec.json.decode(line, type=Attack) for line in DATA.read_bytes().splitlines()]


def outside(shell_project: ShellProject) -> dict[str, bytes | None]:
    """Every file beside the project, with its content."""
    found = sorted(path for path in shell_project.top.rglob("*") if not path.is_relative_to(shell_project.project))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}


def link(shell_project: ShellProject, links: dict[str, str]) -> None:
    for name, target in links.items():
        path = shell_project.project / name
        if os.path.lexists(path):
            path.rename(f"{path}-before")
        os.symlink(filled(target, shell_project), path)


def filled(text: str, shell_project: ShellProject) -> str:
    known = text.replace("{top}", str(shell_project.top)).replace("{project}", str(shell_project.project))
    return known.replace("{{", "{").replace("}}", "}")


async def call(attack: Attack, shell_project: ShellProject, outside: Action = "deny") -> str:
    """What the model reads of the call: its output, or why it failed."""
    desk = shell_project.desk([Rule(permission="*", pattern="*", action="allow")])
    desk.refuse("external_directory", action=outside)
    swaps = [attack.swap] if attack.swap else []

    def swap() -> None:
        if swaps and attack.during in ("", desk.asked[-1][0]):
            link(shell_project, swaps.pop())

    desk.before_answer = swap
    arguments = {
        name: filled(value, shell_project) if isinstance(value, str) else value
        for name, value in attack.arguments.items()
    }
    try:
        return (await desk.toolbox.run(attack.tool, arguments, shell_project.context(desk))).output.output
    except Denied:
        return ""
    except ToolFailure as failure:
        return str(failure)


def test_there_are_many_attacks_by_every_tool() -> None:
    assert len({msgspec.json.encode(attack) for attack in ATTACKS}) == len(ATTACKS) >= 80
    assert {attack.tool for attack in ATTACKS} == {
        *("read", "write", "edit", "multiedit", "apply_patch", "list", "glob", "grep", "bash")
    }


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the attacks use /proc")
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: f"{attack.tool} {json.dumps(attack.arguments)[:60]}")
async def test_no_attack_reads_or_writes_outside(attack: Attack, tmp_path: Path) -> None:
    shell_project = ShellProject.made(tmp_path)
    with suppress(FileExistsError):
        link(shell_project, attack.links)
    before = outside(shell_project)
    output = await call(attack, shell_project)
    assert outside(shell_project) == before
    assert [word for word in FOUND_OUTSIDE if word in output.replace(attack.arguments.get("pattern", ""), "")] == []


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("read", {"filePath": "linked/plan.txt"}),
        ("grep", {"path": "../secret.txt", "pattern": "."}),
        ("bash", {"command": "cat ../secret.txt"}),
    ],
)
async def test_what_an_attack_would_find_is_seen_where_it_is_allowed(
    tool: str, arguments: dict[str, str], tmp_path: Path
) -> None:
    attack = Attack(tool=tool, arguments=arguments)
    assert "SECRET" in await call(attack, ShellProject.made(tmp_path), outside="allow")
