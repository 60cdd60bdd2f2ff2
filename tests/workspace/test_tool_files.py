"""Which files of tools may be loaded: a project's by their content, the user's own always."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from turnkeeper.tools.custom_files import CustomTools
from turnkeeper.workspace.setting_files import code_directories
from turnkeeper.workspace.tool_files import ToolTrust
from turnkeeper.workspace.trust import TrustedDirectories

TOOL = 'from turnkeeper import tool\n\n@tool\ndef {name}() -> str:\n    """Says a word."""\n    return "{said}"\n'
DEADLINE_S = 30


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    place = tmp_path / "project"
    place.mkdir()
    return place


def write(folder: Path, name: str, said: str = "one") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(TOOL.format(name=name, said=said))
    return file


def trust(environ: dict[str, str], project: Path, *tools: Path) -> None:
    TrustedDirectories(environ).add(project, tools={file: file.read_bytes() for file in tools})


async def loaded(custom: CustomTools, environ: dict[str, str], project: Path) -> tuple[list[str], list[str]]:
    found = await custom.load([one.path for one in code_directories(project, project, environ)])
    return sorted(tool.name for tool in found.tools), [file.stem for file in found.untrusted]


@pytest.mark.parametrize("folder", [".turnkeeper/tools", ".turnkeeper/tool", ".opencode/tools", ".opencode/tool"])
async def test_a_file_that_is_new_or_changed_since_it_was_trusted_is_not_loaded(
    environ: dict[str, str], project: Path, folder: str
) -> None:
    custom = CustomTools(ToolTrust(environ))
    first = write(project / folder, "first")
    assert await loaded(custom, environ, project) == ([], ["first"])
    trust(environ, project, first)
    assert await loaded(custom, environ, project) == (["first"], [])
    second = write(project / folder, "second")
    write(project / folder, "first", "changed")
    assert await loaded(custom, environ, project) == ([], ["first", "second"])
    assert await loaded(CustomTools(ToolTrust(environ)), environ, project) == ([], ["first", "second"])
    trust(environ, project, first, second)
    assert await loaded(custom, environ, project) == (["first", "second"], [])


async def test_tools_of_a_project_go_with_its_trust(environ: dict[str, str], project: Path) -> None:
    custom, file = CustomTools(ToolTrust(environ)), write(project / ".turnkeeper/tools", "first")
    trust(environ, project, file)
    assert await loaded(custom, environ, project) == (["first"], [])
    TrustedDirectories(environ).remove(project)
    assert await loaded(custom, environ, project) == ([], ["first"])
    TrustedDirectories(environ).add(project)
    assert await loaded(CustomTools(ToolTrust(environ)), environ, project) == ([], ["first"])


async def test_the_users_own_tools_need_no_trust(environ: dict[str, str], project: Path, tmp_path: Path) -> None:
    write(tmp_path / "home/.config/turnkeeper/tools", "own")
    assert await loaded(CustomTools(ToolTrust(environ)), environ, project) == (["own"], [])


async def test_a_list_of_directories_of_an_earlier_version_trusts_no_tools(
    environ: dict[str, str], project: Path
) -> None:
    known = TrustedDirectories(environ)
    known.file.path.parent.mkdir(parents=True)
    known.file.path.write_text(f'["{project}"]')
    file = write(project / ".turnkeeper/tools", "first")
    assert (project in known, known.all()) == (True, [str(project)])
    assert await loaded(CustomTools(ToolTrust(environ)), environ, project) == ([], ["first"])
    trust(environ, project, file)
    assert await loaded(CustomTools(ToolTrust(environ)), environ, project) == (["first"], [])


# --- The variable ------------------------------------------------------------------------------------------------


def after(started_ns: int, change: Callable[[], object], place: Path) -> None:
    """Make a change once the clock of the file system has left a moment behind."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        (place / "probe").write_text("now")
        if (place / "probe").stat().st_ctime_ns > started_ns:
            break
        assert time.monotonic() < deadline, "the clock of the file system stands still"
    change()


def place_new(project: Path) -> None:
    write(project / ".turnkeeper/tools", "evil")


def change(project: Path) -> None:
    file = write(project / ".turnkeeper/tools", "good", "bad")
    os.utime(file, (1, 1))


def move_file(project: Path) -> None:
    (project / "old/tools/evil.py").rename(project / ".turnkeeper/tools/evil.py")


def move_folder(project: Path) -> None:
    (project / "old/tools").rename(project / ".turnkeeper/tool")


def move_directory(project: Path) -> None:
    (project / "old").rename(project / ".opencode")


def link_directory(project: Path) -> None:
    (project / ".opencode").symlink_to("old")


def link_file(project: Path) -> None:
    (project / ".turnkeeper/tools/evil.py").symlink_to(project / "old/tools/evil.py")


@pytest.mark.parametrize(
    "attack", [place_new, change, move_file, move_folder, move_directory, link_directory, link_file]
)
@pytest.mark.parametrize("is_loaded_before", [True, False])
async def test_the_variable_trusts_only_what_is_there_at_the_start(
    environ: dict[str, str], project: Path, tmp_path: Path, attack: Callable[[Path], None], is_loaded_before: bool
) -> None:
    write(project / ".turnkeeper/tools", "good")
    write(project / "old/tools", "evil")
    environ = {**environ, "TURNKEEPER_TRUST": "1"}
    started_ns = time.time_ns()
    custom = CustomTools(ToolTrust(environ, started_ns=started_ns))
    if is_loaded_before:
        assert await loaded(custom, environ, project) == (["good"], [])
    after(started_ns, lambda: attack(project), tmp_path)
    found, untrusted = await loaded(custom, environ, project)
    assert "evil" not in found
    assert untrusted
    if attack is change:
        assert found == []
    elif is_loaded_before:
        assert found == ["good"], "what did not change keeps its trust, whatever was put beside it"
    tools = project.glob(".*/tool*/*.py")
    trust(environ, project, *tools)
    assert (await loaded(custom, environ, project))[1] == []
    TrustedDirectories(environ).remove(project)
    again = CustomTools(ToolTrust(environ, started_ns=time.time_ns()))
    assert (await loaded(again, environ, project))[1] == []
