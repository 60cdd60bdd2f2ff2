"""Layers beside the plain files: TOML, named directories, hosts; and files that were right and no longer are."""

import json
from pathlib import Path

import pytest

from turnkeeper.core.permission import parse_rules
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import auth, well_known
from turnkeeper.workspace.auth import WellKnown
from turnkeeper.workspace.config import load, project_settings, sources
from turnkeeper.workspace.settings_cache import SettingsCache
from turnkeeper.workspace.trust import TrustedDirectories

LATER = 2**63
"""A start of the program after which no file can have changed."""


class Place:
    """A home and a project, which is trusted."""

    def __init__(self, root: Path) -> None:
        self.home, self.project = root / "home", root / "project"
        self.project.mkdir()
        self.environ = {"HOME": str(self.home), "TURNKEEPER_TRUST": "1"}

    def write(self, name: str, text: str) -> Path:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_references_in_toml_are_filled_also_in_literal_strings(place: Place) -> None:
    place.write(".opencode/key", ' a "quoted" \\ key\n')
    text = """
        # {file:nowhere} in a comment is not looked up
        [provider.local]
        options = {baseURL = "http://h/{env:VERSION}", apiKey = '{file:key}'}
        models."large.1".limit = {context = 1000}
    """
    place.write(".opencode/config.toml", text)
    loaded = load(place.project, place.project, {**place.environ, "VERSION": "v1"})
    provider = loaded.config.provider["local"]
    assert (provider.options.api_key, provider.options.base_url) == ('a "quoted" \\ key', "http://h/v1")
    assert loaded.filled['a "quoted" \\ key'] == "{file:key}"
    assert list(provider.models) == ["large.1"]


def test_the_meaning_of_toml_and_json_is_the_same_value(place: Place) -> None:
    toml = 'model = "a/b"\n[permission]\nbash = {"git *" = "allow", "*" = "ask"}\n[compaction]\ntail_turns = 2\n'
    same = {"model": "a/b", "permission": {"bash": {"git *": "allow", "*": "ask"}}, "compaction": {"tail_turns": 2}}
    file = place.write("turnkeeper.toml", toml)
    first = load(place.project, place.project, place.environ)
    file.unlink()
    place.write("turnkeeper.json", json.dumps(same))
    second = load(place.project, place.project, place.environ)
    assert first.config == second.config
    assert parse_rules(first.config.permission, "/h") == parse_rules(second.config.permission, "/h")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("model = \n", "1:9: Invalid value"),
        ("a = 1\na = 2\n", "2:6: Cannot overwrite a value"),
        ("[compaction]\nreserved = nan\n", " nan is no number of a setting"),
        (
            "[permission]\n\nbsh = 'ask'\n",
            "3:1: permission.bsh: there is no tool or permission 'bsh'; did you mean 'bash'?",
        ),
        ("model = '{file:gone}'\n", "1:10: {file:gone} cannot be read"),
    ],
)
def test_a_mistake_in_toml_is_named_with_its_line(place: Place, text: str, message: str) -> None:
    file = place.write(".turnkeeper/config.toml", text)
    with pytest.raises(Invalid) as caught:
        load(place.project, place.project, place.environ)
    assert str(caught.value).startswith(f"{file}:{message}")


def test_a_date_of_toml_is_its_text(place: Place) -> None:
    place.write("turnkeeper.toml", "[provider.x.models.m]\nrelease_date = 2026-01-31\n")
    loaded = load(place.project, place.project, place.environ)
    assert loaded.config.provider["x"].models["m"].release_date == "2026-01-31"


def test_a_named_directory_is_the_users_own_and_stronger_than_the_project(place: Place, tmp_path: Path) -> None:
    place.write("turnkeeper.json", '{"model": "p/project", "sandbox": "read-only"}')
    named = tmp_path / "named"
    (named / "agents").mkdir(parents=True)
    (named / "opencode.json").write_text('{"model": "p/named", "sandbox": "off"}')
    (named / "agents" / "recorder.md").write_text("---\ndescription: Writes\n---\nYou write.\n")
    for variable in ("OPENCODE_CONFIG_DIR", "TURNKEEPER_CONFIG_DIR"):
        environ = {"HOME": str(place.home), variable: str(named)}
        loaded = load(place.project, place.project, environ)
        assert loaded.config.model == "p/named"
        assert loaded.config.agent["recorder"].prompt == "You write."
        assert loaded.merged["sandbox"] == {"mode": "off"}


def published(place: Place, **config: object) -> None:
    auth.file(place.environ).write("https://host.example/", WellKnown(key="HOST_TOKEN", token="t0ken"))
    well_known.file(place.environ).change(lambda before: {"https://host.example": config})


def test_what_a_host_publishes_is_stronger_than_the_user_and_weaker_than_the_project(place: Place) -> None:
    published(place, model="p/host", small_model="p/host", provider={"h": {"options": {"apiKey": "{env:HOST_TOKEN}"}}})
    own = place.home / ".config/opencode/opencode.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"model": "p/own", "small_model": "p/own", "default_agent": "plan"}')
    place.write("opencode.json", '{"model": "p/project"}')
    loaded = load(place.project, place.project, place.environ)
    config = loaded.config
    assert (config.model, config.small_model, config.default_agent) == ("p/project", "p/host", "plan")
    assert config.provider["h"].options.api_key == "t0ken"
    assert loaded.explain("small_model") == "https://host.example/.well-known/opencode"
    auth.file(place.environ).remove("https://host.example/")
    assert load(place.project, place.project, place.environ).config.small_model == "p/own"


