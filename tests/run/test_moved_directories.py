"""A session's directory that a command replaced by a link: nothing is done where the link leads."""

import os
import subprocess
from pathlib import Path

import pytest
from confined import needs_kernel
from desk import Desk

from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play
from turnkeeper.tools import load
from turnkeeper.tools.tool import Denied
from turnkeeper.workspace import sandbox

TOOLS = tuple(load(["bash", "write"]))
# What an interpreter does, no rule about text can see.
SWAPS = "python3 -c \"import os; os.rename('../src', '../was'); os.symlink('{victim}', '../src')\""
WORDS = "a part of it has become a link"


class Swapped:
    """A repository with a directory ``src``, and a directory outside of it that it is to lead to."""

    def __init__(self, top: Path) -> None:
        self.source, self.victim = top.resolve() / "place/src", top.resolve() / "victim"
        self.source.mkdir(parents=True)
        self.victim.mkdir()
        subprocess.run(["git", "init", "-q", self.source.parent], check=True)
        (top / "home").mkdir()
        self.environ = {"HOME": str(top / "home"), "SHELL": "/bin/bash", "TMPDIR": str(top)}
        self.command = SWAPS.format(victim=self.victim)

    def swap(self) -> None:
        self.source.rename(self.source.with_name("was"))
        self.source.symlink_to(self.victim)


@pytest.fixture
def swapped(tmp_path: Path) -> Swapped:
    return Swapped(tmp_path)


@needs_kernel
async def test_no_later_prompt_runs_in_the_place_of_the_link(play: Play, swapped: Swapped) -> None:
    script = Scripted().calls("bash", command=swapped.command).then().says("Done.").then().says("Never.")
    async with play(script, tools=TOOLS, environ=swapped.environ) as stage:
        session = await stage.session(directory=swapped.source)
        assert (await stage.ask(session, "go")).reason != "answered"
        assert os.path.islink(swapped.source)
        [*_, (last, _)] = await stage.turns(session)
        assert last.error is not None, "the turn after the call is refused"
        assert WORDS in str(last.error)
        with pytest.raises(Invalid, match=WORDS):
            await stage.ask(session, "again")
        with pytest.raises(Invalid, match=WORDS):
            await stage.tk.shell(session, "ls")
        with pytest.raises(Invalid, match=WORDS):
            await stage.tk.compact(session, force=True)
        assert await stage.is_sound(session)


async def test_the_session_goes_on_when_the_directory_is_put_back_or_the_session_is_moved(
    play: Play, swapped: Swapped
) -> None:
    script = Scripted().says("One.").then().says("Two.")
    async with play(script, tools=TOOLS, environ=swapped.environ) as stage:
        session = await stage.session(directory=swapped.source)
        swapped.swap()
        with pytest.raises(Invalid, match=WORDS):
            await stage.ask(session, "go")
        await stage.tk.move(session, swapped.source)
        assert (await stage.ask(session, "go")).reason == "answered"
        assert (await stage.tk.get(session)).directory == str(swapped.victim)


async def test_a_call_that_follows_in_the_same_turn_is_outside_where_the_link_leads(swapped: Swapped) -> None:
    desk = Desk(swapped.source, swapped.source.parent)
    desk.refuse("external_directory")
    swapped.swap()
    for tool, arguments in (("write", {"filePath": "new", "content": "x"}), ("bash", {"command": "touch new"})):
        with pytest.raises(Denied):
            await desk.run(tool, **arguments)
    assert os.listdir(swapped.victim) == []


@needs_kernel
def test_a_command_that_follows_in_the_same_turn_is_not_confined_to_where_the_link_leads(swapped: Swapped) -> None:
    swapped.swap()
    with pytest.raises(OSError, match="has become a link"):
        sandbox.policy("workspace", swapped.source, swapped.source.parent, swapped.environ)


@needs_kernel
async def test_a_command_that_removes_its_repository_does_not_get_the_one_around_it(play: Play, tmp_path: Path) -> None:
    outer, inner = tmp_path.resolve() / "outer", tmp_path.resolve() / "outer/inner"
    inner.mkdir(parents=True)
    (tmp_path / "home").mkdir()
    identity = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for place in (outer, inner):
        subprocess.run(["git", "init", "-q", place], check=True)
        subprocess.run(["git", "-C", place, *identity, "commit", "-q", "--allow-empty", "-m", place.name], check=True)
    # What an interpreter does, no rule about text can see.
    hides = "python3 -c \"import os; os.rename('.git', 'hidden')\""
    takes = "python3 -c \"open('../taken', 'w')\""
    script = Scripted().calls("bash", command=hides).then().calls("bash", command=takes).then()
    environ = {"HOME": str(tmp_path / "home"), "SHELL": "/bin/bash", "TMPDIR": str(tmp_path)}
    async with play(script.says("Done.").forever(), tools=TOOLS, environ=environ) as stage:
        for place in (outer, inner):
            (place / "turnkeeper.json").write_bytes((stage.directory / "turnkeeper.json").read_bytes())
        session = await stage.session(directory=inner)
        await stage.ask(session, "go")
        assert (inner / "hidden").exists()
        assert not (outer / "taken").exists()
        [*_, (last, _)] = await stage.turns(session)
        assert f"the repository {str(inner)!r} of the session is gone" in str(last.error)
        # The user lets the session go on there.
        await stage.tk.move(session, inner)
        await stage.ask(session, "go on")
        assert (outer / "taken").exists()
