"""What is known of a directory: every change to its settings, and to where it belongs, is seen by the next question."""

import os
import subprocess
from pathlib import Path

import pytest

from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.provider import Provider
from turnkeeper.run.configured import DirectoryConfig
from turnkeeper.run.directories import Directories
from turnkeeper.workspace.config import project_settings
from turnkeeper.workspace.trust import TrustedDirectories


def no_network(endpoint: Endpoint) -> Provider:
    raise AssertionError(endpoint)


class Asked:
    """A directory, and what is known of it at each question."""

    def __init__(self, home: Path) -> None:
        self.home, self.place = home, home / "work"
        self.place.mkdir()
        self.environ = {"HOME": str(home), "PATH": os.environ["PATH"], "TURNKEEPER_TRUST": "1"}
        self._directories = Directories(no_network, list, self.environ)

    def trust(self, directory: Path, file: Path) -> None:
        TrustedDirectories(self.environ).add(directory, settings={file: file.read_bytes()})

    async def agent(self) -> str:
        return (await self._directories.resolve(str(self.place))).config.agent(None).name

    async def worktree(self) -> Path:
        return (await self._directories.resolve(str(self.place))).place.worktree


async def test_what_is_known_of_a_directory_is_let_go_where_there_are_many(tmp_path: Path) -> None:
    places = [tmp_path / name for name in ("one", "two", "three")]
    for place in places:
        place.mkdir()
    directories = Directories(no_network, list, {"HOME": str(tmp_path)}, directories_max=2)

    async def at(place: Path) -> DirectoryConfig:
        return (await directories.resolve(str(place))).config

    first, second = [await at(place) for place in places[:2]]
    assert [await at(place) for place in places[:2]] == [first, second]
    await at(places[2])
    assert await at(places[1]) is second
    assert await at(places[0]) is not first


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path.resolve())


@pytest.mark.parametrize("name", ["work/opencode.json", "turnkeeper.json", "work/.turnkeeper/turnkeeper.jsonc"])
async def test_settings_are_seen_when_they_come_change_and_go(
    asked: Asked, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = asked.home / name
    file.parent.mkdir(exist_ok=True)
    assert [await asked.agent() for _ in range(2)] == ["build", "build"]
    file.write_text('{"default_agent": "plan"}')
    asked.trust(file.parent, file)
    assert [await asked.agent() for _ in range(2)] == ["plan", "plan"]
    file.write_text('{"default_agent": "none"}')
    asked.trust(file.parent, file)
    assert [await asked.agent() for _ in range(2)] == ["build", "build"]
    assert [one.message for one in caplog.records if "default_agent" in one.message] == [
        "default_agent 'none' is not an agent that answers prompts; build is used instead"
    ]
    file.unlink()
    assert await asked.agent() == "build"


async def test_the_users_own_settings_are_seen_though_their_folder_came_later(asked: Asked) -> None:
    assert await asked.agent() == "build"
    folder = asked.home / ".config" / "turnkeeper"
    folder.mkdir(parents=True)
    (folder / "turnkeeper.json").write_text('{"default_agent": "plan"}')
    assert await asked.agent() == "plan"


async def test_a_changed_variable_is_seen_at_once(asked: Asked) -> None:
    assert await asked.agent() == "build"
    asked.environ["TURNKEEPER_CONFIG_CONTENT"] = '{"default_agent": "plan"}'
    assert await asked.agent() == "plan"


async def test_settings_that_refer_to_a_file_are_read_each_time(asked: Asked) -> None:
    (asked.place / "opencode.json").write_text('{"default_agent": "{file:who}"}')
    (asked.home / "work" / "who").write_text("plan")
    TrustedDirectories(asked.environ).add(
        asked.place, settings=project_settings(asked.place, asked.place, asked.environ).contents
    )
    assert await asked.agent() == "plan"
    (asked.home / "work" / "who").write_text("build")
    assert await asked.agent() == "build"


async def test_a_repository_that_comes_to_be_around_it_is_seen(asked: Asked) -> None:
    file = asked.home / "opencode.json"
    file.write_text('{"default_agent": "plan"}')
    asked.trust(asked.home, file)
    assert (await asked.worktree(), await asked.agent()) == (Path(asked.home.anchor), "plan")
    subprocess.run(["git", "init", "-q"], cwd=asked.place, env=asked.environ, check=True)
    assert (await asked.worktree(), await asked.agent()) == (asked.place, "build")
