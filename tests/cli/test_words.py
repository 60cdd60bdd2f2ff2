"""Words that are read without cyclopts mean what cyclopts would make of them; all others are left to it."""

import subprocess
import sys

import pytest

from turnkeeper.cli import commands
from turnkeeper.cli.help import leaves

SIMPLE = [
    [],
    ["--port", "0"],
    ["--port", "4097", "--hostname", "::1"],
    ["--hostname", "0.0.0.0", "--port", "0080"],
    ["--hostname", "a host"],
]


@pytest.mark.parametrize("given", SIMPLE, ids=" ".join)
def test_simple_words_are_read_as_cyclopts_reads_them(given: list[str]) -> None:
    command = commands.quick(["serve", *given])
    assert command is not None
    function, bound, _ = commands.build().parse_args(["serve", *given], print_error=False, exit_on_error=False)
    assert (command.func, command.args, command.keywords) == (function, bound.args, bound.kwargs)


@pytest.mark.parametrize(
    "given",
    [
        ["--port"],
        ["--port", "many"],
        ["--port", "-1"],
        ["--port", "\u0663"],
        ["--port", ""],
        ["--port", "1", "--port", "2"],
        ["--port=1"],
        ["--hostname", "--port"],
        ["--help"],
        ["--json"],
        ["--log-format", "json"],
        ["here"],
        ["--", "--port"],
    ],
    ids=" ".join,
)
def test_words_that_may_mean_more_are_left_to_cyclopts(given: list[str]) -> None:
    assert commands.quick(["serve", *given]) is None


def test_only_a_command_that_says_so_has_simple_words() -> None:
    quick = [chain for chain, _ in leaves() if commands.quick(list(chain)) is not None]
    assert quick == [("serve",)]
    assert commands.quick([]) is None


def test_every_simple_option_is_one_of_its_command() -> None:
    for chain, command in leaves():
        _, apps, _ = commands.build().parse_commands(list(chain))
        arguments = apps[-1].assemble_argument_collection(parse_docstring=False)
        known = {name: one.hint for one in arguments for name in one.names}
        assert {name: known.get(name) for name in command.simple} == dict(command.simple)


def test_simple_words_load_no_cyclopts() -> None:
    script = "import sys\nfrom turnkeeper.cli import commands\nassert commands.quick(['serve'])\nprint(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "turnkeeper.cli.serve" in run.stdout.split()
    assert {"cyclopts", "attr", "uvicorn", "rich"}.isdisjoint(run.stdout.split())
