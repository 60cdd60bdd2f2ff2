"""Help pages, and the reference page that is written from them."""

import subprocess
import sys
from pathlib import Path

import pytest
from cli_store import tk

from turnkeeper.cli import help
from turnkeeper.cli.commands import build

ROOT = Path(__file__).resolve().parents[2]
LEAVES = [chain for chain, _ in help.leaves()]


def test_the_reference_page_is_what_the_commands_say() -> None:
    script = [sys.executable, str(ROOT / "scripts/command_reference.py"), "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("chain", LEAVES, ids=" ".join)
def test_every_command_explains_itself_with_an_example(tmp_path: Path, chain: tuple[str, ...]) -> None:
    page = tk(tmp_path, *chain, "--help")
    assert (page.code, page.err) == (0, "")
    assert f"Usage: turnkeeper {' '.join(chain)}" in page.out
    assert "\nExamples:\n  turnkeeper " in page.out or "\nExamples:\n  " in page.out
    assert "--store STORE" in page.out
    assert max(map(len, page.out.splitlines())) <= 120


@pytest.mark.parametrize("chain", LEAVES, ids=" ".join)
def test_every_option_has_words_and_no_negation(chain: tuple[str, ...]) -> None:
    _, apps, _ = build().parse_commands(list(chain))
    shown = [one for one in apps[-1].assemble_argument_collection(parse_docstring=False) if one.show]
    assert [one.name for one in shown if not one.parameter.help] == []
    assert [name for one in shown for name in one.names if name.startswith("--no-")] == []


@pytest.mark.parametrize("words", [[], ["session"], ["db"]])
def test_a_group_without_a_command_shows_its_help(tmp_path: Path, words: list[str]) -> None:
    shown = tk(tmp_path, *words, "-h")
    assert shown.code == 0
    assert "\nCommands:\n" in shown.out
    assert shown.out.startswith("Turnkeeper keeps" if not words else "")


def test_the_first_page_names_every_command_and_the_shared_options(tmp_path: Path) -> None:
    page = tk(tmp_path, "--help").out
    for name in ("session", "export", "import", "doctor", "db", "--store", "--data", "--json", "--version"):
        assert name in page


def test_every_command_is_used_by_a_test() -> None:
    written = "".join(file.read_text("utf-8") for file in Path(__file__).parent.glob("test_*.py"))
    for chain in LEAVES:
        assert ", ".join(f'"{word}"' for word in chain) in written
