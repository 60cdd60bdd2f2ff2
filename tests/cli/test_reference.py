"""Help pages, and the reference page that is written from them."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_store import command, environment, tk
from cyclopts import App

from turnkeeper.cli.commands import app

ROOT = Path(__file__).resolve().parents[2]


def leaves(group: App, chain: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of every command that can be run."""
    if group.default_command is not None:
        yield chain
    for name in group:
        if not name.startswith("-"):
            yield from leaves(group[name], (*chain, name))


LEAVES = list(leaves(app))


def command_app(chain: tuple[str, ...]) -> App:
    """The application of one command."""
    found = app
    for name in chain:
        found = found[name]
    return found


def documentation(chain: tuple[str, ...]) -> str:
    return inspect.getdoc(command_app(chain).default_command) or ""


def test_the_reference_page_is_what_the_commands_say() -> None:
    script = [sys.executable, str(ROOT / "scripts/command_reference.py"), "--check"]
    run = subprocess.run(script, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


@pytest.mark.parametrize("chain", LEAVES, ids=" ".join)
def test_every_command_explains_itself_with_examples(tmp_path: Path, chain: tuple[str, ...]) -> None:
    page = tk(tmp_path, *chain, "--help")
    assert (page.code, page.err) == (0, "")
    assert f"Usage: turnkeeper {' '.join(chain)}" in page.out
    written = documentation(chain)
    words = written.split()
    assert page.out.split()[page.out.split().index(words[0]) :][: len(words)] == words, "a paragraph is lost"
    assert "\nFor example:\n  " in written
    assert "--store STORE" in page.out
    assert max(len(line) for line in written.splitlines()) <= 80, "longer lines are broken on a terminal"


@pytest.mark.parametrize("chain", LEAVES, ids=" ".join)
def test_every_option_has_words_and_no_negation(tmp_path: Path, chain: tuple[str, ...]) -> None:
    shown = [one for one in command_app(chain).assemble_argument_collection() if one.show]
    assert [one.name for one in shown if not one.parameter.help] == []
    page = tk(tmp_path, *chain, "--help").out
    own = {name for one in shown for name in one.names}  # As --no-label, which is no negation of a switch.
    negations = {f"--no-{one.name.removeprefix('--')}" for one in shown} - own
    assert [one for one in negations if one in page] == []


@pytest.mark.parametrize("words", [[], ["session"], ["db"], ["-h"], ["session", "-h"], ["--json", "--help"]])
def test_a_group_without_a_command_shows_its_help(tmp_path: Path, words: list[str]) -> None:
    shown = tk(tmp_path, *words)
    assert shown.code == 0
    assert "─ Commands ─" in shown.out


def test_the_pages_of_groups_have_a_line_for_each_command_in_a_new_process(tmp_path: Path) -> None:
    for words in ([], ["session"], ["import"]):
        run = subprocess.run(
            command(*words, "--help"), env=environment(tmp_path), capture_output=True, text=True, check=True, timeout=60
        )
        for chain in LEAVES:
            if list(chain[:-1]) == words:
                first = documentation(chain).split(".")[0].split()[:4]
                assert f"{chain[-1]} " in run.stdout
                assert " ".join(first) in run.stdout, chain


def test_the_first_page_names_every_command_and_the_shared_options(tmp_path: Path) -> None:
    page = tk(tmp_path, "--help").out
    for name in ("session", "export", "import", "doctor", "db", "--store", "--data", "--json", "--version", "--help"):
        assert name in page


def test_every_command_is_used_by_a_test() -> None:
    written = "".join(file.read_text("utf-8") for file in Path(__file__).parent.rglob("test_*.py"))
    for chain in LEAVES:
        assert ", ".join(f'"{word}"' for word in chain) in written
