"""Templates that mention files and agents, with real files."""

import subprocess
from pathlib import Path

import anyio
import pytest
from confined import unprivileged

from turnkeeper.mint import Mint
from turnkeeper.model.parts import TextPart
from turnkeeper.model.parts.base import Mention
from turnkeeper.model.parts.file import Position, Range, SymbolSource
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, TextInput
from turnkeeper.sessions.attach import Attaching
from turnkeeper.sessions.mentions import with_mentions
from turnkeeper.sessions.resolve import Resolution, resolve
from turnkeeper.text.symbols import Symbol
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.symbols import own_symbols


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


def test_what_may_not_be_looked_at_is_attached_so_that_the_model_is_told_why(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "closed/file").write_text("hidden\n")
    (tmp_path / "closed").chmod(0)
    found = unprivileged(lambda: anyio.run(expanded, tmp_path, "ask @explore about @closed/file."))
    (tmp_path / "closed").chmod(0o700)
    assert found == (AgentInput(name="explore"), a_file(tmp_path / "closed/file", "closed/file"))


async def test_a_tilde_is_home(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/todo.md").touch()
    found = await expanded(tmp_path, "see @~/todo.md", home=tmp_path / "home")
    assert found == (a_file(tmp_path / "home/todo.md", "~/todo.md"),)


async def test_a_path_in_quotes_may_have_spaces(tmp_path: Path) -> None:
    (tmp_path / "my notes").mkdir()
    path = tmp_path / "my notes/high, low.txt"
    path.touch()
    file = a_file(path, "my notes/high, low.txt")
    template = 'Read @"my notes/high, low.txt"#2-3, and @"my notes". @"my gone.txt"'
    assert await expanded(tmp_path, template) == (
        file.but(filename="my notes/high, low.txt#2-3", url=f"{file.url}?start=2&end=3"),
        a_file(tmp_path / "my notes", "my notes", "application/x-directory"),
    )


async def test_a_symbol_of_a_path_in_quotes_is_found_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "my tides.py").write_text("def high():\n    return 1\n", "utf-8")
    [found] = await expanded(tmp_path, 'What does @"my tides.py"#high() do?')
    assert isinstance(found, FileInput)
    assert isinstance(found.source, SymbolSource)
    assert found.source.text == Mention(value='@"my tides.py"#high', start=10, end=29)


async def test_lines_of_a_file_are_mentioned_after_a_hash(tmp_path: Path) -> None:
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


SOURCE = """class App:
    def run(self):
        pass

    def stop(self): pass


class Job:
    def stop(self): pass
"""


async def test_the_lines_of_a_symbol_are_mentioned_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(SOURCE)
    template = "is (@app.py#App.run()) like @app.py#run, or like @app.py#stop?"
    whole, short, *both = await expanded(tmp_path, template)
    file = a_file(tmp_path / "app.py", "app.py")
    source = SymbolSource(
        path=str(tmp_path / "app.py"),
        range=Range(start=Position(line=1, character=0), end=Position(line=2, character=0)),
        name="App.run",
        kind=6,
        text=Mention(value="@app.py#App.run", start=4, end=19),
    )
    named = file.but(filename="app.py#App.run", url=f"{file.url}?start=2&end=3", source=source)
    assert whole == named
    assert short == named.but(source=source.but(text=Mention(value="@app.py#run", start=28, end=39)))
    assert [part.filename for part in both if isinstance(part, FileInput)] == ["app.py#App.stop", "app.py#Job.stop"]


@pytest.mark.parametrize(
    ("mention", "lines"),
    [
        ("#1-1", ["1: class App:"]),
        (":1-1", ["1: class App:"]),
        ("#L2-L2", ["2:     def run(self):"]),
        ("#2", ["2:     def run(self):", "3:         pass"]),
        (":3", ["3:         pass"]),
        ("#8-9", ["8: class Job:", "9:     def stop(self): pass"]),
        ("#9-8", ["8: class Job:", "9:     def stop(self): pass"]),
        ("#9-99", ["9:     def stop(self): pass"]),
        ("#50-99", []),
    ],
)
async def test_just_the_lines_of_a_range_are_attached(tmp_path: Path, mention: str, lines: list[str]) -> None:
    (tmp_path / "app.py").write_text(SOURCE)
    [file] = await expanded(tmp_path, f"see @app.py{mention}")
    place = await identify(tmp_path)
    attaching = Attaching("ses_1", "msg_1", place, symbols=own_symbols)
    _, read, *_ = await resolve([file], Resolution(Mint.fixed(), attaching))
    assert isinstance(read, TextPart)
    assert [line for line in read.text.splitlines() if line[:1].isdigit()] == lines
    assert ("has only 9 lines" in read.text) == (not lines)


@pytest.mark.parametrize(
    ("name", "mention", "reason"),
    [
        ("app.py", "App.runs", "It was not found there; similar names are App.run, App.stop."),
        ("app.py", "Boat", "It was not found there."),
        ("app.txt", "App.run", "It is not known which symbols this file has."),
        ("many.py", "twin", "There are 9 of this name."),
    ],
)
async def test_the_whole_file_is_attached_if_a_symbol_is_not_found(
    tmp_path: Path, name: str, mention: str, reason: str
) -> None:
    (tmp_path / name).write_text("def twin(): pass\n" * 9 if name == "many.py" else SOURCE)
    note, whole = await expanded(tmp_path, f"explain @{name}#{mention}.")
    said = f"The user means the symbol {mention} of {name}. {reason} The whole file is attached."
    assert (note, whole) == (TextInput(text=said, synthetic=True), a_file(tmp_path / name, name))


async def test_who_knows_more_of_symbols_is_asked(tmp_path: Path) -> None:
    async def known(path: Path) -> tuple[Symbol, ...]:
        return (Symbol(("main",), 12, 3, 7),)

    (tmp_path / "main.rs").touch()
    text = TextInput(text="@main.rs#main", mentions=True)
    _, found = await with_mentions([text], await identify(tmp_path), (), tmp_path, known)
    assert isinstance(found, FileInput)
    assert found.url.endswith("main.rs?start=3&end=7")


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
