"""Command lines that a shell completes: in the real shells, and by what they ask the program."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import pytest
from cli_store import Family, environment, process, tk
from workshop import Shop

SHELLS: Final = ("bash", "zsh", "fish")
TIMEOUT_S: Final = 120
Offered = TypeVar("Offered", list[str], list[list[str]], set[str])
PRESSES: Final = 20
"""How often Tab is pressed. A busy machine may need longer than a shell waits, and then nothing is offered."""


def offered(data: Path, *words: str, **more: str) -> list[list[str]]:
    """What the program answers a shell: the candidates with what each is about."""
    run = process(data, "__complete", *words, **more)
    assert run.returncode == 0, run.stderr
    _, _, records = run.stdout.partition("\x1fbegin\n")
    return [line.split("\t") for line in records.splitlines()]


def pressed(offer: Callable[[], Offered]) -> Offered:
    """What is offered first, when Tab is pressed until something is."""
    found = offer()
    for _ in range(PRESSES):
        found = found or offer()
    return found


def test_sessions_are_completed_by_slug_and_by_id(data: Path, family: Family) -> None:
    root = family.root
    assert [root.slug, "Wind over the bay"] in pressed(lambda: offered(data, "session", "show", ""))
    assert [root.id, "Wind over the bay"] in pressed(lambda: offered(data, "session", "show", "ses_"))
    assert {one[0] for one in pressed(lambda: offered(data, "session", "delete", root.slug, ""))} == {
        one.slug for one in (root, family.child, family.archived)
    }
    assert [root.slug, "Wind over the bay"] in pressed(lambda: offered(data, "run", "--session", ""))


def test_the_shared_options_on_the_line_name_the_store(data: Path, family: Family, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    assert offered(elsewhere, "session", "show", "") == []
    assert not elsewhere.exists()
    assert len(pressed(lambda: offered(elsewhere, "--data", str(data), "session", "show", ""))) == 3
    assert len(pressed(lambda: offered(elsewhere, "session", "show", "--data", str(data), ""))) == 3


def test_models_and_agents_are_those_of_the_directory(shop: Shop) -> None:
    shop.configure(agent={"scout": {"mode": "primary", "description": "looks around"}})

    def lines(*words: str) -> list[str]:
        _, _, records = shop.process("__complete", *words).stdout.partition("\x1fbegin\n")
        return records.splitlines()

    assert "scout\tlooks around" in pressed(lambda: lines("run", "--agent", ""))
    assert any(line.startswith("offline/tk-1") for line in pressed(lambda: lines("chat", "--model", "")))


def test_a_broken_store_completes_nothing_and_says_nothing(data: Path) -> None:
    data.mkdir(exist_ok=True)
    (data / "turnkeeper.db").write_text("this is not a store")
    assert offered(data, "session", "show", "") == []


def test_an_unknown_shell_is_refused(data: Path) -> None:
    refused = tk(data, "completion", "csh")
    assert refused.code == 2
    assert "csh" in refused.err


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_for_both_names_of_the_program(data: Path, shell: str) -> None:
    printed = tk(data, "completion", shell)
    assert (printed.code, printed.err) == (0, "")
    for name in ("turnkeeper", "tk"):
        assert "__complete" in printed.out
        assert name in printed.out
    assert tk(data, "completion", shell, "--json").json["script"].strip() == printed.out.strip()


@pytest.fixture
def installed(data: Path, tmp_path: Path) -> Path:
    """A directory with the program under both of its names."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("turnkeeper", "tk"):
        file = folder / name
        file.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m turnkeeper.cli.main "$@"\n')
        file.chmod(0o755)
    return folder


BASH: Final = """
. "$1"
complete_line() {
  COMP_LINE="$1"; COMP_POINT=${#1}; read -ra COMP_WORDS <<< "$1"
  [[ "$1" == *' ' ]] && COMP_WORDS+=("")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
  local function; function=$(complete -p "${COMP_WORDS[0]}" | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
  "$function" "${COMP_WORDS[0]}" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
  printf '%s\\n' "${COMPREPLY[@]}"
}
complete_line "$2"
"""


def completed(shell: str, line: str, script: Path, data: Path, installed: Path) -> set[str]:
    environ = environment(data, PATH=f"{installed}:{os.environ['PATH']}", HOME=str(installed))
    words = {
        "bash": ["bash", "--norc", "-c", BASH, "bash", str(script), line],
        "fish": ["fish", "--no-config", "-c", f"source {script}; complete --do-complete '{line}'"],
    }[shell]
    run = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert run.returncode == 0, run.stderr
    return {found.split("\t")[0] for found in run.stdout.splitlines() if found}


@pytest.mark.parametrize("program", ["turnkeeper", "tk"])
@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_real_shell_completes_commands_options_and_sessions(
    shell: str, program: str, data: Path, family: Family, installed: Path, tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(tk(data, "completion", shell).out)
    slug = family.root.slug
    for line, words in {
        "se": {"session", "serve"},
        "session sea": {"search"},
        "run --con": {"--continue"},
        f"session show {slug[:3]}": {slug},
        "run --model off": {"offline/tk-1"},
    }.items():
        assert words <= pressed(partial(completed, shell, f"{program} {line}", script, data, installed))
