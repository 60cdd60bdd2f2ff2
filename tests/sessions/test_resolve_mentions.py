"""Templates that mention files and agents, with real files."""

import subprocess
from pathlib import Path

from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, TextInput
from turnkeeper.sessions.mentions import with_mentions
from turnkeeper.workspace.project import identify


async def expanded(directory: Path, template: str, *, home: Path = Path("/nowhere")) -> tuple[PartInput, ...]:
    text = TextInput(text=template, mentions=True)
    return (await with_mentions([text], await identify(directory), {"explore", "notes"}, home))[1:]


def a_file(path: Path, name: str, mime: str = "text/plain") -> FileInput:
    return FileInput(mime=mime, filename=name, url=path.as_uri())


async def test_files_directories_and_agents_become_parts_once_each(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/C#.py").touch()
    template = "ask @explore about @src/C#.py and @src, then @src/C#.py and @nobody. (@explore)"
    assert await expanded(tmp_path, template) == (
        AgentInput(name="explore"),
        a_file(tmp_path / "src/C#.py", "src/C#.py"),
        a_file(tmp_path / "src", "src", "application/x-directory"),
    )


async def test_a_file_is_stronger_than_an_agent_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    assert await expanded(tmp_path, "@notes") == (a_file(tmp_path / "notes", "notes"),)


async def test_names_are_meant_from_the_top_of_the_project_and_then_from_the_directory(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    inner = tmp_path / "inner"
    inner.mkdir()
    for path in (tmp_path / "both", inner / "both", inner / "own"):
        path.touch()
    assert await expanded(inner, "@both @own") == (
        a_file(tmp_path / "both", "both"),
        a_file(inner / "own", "own"),
    )


async def test_a_tilde_is_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/todo.md").touch()
    found = await expanded(tmp_path, "see @~/todo.md", home=tmp_path / "home")
    assert found == (a_file(tmp_path / "home/todo.md", "~/todo.md"),)


async def test_lines_and_symbols_of_a_file_are_mentioned_after_a_hash(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    (tmp_path / "app.py#3").touch()
    (tmp_path / "src").mkdir()
    found = await expanded(tmp_path, "@app.py#10-20, @app.py#L7? @app.py#3 @src#2 @gone.py#1 @app.py#0")
    file = a_file(tmp_path / "app.py", "app.py")
    assert found[:3] == (
        file.but(filename="app.py#10-20", url=f"{file.url}?start=10&end=20"),
        file.but(filename="app.py#L7", url=f"{file.url}?start=7&end=7"),
        a_file(tmp_path / "app.py#3", "app.py#3"),
    )
    note, whole = await expanded(tmp_path, "explain @app.py#App.run.")
    assert isinstance(note, TextInput)
    assert (note.synthetic, "the symbol App.run of app.py" in note.text) == (True, True)
    assert whole == file


async def test_lines_may_also_stand_after_a_colon_as_in_run(tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    (tmp_path / "app.py:3").touch()
    file = a_file(tmp_path / "app.py", "app.py")
    found = await expanded(tmp_path, "@app.py:10-20, (@app.py:7) @app.py:3 @app.py:run @gone.py:1 @explore:")
    assert found == (
        file.but(filename="app.py:10-20", url=f"{file.url}?start=10&end=20"),
        file.but(filename="app.py:7", url=f"{file.url}?start=7&end=7"),
        a_file(tmp_path / "app.py:3", "app.py:3"),
        AgentInput(name="explore"),
    )
