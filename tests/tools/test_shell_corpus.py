"""Shell commands as people and models write them, and as an attacker would: each asks for exactly what it should."""

from pathlib import Path

import msgspec
import pytest
from shell_project import ShellProject, Verdict

from turnkeeper.core.permission import Allow, Deny, decide, parse_rules
from turnkeeper.model.permission import Rule
from turnkeeper.model.value import Value

DATA = Path(__file__).resolve().parents[1] / "data"


class Hostile(Value):
    """A command that does harm, and what the user is asked about it, by permission."""

    command: str
    asks: dict[str, list[str]]


def lines(name: str) -> list[bytes]:
    return (DATA / name).read_bytes().splitlines()


ORDINARY = [msgspec.json.decode(line, type=Verdict) for line in lines("shell_commands.jsonl")]
HOSTILE = [msgspec.json.decode(line, type=Hostile) for line in lines("hostile_commands.jsonl")]


@pytest.fixture(scope="module")
def shell_project(tmp_path_factory: pytest.TempPathFactory) -> ShellProject:
    return ShellProject.made(tmp_path_factory.mktemp("corpus"))


def test_the_corpus_is_large_and_says_nothing_twice() -> None:
    ordinary, hostile = {one.command for one in ORDINARY}, {one.command for one in HOSTILE}
    assert (len(ordinary), len(hostile)) == (len(ORDINARY), len(HOSTILE))
    assert len(ordinary) >= 500
    assert len(hostile) >= 150


def test_every_ordinary_command_asks_for_what_it_should(shell_project: ShellProject) -> None:
    assert [shell_project.verdict(one.command) for one in ORDINARY] == ORDINARY


def test_every_hostile_command_is_asked_about_as_it_should(shell_project: ShellProject) -> None:
    assert [Hostile(command=one.command, asks=shell_project.asks(one.command)) for one in HOSTILE] == HOSTILE
    assert [one.command for one in HOSTILE if not one.asks] == []


def test_ordinary_commands_are_understood_and_most_do_not_leave_the_project() -> None:
    opaque = [one.command for one in ORDINARY if one.computed == [one.command]]
    assert len(opaque) <= 2
    assert len([one for one in ORDINARY if one.outside or one.computed]) < len(ORDINARY) / 10


def test_an_approved_command_is_not_asked_about_again() -> None:
    asked = [
        one.command
        for one in ORDINARY
        if decide((), "bash", one.patterns, [allow(pattern) for pattern in one.always]) != Allow()
    ]
    assert asked == []


def allow(pattern: str) -> Rule:
    return Rule(permission="bash", pattern=pattern, action="allow")


REMOVING = [one.command for one in HOSTILE if "rm -rf src" in one.command]
# What removes here is data of another program, or is put together when the command runs.
UNSEEN = [
    "x='$(rm -rf src)'; echo ${x@P}",
    "alias ls='rm -rf src'; ls",
    "echo 'rm -rf src' | sh",
    "ssh localhost rm -rf src",
    "PAGER='rm -rf src' git log",
    "make --eval='$(shell rm -rf src)'",
    "awk 'BEGIN { system(\"rm -rf src\") }'",
    "sed '1e rm -rf src' a.txt",
    "sed 's/inside/rm -rf src/e' a.txt",
    "PS4='$(rm -rf src)' bash -xc true",
    "PROMPT_COMMAND='rm -rf src' bash -i",
    "make -f - <<< $'x:\\n\\trm -rf src'",
]


def test_a_deny_holds_however_the_command_is_wrapped_and_says_what_it_cannot_see(shell_project: ShellProject) -> None:
    rules = parse_rules({"bash": {"*": "allow", "rm *": "deny"}}, "/home")
    passed = [
        command
        for command in REMOVING
        if not isinstance(decide(rules, "bash", shell_project.verdict(command).patterns), Deny)
    ]
    assert passed == UNSEEN
