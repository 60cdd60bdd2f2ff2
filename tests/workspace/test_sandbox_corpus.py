"""Every command of the hostile corpus, in the sandbox, with rules that allow it: nothing outside changes or is read."""

import json
import re
from pathlib import Path

import pytest
from confined import ConfinedWorld, files, is_kept, needs_kernel
from shell_project import ShellProject

from turnkeeper.model.config import SandboxConfig
from turnkeeper.model.permission import Rule
from turnkeeper.workspace import landlock

pytestmark = needs_kernel

DATA = Path(__file__).resolve().parents[1] / "data/hostile_commands.jsonl"
REACHES_OTHERS = re.compile(r"\b(docker|ssh localhost)\b")
"""Commands that have a service do the harm, which is not confined: ``docs/guides/sandbox.md`` says so."""
HOSTILE = [
    command
    for command in (json.loads(line)["command"] for line in DATA.read_bytes().splitlines())
    if not REACHES_OTHERS.search(command)
]
DENIED = Rule(permission="external_directory", pattern="*", action="deny")
# A command that were not confined would do its harm to the machine of whoever runs the tests. It is only begun once a
# harmless write outside was refused. The limit ends what writes for ever.
FIRST = 'if touch "$OUT/../unconfined" 2> /dev/null; then exit 99; fi; ulimit -f 2048\n'


class Corpus(ConfinedWorld):
    """The project of the corpus in a world whose commands are confined and have no network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        ShellProject.made(self.root)

    def around(self) -> dict[str, str]:
        """Everything outside of the project that commands may not change."""
        writable = (self.project, self.root / "tmp")
        found = {path: said for path, said in files(self.root).items() if is_kept(path)}
        return {
            path: said for path, said in found.items() if not any(Path(path).is_relative_to(one) for one in writable)
        }


def test_few_commands_are_left_out() -> None:
    everything = DATA.read_bytes().splitlines()
    assert len(everything) - len(HOSTILE) == 2
    assert len(HOSTILE) >= 150


@pytest.mark.skipif(landlock.abi() < 6, reason="before Linux 6.12 `kill -9 -1` reaches processes outside")
@pytest.mark.parametrize("command", HOSTILE)
async def test_no_hostile_command_changes_or_reads_what_is_outside(tmp_path: Path, command: str) -> None:
    allowing, denying = (Corpus(tmp_path / name, SandboxConfig(network=False)) for name in ("allowing", "denying"))
    denying.rules.append(DENIED)
    for world in (allowing, denying):
        before = world.around()
        ran = await world.run(FIRST + command, timeout_s=5)
        assert ran.exit_code != 99
        assert world.around() == before
    found = [path for path in denying.project.rglob("*") if path.is_file() and not path.is_symlink()]
    kept = [path.read_text(errors="replace") for path in found]
    assert "SECRET\n" not in "".join([ran.output, *kept])


async def test_what_is_looked_for_is_found_where_it_is_allowed(tmp_path: Path) -> None:
    assert "SECRET" in (await Corpus(tmp_path).run("cat ../secret.txt")).output
