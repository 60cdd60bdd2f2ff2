"""Configuration files are found where they may stand, and the nearer one wins."""

import os
from pathlib import Path

import pytest

from turnkeeper.model.config import SandboxConfig
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace.config import LoadedSettings, load
from turnkeeper.workspace.setting_files import CodeDirectory
from turnkeeper.workspace.setting_references import FILE_BYTES_MAX
from turnkeeper.workspace.settings_cache import SettingsCache

LATER = 2**63
"""A start of the program after which no file can have changed."""


class Place:
    """A home and a project with a directory in it."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        self.worktree = root / "project"
        self.directory = self.worktree / "web" / "app"
        self.directory.mkdir(parents=True)
        self.environ = {"HOME": str(self.home), "TURNKEEPER_TRUST": "1"}

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def load(self, **environ: str) -> LoadedSettings:
        return load(self.directory, self.worktree, {**self.environ, **environ})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_without_any_file_nothing_is_set(place: Place) -> None:
    loaded = place.load()
    assert (loaded.merged, loaded.sources, loaded.config.model) == ({}, (), None)


@pytest.mark.parametrize("name", ["Mars/Olympus", "../x", ""])
def test_a_timezone_that_does_not_exist_is_left_out_with_its_line(place: Place, name: str) -> None:
    file = place.write(place.worktree / "turnkeeper.json", f'{{"model": "a/b",\n "timezone": "{name}"}}')
    loaded = place.load()
    assert (loaded.config.timezone, loaded.config.model) == (None, "a/b")
    assert loaded.warnings == [f"{file}:2:2: timezone {name!r} is not known; write it like Europe/Berlin"]
    place.write(file, '{"timezone": "Europe/Berlin"}')
    assert place.load().config.timezone == "Europe/Berlin"


def test_the_nearer_file_wins(place: Place) -> None:
    """Each place in turn, weakest first: what is added later is what holds."""
    ours, theirs = place.home / ".config/turnkeeper", place.home / ".config/opencode"
    places = [
        theirs / "config.json",
        theirs / "opencode.json",
        theirs / "opencode.jsonc",
        ours / "config.json",
        ours / "config.toml",
        ours / "turnkeeper.json",
        ours / "turnkeeper.jsonc",
        ours / "turnkeeper.toml",
        place.worktree / "opencode.json",
        place.worktree / "opencode.jsonc",
        place.worktree / "turnkeeper.json",
        place.worktree / "turnkeeper.jsonc",
        place.worktree / "turnkeeper.toml",
        place.worktree / "web" / "opencode.json",
        place.directory / "opencode.json",
        place.directory / "turnkeeper.json",
        place.worktree / ".opencode" / "config.toml",
        place.worktree / ".opencode" / "opencode.json",
        place.worktree / ".turnkeeper" / "turnkeeper.json",
        place.directory / ".opencode" / "opencode.jsonc",
        place.directory / ".turnkeeper" / "turnkeeper.json",
    ]
    for number, path in enumerate(places):
        place.write(path, f'model = "p/{number}"' if path.suffix == ".toml" else f'{{"model": "p/{number}"}}')
        loaded = place.load()
        assert (loaded.config.model, loaded.explain("model")) == (f"p/{number}", str(path))
    assert [source.where for source in loaded.sources] == [str(path) for path in places]


def test_named_files_and_variables_are_stronger_than_the_project(place: Place) -> None:
    place.write(place.directory / "turnkeeper.json", '{"model": "p/project"}')
    theirs = place.write(place.home / "a.json", '{"model": "p/a"}')
    ours = place.write(place.home / "b.json", '{"model": "p/b"}')
    environ = {"OPENCODE_CONFIG": str(theirs)}
    assert place.load(**environ).config.model == "p/a"
    environ["TURNKEEPER_CONFIG"] = str(ours)
    assert place.load(**environ).config.model == "p/b"
    environ["OPENCODE_CONFIG_CONTENT"] = '{"model": "p/c",}'
    assert place.load(**environ).config.model == "p/c"
    environ["TURNKEEPER_CONFIG_CONTENT"] = '{"model": "p/d"} // yes'
    assert place.load(**environ).config.model == "p/d"


def test_the_user_may_widen_the_sandbox_and_a_projects_own_files_may_not(place: Place) -> None:
    project = place.write(place.worktree / "turnkeeper.json", '{"sandbox": {"mode": "off", "write": ["/"]}}')
    place.write(place.directory / ".opencode/opencode.json", '{"sandbox": "off"}')
    assert place.load().config.sandbox == SandboxConfig()
    place.write(place.home / ".config/turnkeeper/turnkeeper.json", '{"sandbox": {"write": ["~/notes"]}}')
    place.write(project, '{"sandbox": "read-only"}')
    assert place.load().config.sandbox == SandboxConfig(mode="read-only", write=("~/notes",))
    variable = place.load(TURNKEEPER_CONFIG_CONTENT='{"sandbox": "off"}').config.sandbox
    assert variable == SandboxConfig(mode="off", write=("~/notes",))


def test_permissions_from_the_environment_are_added_last(place: Place) -> None:
    place.write(place.directory / "turnkeeper.json", '{"permission": "ask"}')
    loaded = place.load(OPENCODE_PERMISSION='{"bash": "allow"}')
    assert loaded.config.permission == {"*": "ask", "bash": "allow"}


def test_a_projects_files_can_be_left_out(place: Place) -> None:
    place.write(place.directory / "turnkeeper.json", '{"model": "p/project"}')
    assert place.load(OPENCODE_DISABLE_PROJECT_CONFIG="1").config.model is None


def test_files_above_the_worktree_are_not_read(place: Place) -> None:
    place.write(place.worktree.parent / "opencode.json", '{"model": "p/outside"}')
    assert place.load().config.model is None


def test_a_directory_outside_the_worktree_has_its_own_file(place: Place, tmp_path: Path) -> None:
    place.write(tmp_path / "elsewhere" / "opencode.json", '{"model": "p/here"}')
    assert load(tmp_path / "elsewhere", place.worktree, place.environ).config.model == "p/here"


def test_references_are_filled_from_the_environment_and_from_files(place: Place) -> None:
    place.write(place.worktree / "keys" / "one", '  a "quoted" key\n')
    place.write(place.home / "two", "tilde")
    place.write(
        place.worktree / "opencode.jsonc",
        """{
          // {file:nowhere} in a comment is not looked up
          "provider": {"x": {"options": {"apiKey": "{file:keys/one}", "baseURL": "http://{env:HOST}/{env:NONE}v1"},
                             "name": "{file:~/two}", "models": {"m": {"limit": {"context": {env:SIZE}}}}}}
        }""",
    )
    provider = place.load(HOST='h"\\', SIZE="4096").config.provider["x"]
    assert provider.options.api_key == 'a "quoted" key'
    assert provider.options.base_url == 'http://h"\\/v1'
    assert provider.name == "tilde"
    limit = provider.models["m"].limit
    assert limit is not None
    assert limit.context == 4096


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n  "model": p\n}', "2:12: Expecting value"),
        ('{"permission": {"bash": "never"}}', "1:17: permission.bash: Invalid enum value 'never'; use one of"),
        ('{"sandbox": {\n"network": "no"}}', "2:1: sandbox.network: Expected `bool | null`, got `str`"),
        ('{"agent": {"plan": {"tools": [1]}}}', "1:21: agent.plan.tools: Expected `object | null`, got `array`"),
        ('{"permission": {"bsh": "deny"}}', "1:17: permission.bsh: there is no tool or permission 'bsh'; did you mean"),
        ('{"model": "{file:gone.txt}"}', "1:12: {file:gone.txt} cannot be read"),
        ('"text"', " expected an object of settings"),
    ],
)
def test_a_broken_file_is_named(place: Place, text: str, message: str) -> None:
    path = place.write(place.directory / "turnkeeper.json", text)
    with pytest.raises(Invalid) as caught:
        place.load()
    assert str(caught.value).startswith(f"{path}:{message}")


def test_a_named_file_that_is_not_there_is_a_mistake(place: Place) -> None:
    with pytest.raises(Invalid, match=r"gone\.json: cannot be read"):
        place.load(TURNKEEPER_CONFIG="gone.json")


def test_an_empty_file_sets_nothing(place: Place) -> None:
    place.write(place.directory / "turnkeeper.json", "// nothing yet\n")
    assert place.load().merged == {}


def test_reading_the_settings_writes_nothing(place: Place) -> None:
    path = place.write(place.directory / "opencode.json", '{"model": "p/m"}')
    before = sorted(place.worktree.rglob("*"))
    place.load()
    assert sorted(place.worktree.rglob("*")) == before
    assert path.read_text() == '{"model": "p/m"}'
    assert not place.home.exists()


def test_what_was_loaded_never_shows_a_key(place: Place) -> None:
    place.write(place.directory / "opencode.json", '{"provider": {"x": {"options": {"apiKey": "s3cret"}}}}')
    loaded = place.load()
    assert loaded.explain("provider.x.options.apiKey") == str(place.directory / "opencode.json")
    assert loaded.explain("provider.y") is None
    assert "s3cret" not in repr(loaded) + repr(loaded.config) + repr(loaded.sources)


def test_settings_are_read_again_only_when_a_file_changed(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home"), "TURNKEEPER_TRUST": "1"}
    file = tmp_path / "turnkeeper.json"
    file.write_text('{"model": "a/one"}')
    reader = SettingsCache(environ, started_ns=LATER)
    first = reader.load(tmp_path, tmp_path)
    assert reader.load(tmp_path, tmp_path) is first
    file.write_text('{"model": "a/other"}')
    assert reader.load(tmp_path, tmp_path).config.model == "a/other"
    (tmp_path / "opencode.json").write_text('{"small_model": "a/small"}')
    assert reader.load(tmp_path, tmp_path).config.small_model == "a/small"


def test_a_settings_folder_that_appears_is_read_and_one_that_goes_is_forgotten(tmp_path: Path) -> None:
    reader = SettingsCache({"HOME": str(tmp_path / "home"), "TURNKEEPER_TRUST": "1"}, started_ns=LATER)
    places = [tmp_path / ".turnkeeper", tmp_path / "home" / ".config" / "opencode"]
    for number, folder in enumerate(places):
        assert reader.load(tmp_path, tmp_path).config.model is None
        folder.mkdir(parents=True)
        assert reader.load(tmp_path, tmp_path).config.model is None
        (folder / "opencode.json").write_text(f'{{"model": "a/{number}"}}')
        assert reader.load(tmp_path, tmp_path).config.model == f"a/{number}"
        (folder / "opencode.json").unlink()
        folder.rmdir()
    assert reader.load(tmp_path, tmp_path).config.model is None


def test_a_look_finds_the_directories_of_settings_that_are_there_now(tmp_path: Path) -> None:
    reader = SettingsCache({"HOME": str(tmp_path / "home")})
    own, project = tmp_path / "home" / ".config" / "turnkeeper", tmp_path / ".turnkeeper"
    assert reader.load(tmp_path, tmp_path).directories == ()
    own.mkdir(parents=True)
    assert reader.load(tmp_path, tmp_path).directories == (CodeDirectory(own, False),)
    project.mkdir()
    assert reader.load(tmp_path, tmp_path).directories == (CodeDirectory(own, False), CodeDirectory(project, True))
    own.rmdir()
    assert reader.load(tmp_path, tmp_path).directories == (CodeDirectory(project, True),)


def test_settings_that_name_a_variable_or_a_file_are_read_each_time(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "home"), "MODEL": "a/one", "TURNKEEPER_TRUST": "1"}
    (tmp_path / "turnkeeper.json").write_text('{"model": "{env:MODEL}"}')
    reader = SettingsCache(environ)
    assert reader.load(tmp_path, tmp_path).config.model == "a/one"
    environ["MODEL"] = "a/other"
    assert reader.load(tmp_path, tmp_path).config.model == "a/other"


@pytest.mark.parametrize("kind", ["pipe", "device", "huge", "directory"])
def test_a_file_reference_to_anything_but_a_small_file_is_refused_and_never_waits(place: Place, kind: str) -> None:
    named = place.directory / "named"
    match kind:
        case "pipe":
            os.mkfifo(named)
        case "device":
            named.symlink_to("/dev/zero")
        case "huge":
            with named.open("wb") as file:
                file.truncate(FILE_BYTES_MAX + 1)
        case _:
            named.mkdir()
    place.write(place.directory / "opencode.json", '{"model": "{file:named}"}')
    with pytest.raises(Invalid, match="file:named"):
        place.load()


@pytest.mark.parametrize("kind", ["directory", "pipe", "loop"])
def test_settings_that_are_no_file_are_refused_and_not_passed_over(place: Place, kind: str) -> None:
    file = place.directory / "opencode.json"
    match kind:
        case "directory":
            file.mkdir()
        case "pipe":
            os.mkfifo(file)
        case _:
            file.symlink_to(file)
    with pytest.raises(Invalid, match=r"opencode\.json"):
        place.load()


def test_a_misspelt_key_is_named_at_every_depth_with_the_setting_that_is_meant(place: Place) -> None:
    text = """{
        "sandbox": {"netwrok": false, "mode": "read-only"}, "ask": {"timeuot": 3}, "webfetch": {"privat": true},
        "formatter": {"mine": {"comand": ["x"]}}, "agent": {"build": {"permision": {"bash": "deny"}}},
        "permission": {"bash": "deny"}, "theme": "dark"
    }"""
    meant = [
        ("2:21", "sandbox.netwrok", "sandbox.network"),
        ("2:69", "ask.timeuot", "ask.timeout"),
        ("2:97", "webfetch.privat", "webfetch.private"),
        ("3:32", "formatter.mine.comand", "formatter.mine.command"),
        ("3:71", "agent.build.permision", "agent.build.permission"),
    ]
    files = [place.home / ".config/turnkeeper/turnkeeper.json", place.worktree / "turnkeeper.json"]
    for trusted in ("1", "0"):
        for file in files:
            place.write(file, text)
        loaded = place.load(TURNKEEPER_TRUST=trusted)
        assert [one.warnings for one in loaded.sources] == [
            [f"{file}:{at}: there is no setting {key!r}; did you mean {known!r}?" for at, key, known in meant]
            for file in files
        ]
