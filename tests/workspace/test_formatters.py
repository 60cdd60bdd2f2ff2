"""Formatters: run over a file after an edit, and harmless when they fail."""

import os
from pathlib import Path

import pytest
from desk import Desk

from turnkeeper.model.config import FormatterConfig
from turnkeeper.tools.services import ToolServices
from turnkeeper.workspace.after_edit import FormatOutcome
from turnkeeper.workspace.formatters import BUILT_IN, Formatter, Formatters, configured


def unconfined() -> None:
    """There is no sandbox."""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory for programs that the formatters find on their path."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def install(programs: Path, name: str, script: str) -> None:
    (programs / name).write_text(f"#!/bin/sh\n{script}\n")
    (programs / name).chmod(0o755)


def formatters(programs: Path, config: dict[str, FormatterConfig], timeout_s: float = 60) -> Formatters:
    environ = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return Formatters(configured(config, {}), programs, environ, timeout_s=timeout_s)


def only(**own: FormatterConfig) -> dict[str, FormatterConfig]:
    return {**{name: FormatterConfig(disabled=True) for name in BUILT_IN}, **own}


def test_nothing_is_configured_by_itself() -> None:
    assert configured(None, {}) == configured(False, {}) == ()
    assert [one.name for one in configured(True, {})] == sorted(BUILT_IN)


def test_a_known_formatter_may_be_changed_switched_off_and_added_to() -> None:
    own = only(
        ruff=FormatterConfig(extensions=(".py3",)),
        mine=FormatterConfig(command=("mine", "$FILE"), extensions=(".x",), environment={"A": "b"}),
        useless=FormatterConfig(extensions=(".y",)),
    )
    assert configured(own, {}) == (
        Formatter("mine", ("mine", "$FILE"), (".x",), {"A": "b"}),
        Formatter("ruff", ("ruff", "format", "$FILE"), (".py3",), {}, is_required=False),
    )


async def test_a_formatter_runs_for_its_files_with_its_environment(programs: Path) -> None:
    install(programs, "mine", 'echo "$WORD" >> "$1"')
    own = only(mine=FormatterConfig(command=("mine", "$FILE"), extensions=(".x",), environment={"WORD": "neat"}))
    for name in ("a.x", "a.y"):
        (programs / name).write_text("one\n")
    assert await formatters(programs, own).format(programs / "a.x", unconfined) == FormatOutcome(ran=("mine",))
    assert await formatters(programs, own).format(programs / "a.y", unconfined) == FormatOutcome()
    assert ((programs / "a.x").read_text(), (programs / "a.y").read_text()) == ("one\nneat\n", "one\n")


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("echo no such style >&2; exit 3", "mine failed with exit code 3: no such style"),
        ("exec sleep 600", "mine was stopped after 0.2 s."),
        ("trap '' TERM; while :; do sleep 600; done", "mine was stopped after 0.2 s."),
    ],
)
async def test_a_formatter_that_fails_or_hangs_is_a_note(programs: Path, script: str, failure: str) -> None:
    install(programs, "mine", script)
    own = only(mine=FormatterConfig(command=("mine", "$FILE"), extensions=(".x",)))
    timeout_s = 0.2 if "sleep" in script else 60
    outcome = await formatters(programs, own, timeout_s).format(programs / "a.x", unconfined)
    assert outcome == FormatOutcome(ran=("mine",), failures=(failure,))


async def test_a_missing_formatter_is_named_only_if_somebody_asked_for_it(programs: Path) -> None:
    own = only(
        mine=FormatterConfig(command=("not-there", "$FILE"), extensions=(".x",)),
        zig=FormatterConfig(extensions=(".x",)),
    )
    environ = {"PATH": str(programs)}
    outcome = await Formatters(configured(own, {}), programs, environ).format(programs / "a.x", unconfined)
    assert outcome == FormatOutcome(failures=("mine is not installed: 'not-there' was not found.",))


async def test_the_model_and_the_diff_say_what_a_formatter_changed(programs: Path, tmp_path: Path) -> None:
    install(programs, "mine", 'sed -i "s/two/2/" "$1"')
    (tmp_path / "project").mkdir()
    own = only(mine=FormatterConfig(command=("mine", "$FILE"), extensions=(".x",)))
    services = ToolServices(format=formatters(programs, own).format)
    desk = Desk(tmp_path / "project", tmp_path / "project", services=services)
    output = await desk.run("write", filePath="a.x", content="one\ntwo\n")
    assert output.output.splitlines()[2:] == [
        "mine formatted the file after the edit:",
        *("--- a.x", "+++ a.x", "@@ -1,2 +1,2 @@", " one", "-two", "+2"),
    ]
    assert "+2\n" in str(output.metadata["diff"])
    assert "+two" not in str(output.metadata["diff"])
    # What the formatter left counts as read.
    await desk.run("edit", filePath="a.x", oldString="2", newString="three")
    assert (tmp_path / "project/a.x").read_text() == "one\nthree\n"


async def test_a_formatter_that_deletes_the_file_breaks_nothing_and_the_model_is_told(
    programs: Path, tmp_path: Path
) -> None:
    install(programs, "mine", 'rm "$1"')
    own = only(mine=FormatterConfig(command=("mine", "$FILE"), extensions=(".x",)))
    desk = Desk(programs, programs, services=ToolServices(format=formatters(programs, own).format))
    said = (await desk.run("write", filePath="a.x", content="one\n")).output
    assert said.splitlines()[1:] == ["", "mine ran after the edit, and now the file is gone."]
