"""Templates that mention files and agents, with real files."""

import subprocess
from pathlib import Path

from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, TextInput
from turnkeeper.sessions.mentions import expand
from turnkeeper.workspace.project import identify


async def expanded(directory: Path, template: str, *, home: Path = Path("/nowhere")) -> tuple[PartInput, ...]:
    return await expand(template, await identify(directory), {"explore", "notes"}, home)


def a_file(path: Path, name: str, mime: str = "text/plain") -> FileInput:
    return FileInput(mime=mime, filename=name, url=path.as_uri())


async def test_files_directories_and_agents_become_parts_once_each(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/C#.py").touch()
    template = "ask @explore about @src/C#.py and @src, then @src/C#.py and @nobody. (@explore)"
    assert await expanded(tmp_path, template) == (
        TextInput(text=template),
        AgentInput(name="explore"),
        a_file(tmp_path / "src/C#.py", "src/C#.py"),
        a_file(tmp_path / "src", "src", "application/x-directory"),
    )


async def test_a_file_is_stronger_than_an_agent_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    assert await expanded(tmp_path, "@notes") == (TextInput(text="@notes"), a_file(tmp_path / "notes", "notes"))


async def test_names_are_meant_from_the_top_of_the_project_and_then_from_the_directory(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    inner = tmp_path / "inner"
    inner.mkdir()
    for path in (tmp_path / "both", inner / "both", inner / "own"):
        path.touch()
    assert (await expanded(inner, "@both @own"))[1:] == (
        a_file(tmp_path / "both", "both"),
        a_file(inner / "own", "own"),
    )


async def test_a_tilde_is_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/todo.md").touch()
    found = await expanded(tmp_path, "see @~/todo.md", home=tmp_path / "home")
    assert found[1:] == (a_file(tmp_path / "home/todo.md", "~/todo.md"),)
