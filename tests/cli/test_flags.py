"""Every environment variable of the table does something: each by each of its names."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from workshop import Shop

from turnkeeper.cli import log_lines
from turnkeeper.cli.chat.modes import mode
from turnkeeper.core import flags
from turnkeeper.core.command_environ import command_environ
from turnkeeper.core.flags import FLAGS, WITHOUT_EFFECT, Flag
from turnkeeper.core.sharing import share_settings
from turnkeeper.core.window import window
from turnkeeper.interop.opencode import default_path
from turnkeeper.model.config import CompactionConfig, Config
from turnkeeper.providers.refresh import address, catalogue_file
from turnkeeper.providers.transport import Network
from turnkeeper.workspace import auth, formatters, lsp_commands, paths
from turnkeeper.workspace.config import load
from turnkeeper.workspace.instructions import discover
from turnkeeper.workspace.project import identify

ROOT: Final = Path(__file__).resolve().parents[2]

Effect = Callable[[Shop, str], object]
"""What a flag is asked for, under one of its names; it is given a value that the table names."""


def settings(shop: Shop, **environ: str) -> Config:
    (shop.home / "named").mkdir(exist_ok=True)
    (shop.home / "named/turnkeeper.json").write_text('{"model": "p/named"}')
    shop.configure(model="p/project")
    return load(shop.project, shop.project, shop.environ(**environ)).config


def loads(value: str, model: str) -> Effect:
    def holds(shop: Shop, name: str) -> object:
        given = value.replace("HOME", str(shop.home))
        return (settings(shop, **{name: given}).model, settings(shop).model) == (model, "p/project")

    return holds


def permission(shop: Shop, name: str) -> object:
    return settings(shop, **{name: '{"bash": "deny"}'}).permission == {"bash": "deny"}


def window_of(value: str, read: Callable[[object], object]) -> Effect:
    return lambda shop, name: read(window(CompactionConfig(), {name: value})) != read(window(CompactionConfig(), {}))


def process(words: str, value: str, seen: str) -> Effect:
    """A command prints this if the variable is set, and else does not."""

    def prints(shop: Shop, name: str) -> object:
        given = value.replace("HOME", str(shop.home)).replace("PROJECT", str(shop.project))
        runs = [shop.process(*words.split(), **environ) for environ in ({name: given}, {})]
        found = [seen.replace("HOME", str(shop.home)) in run.stdout + run.stderr for run in runs]
        return found == [True, False]

    return prints


def instructions(shop: Shop, name: str, file: Path) -> object:
    import anyio

    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("Be kind.")
    place = anyio.run(identify, shop.project)
    found = [
        [source.name for source in discover(place, (), (), environ, shop.home)]
        for environ in (shop.environ(**{name: "1"}), shop.environ())
    ]
    return (str(file) in found[0], str(file) in found[1]) == (False, True)


def tools(shop: Shop, name: str) -> object:
    folder = shop.home / ".config/turnkeeper/tools"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "mine.py").write_text("print('loaded')\n")
    runs = [shop.process("run", "-m", "offline/tk-1", "hello", **environ) for environ in ({name: "1"}, {})]
    return ["loaded" in run.stdout for run in runs] == [False, True]


def timeout(shop: Shop, name: str) -> object:
    run = shop.process("run", "-m", "offline/tk-1", "run `sleep 30`", **{name: "200"})
    return "stopped after 0.2 s" in run.stdout + run.stderr


def models(shop: Shop, name: str) -> object:
    file = shop.home / "models.json"
    acme = {
        "id": "acme",
        "name": "Acme of the file",
        "env": ["A"],
        "npm": "@ai-sdk/openai",
        "models": {"m": {"name": "M"}},
    }
    file.write_text(json.dumps({"acme": acme}))
    assert catalogue_file({name: str(file), "HOME": str(shop.home)}) == file
    return "Acme of the file" in shop.process("models", "acme", **{name: str(file)}).stdout


def logged(value: str, told: list[bool]) -> Effect:
    """Whether a warning and a remark are logged if the variable is set, and if it is not."""

    def holds(shop: Shop, name: str) -> object:
        shop.configure(modle="a/b", plugin=["opencode-tides@1"])
        runs = [shop.process("run", "-m", "offline/tk-1", "hello", **given) for given in ({name: value}, {})]
        assert [run.returncode for run in runs] == [0, 0]
        return [words in run.stderr for run in runs for words in ("did you mean 'model'", "JavaScript")] == told

    return holds


def language_server(shop: Shop, name: str) -> object:
    for program in ("ty", "pyright-langserver"):
        (shop.home / program).write_text("#!/bin/sh\n")
        (shop.home / program).chmod(0o700)
    environs = ({"PATH": str(shop.home), name: "1"}, {"PATH": str(shop.home)})
    return [[one.name for one in lsp_commands.configured(True, environ)] for environ in environs] == [
        ["ty"],
        ["pyright"],
    ]


def home(shop: Shop, name: str) -> object:
    file = shop.home / "other/.config/turnkeeper/turnkeeper.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('{"model": "p/other"}')
    return process("config show", "HOME/other", "p/other")(shop, name)


def credentials(shop: Shop, name: str) -> object:
    environ = shop.environ(**{name: '{"acme": {"type": "api", "key": "k3y"}}'})
    told = command_environ(environ, (), tuple)
    return (list(auth.credentials(environ).stored), name in told) == (["acme"], False)


def screen_mode(environ: dict[str, str]) -> str:
    return mode(environ, 80, 24, is_plain=False, has_textual=True)


EFFECTS: Final[dict[Flag, Effect]] = {
    flags.DATA: lambda shop, name: paths.data({name: "/srv/tk", "HOME": "/h"}) == Path("/srv/tk"),
    flags.STORE: process("db path", "sqlite:HOME/other.db", "other.db"),
    flags.CONFIG: loads("HOME/named/turnkeeper.json", "p/named"),
    flags.CONFIG_DIR: loads("HOME/named", "p/named"),
    flags.CONFIG_CONTENT: loads('{"model": "p/content"}', "p/content"),
    flags.PERMISSION: permission,
    flags.DISABLE_PROJECT_CONFIG: lambda shop, name: settings(shop, **{name: "true"}).model is None,
    flags.TRUST: lambda shop, name: settings(shop, **{name: "0"}).model is None,
    flags.AUTH_CONTENT: credentials,
    flags.MODELS_PATH: models,
    flags.MODELS_URL: lambda shop, name: address(None, {name: "http://h/models"}) == "http://h/models",
    flags.DISABLE_MODELS_FETCH: process("models --refresh http://127.0.0.1:9/", "1", "so no catalogue is fetched"),
    flags.SERVER: process("session list", "http://127.0.0.1:9", "127.0.0.1:9"),
    flags.PLAIN: lambda shop, name: (
        [screen_mode({"TERM": "xterm", **given}) for given in ({name: "1"}, {})] == ["editor", "screen"]
    ),
    flags.DISABLE_AUTOCOMPACT: window_of("1", lambda made: made.auto),  # type: ignore[attr-defined]  # A Window.
    flags.DISABLE_PRUNE: window_of("TRUE", lambda made: made.prune),  # type: ignore[attr-defined]  # A Window.
    flags.OUTPUT_TOKEN_MAX: window_of("500", lambda made: made.output_max),  # type: ignore[attr-defined]  # A Window.
    flags.BASH_TIMEOUT: timeout,
    flags.DISABLE_CLAUDE_CODE: lambda shop, name: instructions(shop, name, shop.project / "CLAUDE.md"),
    flags.DISABLE_CLAUDE_CODE_PROMPT: lambda shop, name: instructions(shop, name, shop.home / ".claude/CLAUDE.md"),
    flags.PURE: tools,
    flags.DISABLE_WATCHER: lambda shop, name: (
        [flags.watches({"TURNKEEPER_WATCHER": "1", **more}) for more in ({name: "1"}, {})] == [False, True]
    ),
    flags.LOG_LEVEL: logged("ERROR", [False, False, True, False]),
    flags.PRINT_LOGS: logged("1", [True, True, True, False]),
    flags.LSP_TY: language_server,
    flags.OXFMT: lambda shop, name: (
        ["oxfmt" in [one.name for one in formatters.configured(True, given)] for given in ({name: "1"}, {})]
        == [True, False]
    ),
    flags.TEST_HOME: home,
    flags.AUTO_SHARE: lambda shop, name: share_settings(Config(), {name: "1"}).mode == "auto",
    flags.DISABLE_SHARE: lambda shop, name: share_settings(Config(share="auto"), {name: "1"}).mode == "disabled",
    flags.OFFLINE_PAUSE: lambda shop, name: (Network({name: "250"}).pause_s, Network({}).pause_s) == (0.25, 0),
    flags.DATABASE: lambda shop, name: default_path({name: "/srv/o.db", "HOME": "/h"}) == Path("/srv/o.db"),
}
ELSEWHERE: Final[dict[Flag, str]] = {
    flags.SERVER_PASSWORD: "tests/server/test_config_changes.py",
    flags.SERVER_USERNAME: "tests/server/test_config_changes.py",
    flags.DISABLE_CLAUDE_CODE_SKILLS: "tests/workspace/test_skill_files.py",
    flags.DISABLE_EXTERNAL_SKILLS: "tests/workspace/test_skill_files.py",
    flags.FAKE_VCS: "tests/workspace/test_project.py",
    flags.WATCHER: "tests/server/test_config_changes.py",
    flags.RECORD: "tests/testing/test_recording.py",
    flags.CRASH: "tests/cli/test_read_only.py",
}
"""Flags whose effect takes a server, a terminal or a kill, and the tests of that."""


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("flag", "name"), [(flag, name) for flag in EFFECTS for name in flag.names])
def test_a_flag_does_what_it_says(flag: Flag, name: str, shop: Shop) -> None:
    assert EFFECTS[flag](shop, name)


def test_every_flag_is_tested() -> None:
    assert {*EFFECTS, *ELSEWHERE} == set(FLAGS)
    for flag, file in ELSEWHERE.items():
        assert any(name in (ROOT / file).read_text("utf-8") for name in flag.names), (flag.names, file)


def test_every_variable_in_the_source_is_in_the_table() -> None:
    known = {name for flag in FLAGS for name in flag.names} | set(WITHOUT_EFFECT)
    for file in (ROOT / "src").rglob("*.py"):
        found = set(re.findall(r"\b(?:OPENCODE|TURNKEEPER)_[A-Z_]*[A-Z]\b", file.read_text("utf-8")))
        assert found - known - {"OPENCODE_REMEMBERED"} == set(), file


def test_no_variable_is_named_twice() -> None:
    names = [name for flag in FLAGS for name in flag.names]
    assert len(names) == len(set(names))
    assert not set(names) & set(WITHOUT_EFFECT)


@pytest.mark.parametrize(
    ("value", "is_on", "number"),
    [
        ("1", True, 1),
        ("TRUE", True, None),
        ("0", False, None),
        ("", False, None),
        ("250", False, 250),
        ("-3", False, None),
    ],
)
def test_a_switch_is_one_or_true_and_a_number_is_positive(value: str, is_on: bool, number: int | None) -> None:
    flag, environ = flags.DISABLE_PRUNE, {"TURNKEEPER_DISABLE_PRUNE": value}
    assert (flag.is_on(environ), flag.number(environ)) == (is_on, number)


def test_the_second_name_counts() -> None:
    environ = {"OPENCODE_CONFIG": "a", "TURNKEEPER_CONFIG": "b"}
    assert (flags.CONFIG.values(environ), flags.CONFIG.value(environ)) == (["a", "b"], "b")


@pytest.mark.parametrize(
    ("environ", "level"),
    [
        ({}, None),
        ({"OPENCODE_LOG_LEVEL": "WARN"}, "warning"),
        ({"OPENCODE_LOG_LEVEL": "debug", "TURNKEEPER_LOG_LEVEL": "error"}, "error"),
        ({"TURNKEEPER_LOG_LEVEL": "loud"}, None),
        ({"TURNKEEPER_LOG_LEVEL": "error", "TURNKEEPER_PRINT_LOGS": "1"}, "error"),
        ({"OPENCODE_PRINT_LOGS": "true"}, "info"),
    ],
)
def test_variables_say_what_is_logged(environ: dict[str, str], level: str | None) -> None:
    assert log_lines.level_of(environ) == level


@pytest.mark.parametrize(
    ("theirs", "ours", "is_on", "counts"),
    [
        ("1", "0", False, "TURNKEEPER_DISABLE_PRUNE"),
        ("0", "1", True, "TURNKEEPER_DISABLE_PRUNE"),
        ("1", "", True, "OPENCODE_DISABLE_PRUNE"),
    ],
)
def test_of_two_names_of_a_switch_the_second_counts(theirs: str, ours: str, is_on: bool, counts: str) -> None:
    environ = {"OPENCODE_DISABLE_PRUNE": theirs, "TURNKEEPER_DISABLE_PRUNE": ours}
    flag = flags.DISABLE_PRUNE
    assert (flag.is_on(environ), flag.variable(environ)) == (is_on, counts)
    assert flags.settings_of(environ) == ([(counts, ("compaction", "prune"), False)] if is_on else [])