def test_what_a_host_publishes_is_noticed_by_the_cache(place: Place) -> None:
    cache = SettingsCache(place.environ, started_ns=LATER)
    assert cache.load(place.project, place.project).config.model is None
    published(place, model="p/host")
    assert cache.load(place.project, place.project).config.model == "p/host"
    well_known.file(place.environ).change(lambda before: {"https://host.example": {"model": "p/newer"}})
    assert cache.load(place.project, place.project).config.model == "p/newer"


# --- Files that were right -----------------------------------------------------------------------------------


BROKEN = ['{"model": ', '{"permission": {"bsh": "deny"}}', '{"sandbox": 3}', '{"model": "{file:gone}"}']


@pytest.mark.parametrize("broken", BROKEN)
def test_a_file_that_is_broken_later_keeps_its_last_good_settings(place: Place, broken: str) -> None:
    cache = SettingsCache(place.environ, started_ns=LATER)
    file = place.write("turnkeeper.json", '{"model": "a/one", "permission": {"bash": "deny"}}')
    good = cache.load(place.project, place.project)
    place.write("turnkeeper.json", broken)
    kept = cache.load(place.project, place.project)
    assert (kept.config, good.kept) == (good.config, ())
    [problem] = kept.kept
    assert problem.startswith(str(file))
    other = place.write("opencode.json", '{"small_model": "a/small"}')
    assert cache.load(place.project, place.project).config.small_model == "a/small"
    place.write("turnkeeper.json", '{"model": "a/two"}')
    mended = cache.load(place.project, place.project)
    assert (mended.config.model, mended.config.permission, mended.kept) == ("a/two", None, ())
    other.unlink()


@pytest.mark.parametrize("broken", BROKEN)
def test_a_file_that_never_was_right_is_refused(place: Place, broken: str) -> None:
    cache = SettingsCache(place.environ, started_ns=LATER)
    place.write("turnkeeper.json", broken)
    for _ in range(2):
        with pytest.raises(Invalid, match=r"turnkeeper\.json"):
            cache.load(place.project, place.project)


def test_the_last_good_settings_end_with_the_trust_in_them(place: Place) -> None:
    environ = {"HOME": str(place.home)}
    place.write("turnkeeper.json", '{"model": "a/one"}')
    trusted, cache = TrustedDirectories(environ), SettingsCache(environ)
    trusted.add(place.project, settings=project_settings(place.project, place.project, environ).contents)
    assert cache.load(place.project, place.project).config.model == "a/one"
    place.write("turnkeeper.json", '{"model": ')
    assert cache.load(place.project, place.project).config.model == "a/one"
    trusted.remove(place.project)
    with pytest.raises(Invalid):
        cache.load(place.project, place.project)


def test_several_errors_are_counted(place: Place) -> None:
    place.write("turnkeeper.json", '{"permission": {"bsh": "deny", "raed": "ask"}}')
    with pytest.raises(Invalid, match=r"'bsh'.* \(and 1 more; `turnkeeper config check` lists them\)"):
        load(place.project, place.project, place.environ)


# --- Rules that name a tool ------------------------------------------------------------------------------------


def test_a_rule_may_name_a_tool_of_the_projects_own(place: Place) -> None:
    place.write("turnkeeper.json", '{"permission": {"weather": "ask", "sky": "deny", "forecast": "ask"}}')
    tool = '@tool(permission="sky")\ndef weather(): ...\n'
    place.write(".turnkeeper/tools/mine.py", f"raise SystemExit\nfrom turnkeeper import tool\n{tool}")
    place.write(".opencode/tool/forecast.ts", "export default {}")
    assert load(place.project, place.project, place.environ).warnings == []


@pytest.mark.parametrize(
    "settings",
    [
        {"mcp": {"my server": {"type": "remote", "url": "http://h"}}, "permission": {"my_server_find": "ask"}},
        {"permission": {"mymcp_*": "deny"}},
    ],
)
def test_a_rule_may_name_tools_that_come_later(place: Place, settings: object) -> None:
    place.write("opencode.json", json.dumps(settings))
    assert load(place.project, place.project, place.environ).warnings == []


def test_where_there_are_plugins_an_unknown_name_is_only_a_warning(place: Place) -> None:
    file = place.write("opencode.json", '{"plugin": ["some-plugin"], "permission": {"delegate": "deny"}}')
    [warning] = load(place.project, place.project, place.environ).warnings
    assert warning.startswith(f"{file}:1:44: permission.delegate: there is no tool or permission 'delegate'")


@pytest.mark.parametrize(
    ("names", "is_error"),
    [((), True), (("README.md", "_draft.py"), True), (("mine.py",), False), (("theirs.ts",), False)],
)
def test_a_folder_of_plugins_counts_only_with_a_plugin_in_it(
    place: Place, names: tuple[str, ...], is_error: bool
) -> None:
    (place.project / ".turnkeeper/plugins").mkdir(parents=True)
    for name in names:
        place.write(f".turnkeeper/plugins/{name}", "")
    place.write("turnkeeper.json", '{"permission": {"delegate": "deny"}}')
    found = [one for source in sources(place.project, place.project, place.environ) for one in source.problems]
    assert [(one.path, one.is_error) for one in found] == [(("permission", "delegate"), is_error)]


def test_a_rule_may_name_a_tool_of_the_program(place: Place) -> None:
    place.write("turnkeeper.json", '{"permission": {"weather": "ask"}}')
    cache = SettingsCache(place.environ, started_ns=LATER, tools=lambda: {"weather"})
    assert cache.load(place.project, place.project).config.permission == {"weather": "ask"}
