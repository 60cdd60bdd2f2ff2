"""``turnkeeper config``: what holds, who says so, what is wrong, and the editor."""

import json
import sys
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import anyio.to_thread
import pytest
from web_site import Page, site
from workshop import Shop

from turnkeeper.cli.config_edit import SCAFFOLD
from turnkeeper.core.setting_checks import sifted
from turnkeeper.text import jsonc
from turnkeeper.workspace import auth
from turnkeeper.workspace.auth import WellKnown

SECRETS = ("sk-literal", "hunter2", "bearer-secret", "env-secret")


@pytest.fixture
def own(shop: Shop) -> Path:
    """The user's own file."""
    file = shop.home / ".config/turnkeeper/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        'model = "a/own"\n'
        'instructions = ["own.md"]\n'
        "[provider.local.options]\n"
        'apiKey = "sk-literal"\n'
        'baseURL = "http://ada:hunter2@host/v1"\n'
        'headers = {x-team = "bearer-secret"}\n'
        "[provider.other.options]\n"
        'apiKey = "{env:OTHER_KEY}"\n'
    )
    return file


def test_what_holds_is_shown_without_secrets(shop: Shop, own: Path) -> None:
    shop.configure(model="a/project", instructions=["docs/*.md"])
    run = shop.process("config", "show", OTHER_KEY="env-secret")
    shown = json.loads(run.stdout)
    assert (run.returncode, shown["model"], shown["instructions"]) == (0, "a/project", ["own.md", "docs/*.md"])
    assert shown["provider"]["local"]["options"] == {
        "apiKey": "***",
        "baseURL": "http://***@host/v1",
        "headers": {"x-team": "***"},
    }
    assert shown["provider"]["other"]["options"]["apiKey"] == "{env:OTHER_KEY}"
    for words in (["--json"], ["--origin"], ["--origin", "--json"]):
        more = shop.process("config", "show", *words, OTHER_KEY="env-secret")
        assert more.returncode == 0
        assert not any(secret in more.stdout + more.stderr for secret in SECRETS)


def test_each_value_is_shown_with_its_file_and_line(shop: Shop, own: Path) -> None:
    (shop.project / "turnkeeper.jsonc").write_text(
        '{\n  // mine\n  "model": "a/project",\n  "instructions": ["b.md"]\n}'
    )
    lines = shop.process("config", "show", "--origin").stdout.splitlines()
    project = shop.project / "turnkeeper.jsonc"
    assert lines[0] == f'model = "a/project"  # {project}:3:3'
    assert f'instructions.0 = "own.md"  # {own}:2:1' in lines
    assert f'instructions.1 = "b.md"  # {project}:4:3' in lines
    found = json.loads(shop.process("config", "show", "--origin", "--json").stdout)
    assert found["origins"][0] == {
        "key": "model",
        "value": "a/project",
        "where": str(project),
        "line": 3,
        "column": 3,
        "overrode": [f"{own}:1:1"],
    }
    assert [source["layer"] for source in found["sources"]] == ["user", "project"]


def test_nothing_set_is_said(shop: Shop) -> None:
    run = shop.process("config", "show")
    assert (run.returncode, run.stdout, run.stderr.strip()) == (0, "", "Nothing is set.")


@pytest.mark.parametrize("key", ["permission.bash", "permission.bash.git *", "agent.plan.permission.edit"])
def test_a_rule_that_nobody_sets_is_a_setting(shop: Shop, key: str) -> None:
    run = shop.process("config", "explain", key)
    assert (run.returncode, run.stdout.splitlines()[0]) == (0, f"{key} is not set"), run.stderr


@pytest.mark.parametrize("key", ["", ".", ".."])
def test_a_key_without_a_name_is_refused(shop: Shop, key: str) -> None:
    run = shop.process("config", "explain", key)
    assert (run.returncode, "KEY is empty" in run.stderr) == (2, True), run.stderr


def test_a_key_is_explained_by_all_who_set_it(shop: Shop, own: Path) -> None:
    shop.configure(model="a/project")
    run = shop.process("config", "explain", "model", TURNKEEPER_CONFIG_CONTENT='{"model": "a/variable"}')
    assert run.stdout.splitlines()[0] == 'model = "a/variable"'
    assert [line.strip() for line in run.stdout.splitlines()[3:]] == [
        'TURNKEEPER_CONFIG_CONTENT:1:2 (variable): "a/variable"',
        "holds",
        f'{shop.project / "turnkeeper.json"}:1:2 (project): "a/project"',
        "overridden by a stronger file, variable or plugin",
        f'{own}:1:1 (user): "a/own"',
        "overridden by a stronger file, variable or plugin",
    ]


def test_a_mistake_in_a_markdown_file_is_told_with_its_line_and_the_kind_of_file(shop: Shop, own: Path) -> None:
    for name, text in {
        "agent/pilot": "---\ndescription: Steers\nmode: prmary\n---\nSteer.",
        "command/tide": "---\nsubtask: 7\n---\nTell.",
        "command/moon": "---\nagent: plan\ndescripton: Moon\n---\nTell.",
        "agent/broken": "---\na: [1\n---\nSteer.",
    }.items():
        (own.parent / name).parent.mkdir(exist_ok=True)
        (own.parent / f"{name}.md").write_text(text)
    problems = json.loads(shop.process("config", "check", "--json").stdout)["problems"]
    found = {
        str(Path(one["file"]).relative_to(own.parent)): (one["line"], one["severity"], one["message"])
        for one in problems
        if one["file"] != str(own)
    }
    assert found.pop("agent/broken.md")[2].startswith("the agent is skipped: no YAML: ")
    assert found == {
        "agent/pilot.md": (
            3,
            "warning",
            "the agent is skipped: agent.pilot.mode: "
            "Invalid enum value 'prmary'; use one of 'all', 'primary', 'subagent'",
        ),
        "command/tide.md": (
            2,
            "warning",
            "the command is skipped: command.tide.subtask: Expected `bool | null`, got `int`",
        ),
        "command/moon.md": (
            3,
            "warning",
            "there is no setting 'command.moon.descripton'; did you mean 'command.moon.description'?",
        ),
    }


def test_what_plugins_make_of_settings_is_shown_and_names_them(shop: Shop, own: Path) -> None:
    plugin = own.with_name("plugins") / "harbour.py"
    plugin.parent.mkdir()
    plugin.write_text(
        "def config(settings):\n"
        "    settings['model'] = 'a/plugin'\n"
        "    settings.pop('small_model')\n"
        "def plugin(context, options):\n"
        "    context.register_agent('pilot', {'mode': 'primary'})\n"
        "    context.register_key('groq', 'gsk_secret')\n"
        "    return {'config': config}\n"
    )
    shop.configure(small_model="a/small", disabled_providers=["openai"])
    shown = json.loads(shop.process("config", "show", "--json", "--origin").stdout)
    assert shown["settings"]["model"] == "a/plugin"
    assert "small_model" not in shown["settings"]
    assert {one["key"]: one["where"] for one in shown["origins"]} == {
        "provider.groq.options.apiKey": str(plugin),
        "agent.pilot.mode": str(plugin),
        "model": str(plugin),
        "disabled_providers": str(shop.project / "turnkeeper.json"),
    } | {one["key"]: one["where"] for one in shown["origins"] if one["where"] == str(own)}
    said = json.loads(shop.process("config", "explain", "model", "--json").stdout)
    assert [(one["where"], one["layer"], one["fate"]) for one in said["said"]] == [
        (str(own), "user", "overridden"),
        (str(plugin), "plugin", "holds"),
    ]
    assert "gsk_secret" not in shop.process("config", "explain", "provider.groq.options.apiKey").stdout
    keys = json.loads(shop.process("auth", "list", "--json").stdout)["items"]
    assert {one["provider"]: one["where"] for one in keys}["groq"] == str(plugin)
    default = json.loads(shop.process("models", "default", "--json").stdout)
    assert (default["model"], str(plugin) in default["why"]) == ("a/plugin", True)


def test_an_explanation_says_what_trust_has_to_do_with_it(shop: Shop) -> None:
    (shop.project / "turnkeeper.json").write_text('{"model": "a/b", "permission": {"bash": "deny", "edit": "allow"}}')
    for key, fate in {"model": "left out", "permission": "in part", "permission.bash": "in part"}.items():
        run = shop.process("config", "explain", key, "--json", TURNKEEPER_TRUST="0")
        [said] = json.loads(run.stdout)["said"]
        assert said["fate"] == fate
        assert "turnkeeper trust" in said["note"]
    assert shop.process("trust").returncode == 0
    [said] = json.loads(shop.process("config", "explain", "model", "--json", TURNKEEPER_TRUST="0").stdout)["said"]
    assert (said["fate"], said["note"]) == ("holds", "")
    (shop.project / "turnkeeper.json").write_text('{"model": "a/c"}')
    [said] = json.loads(shop.process("config", "explain", "model", "--json", TURNKEEPER_TRUST="0").stdout)["said"]
    assert (said["fate"], "changed since the project was trusted" in said["note"]) == ("left out", True)


def test_every_key_that_is_shown_is_explained(shop: Shop, own: Path) -> None:
    own.write_text('instructions = ["a.md", "b.md"]\nprovider.x.models."m-1.5".name = "M"\n')
    shown = json.loads(shop.process("config", "show", "--origin", "--json").stdout)["origins"]
    keys = [one["key"] for one in shown]
    assert keys == ["instructions.0", "instructions.1", "provider.x.models.m-1.5.name"]
    explained = [json.loads(shop.process("config", "explain", key, "--json").stdout)["key"] for key in keys]
    assert explained == ["instructions", "instructions", "provider.x.models.m-1.5.name"]


def test_a_key_that_nobody_sets_is_explained_by_its_default(shop: Shop) -> None:
    found = json.loads(shop.process("config", "explain", "tool_output.max_lines", "--json").stdout)
    assert (found["value"], found["said"], found["default"], found["type"]) == (None, [], "2000", "whole number")
    text = shop.process("config", "explain", "agent.mine.steps").stdout
    assert text.startswith("agent.mine.steps is not set\n")


def test_a_key_that_is_no_setting_is_refused_with_what_looks_alike(shop: Shop) -> None:
    run = shop.process("config", "explain", "compation.auto")
    assert (run.returncode, run.stdout) == (1, "")
    assert "did you mean 'compaction.auto'?" in run.stderr


def test_every_mistake_is_listed_and_an_error_is_the_exit_code(shop: Shop, own: Path) -> None:
    file = shop.project / "opencode.json"
    file.write_text('{\n "modle": "a/b",\n "shell": 7,\n "theme": "dark"\n}')
    run = shop.process("config", "check")
    assert (run.returncode, run.stdout.splitlines()) == (
        0,
        [
            f"{own}:8:1: warning: provider.other.options.apiKey: the variable OTHER_KEY is not set, so "
            "{env:OTHER_KEY} is empty",
            f"{own}:1:1: warning: model: there is no provider 'a'; did you mean 'zai' or 'xai' or 'local'?",
            f"{file}:3:2: warning: shell: Expected `str | null`, got `int`; it is left out",
            f"{file}:2:2: warning: there is no setting 'modle'; did you mean 'model'?",
        ],
    )
    (shop.project / ".turnkeeper").mkdir()
    (shop.project / ".turnkeeper/config.toml").write_text('[permission]\nbsh = "ask"\nraed = "deny"\n')
    run = shop.process("config", "check", "--json")
    found = json.loads(run.stdout)
    assert (run.returncode, len(found["files"])) == (1, 3)
    # With an error in a file nobody can say which models there are.
    assert [(one["severity"], one["key"], one["line"]) for one in found["problems"]] == [
        ("warning", "provider.other.options.apiKey", 8),
        ("warning", "shell", 3),
        ("warning", "modle", 2),
        ("error", "permission.bsh", 2),
        ("error", "permission.raed", 3),
    ]
    refused = shop.process("config", "show")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "config.toml:2:1" in refused.stderr


def test_what_is_named_and_does_not_exist_is_a_warning_with_its_line(shop: Shop) -> None:
    file = shop.project / "turnkeeper.jsonc"
    file.write_text(
        '{\n "model": "offline/tk-2",\n "small_model": "tiny",\n "default_agent": "nobody",\n "mcp": {\n'
        '  "nothing": {"enabled": true},\n  "off": {"enabled": false},\n  "web": {"url": "http://127.0.0.1:9"}\n },\n'
        ' "shell": "sh", // the first\n "shell": "bash",\n "agent": {"a": {"steps": 1}, "b": {"steps": 1}}\n}'
    )
    run = shop.process("config", "check", "--json")
    found = json.loads(run.stdout)["problems"]
    assert [(one["key"], one["line"], one["severity"]) for one in found] == [
        ("shell", 11, "warning"),
        ("model", 2, "warning"),
        ("small_model", 3, "warning"),
        ("default_agent", 4, "warning"),
        ("mcp.nothing", 6, "warning"),
    ]
    assert run.returncode == 0
    words = " ".join(one["message"] for one in found)
    assert "shell is set twice; what line 10 says has no effect" in words
    assert "'tk-2'; did you mean 'tk-1'?" in words
    assert "default_agent 'nobody' is not an agent" in words
    assert "neither a `command` nor a `url`" in words


def test_what_agents_and_commands_name_and_missing_plugins_are_warnings_with_their_lines(shop: Shop) -> None:
    file = shop.project / "turnkeeper.jsonc"
    file.write_text(
        '{\n "agent": {\n  "poet": {"model": "tiny"},\n  "clerk": {"model": "offline/tk-1"}\n },\n "command": {\n'
        '  "sing": {"template": "sing", "agent": "poet", "model": "offline/tk-2"},\n'
        '  "count": {"template": "count", "agent": "clark"}\n },\n'
        ' "plugin": ["nothing", ["gone.py", {}], "opencode-thing@1.0"]\n}'
    )
    run = shop.process("config", "check", "--json", TURNKEEPER_TRUST="1")
    found = json.loads(run.stdout)["problems"]
    assert [(one["key"], one["line"], one["severity"]) for one in found] == [
        ("agent.poet.model", 3, "warning"),
        ("command.sing.model", 7, "warning"),
        ("command.count.agent", 8, "warning"),
        ("plugin", 10, "warning"),
        ("plugin", 10, "warning"),
    ]
    words = " ".join(one["message"] for one in found)
    assert "'tiny' names no model" in words
    assert "'tk-2'; did you mean 'tk-1'?" in words
    assert "command.count.agent: there is no agent 'clark'; there are: " in words
    assert "the plugin 'nothing' is left out: no installed package" in words
    assert "the plugin 'gone.py' is left out: a file is no package; put it into a `plugins` directory" in words


def test_providers_and_agents_of_rules_that_do_not_exist_are_warnings_with_their_lines(shop: Shop) -> None:
    file = shop.project / "turnkeeper.jsonc"
    file.write_text(
        '{\n "enabled_providers": ["offline",\n  "antropic", "own"],\n "disabled_providers": ["opnai", "openai"],\n'
        ' "provider": {"own": {"options": {"baseURL": "http://127.0.0.1:9"}}},\n "permission": {"task": {\n'
        '  "explor": "deny", "*": "ask", "ex*": "allow",\n  "explore": "allow"}},\n'
        ' "agent": {"poet": {"permission": {\n  "task": {"zzz": "deny"}}}}\n}'
    )
    found = json.loads(shop.process("config", "check", "--json", TURNKEEPER_TRUST="1").stdout)["problems"]
    assert [(one["key"], one["line"], one["severity"]) for one in found] == [
        ("permission.task.explor", 7, "warning"),
        ("agent.poet.permission.task.zzz", 10, "warning"),
        ("enabled_providers.1", 3, "warning"),
        ("disabled_providers.0", 4, "warning"),
    ]
    words = " ".join(one["message"] for one in found)
    assert "permission.task: there is no agent 'explor'; did you mean 'explore'?" in words
    assert "agent.poet.permission.task: there is no agent 'zzz'; there are: build" in words
    assert "enabled_providers: there is no provider 'antropic'; did you mean 'anthropic'" in words
    assert "disabled_providers: there is no provider 'opnai'; did you mean 'openai'" in words


def test_a_temperature_that_is_not_sent_is_a_warning_with_its_line(shop: Shop) -> None:
    models = {"silent": {}, "warm": {"temperature": True}, "cold": {"temperature": False}}
    local = {"options": {"baseURL": "http://127.0.0.1:9"}, "models": models}
    shop.configure(
        model="local/silent",
        provider={"local": {"protocol": "openai-chat", **local}, "claude": {"protocol": "anthropic", **local}},
        agent={
            "build": {"temperature": 0.2, "top_p": 0.9},
            "warm": {"temperature": 0.2, "model": "local/warm"},
            "cold": {"temperature": 0, "model": "local/cold"},
            "poet": {"top_p": 0.9, "model": "claude/silent"},
            "gone": {"temperature": 0.2, "model": "local/gone"},
            "offline": {"temperature": 0.2, "model": "offline/tk-1"},
        },
    )
    (shop.project / ".turnkeeper/agents").mkdir(parents=True)
    file = shop.project / ".turnkeeper/agents/review.md"
    file.write_text("---\nmode: all\ntemperature: 0.1\n---\nReview.\n")
    run = shop.process("config", "check", "--json")
    found = json.loads(run.stdout)["problems"]
    keys = ["agent.build.temperature", "agent.cold.temperature", "agent.poet.top_p", "agent.review.temperature"]
    assert ([one["key"] for one in found], run.returncode) == (["agent.gone.model", *keys], 0)
    assert (found[-1]["file"], found[-1]["line"]) == (str(file), 3)
    assert found[1]["message"] == (
        "agent.build.temperature is not sent: local/silent does not say that it takes a temperature; if it does, set "
        "provider.local.models.silent.temperature to true"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("turnkeeper.json", '{\n "model": "a/b",\n "username": "{file:gone.txt}"\n}'),
        ("turnkeeper.toml", '# {file:gone.txt}\nmodel = "a/b"\nusername = "{file:gone.txt}"\n'),
    ],
)
def test_a_file_that_is_referred_to_and_missing_is_told_with_its_line(shop: Shop, name: str, text: str) -> None:
    (shop.project / name).write_text(text)
    run = shop.process("config", "check")
    assert (run.returncode, f"{name}:3:" in run.stdout, "{file:gone.txt} cannot be read" in run.stdout) == (
        1,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "turnkeeper.jsonc",
            '{\n // {env:IN_A_COMMENT}\n "username": "{env:GONE_NAME} of {env:HOME}",\n'
            ' "instructions": ["a.md",\n  "{env:GONE_FOLDER}/b.md"], "subagent_depth": 1{env:GONE_DIGIT}\n}',
        ),
        (
            "turnkeeper.toml",
            '# {env:IN_A_COMMENT}\n\nusername = "{env:GONE_NAME} of {env:HOME}"\n'
            'instructions = ["a.md",\n "{env:GONE_FOLDER}/b.md"]\nshell = "{env:GONE_SHELL}"\n',
        ),
    ],
)
def test_a_variable_that_is_referred_to_and_not_set_is_a_warning_with_its_line(
    shop: Shop, name: str, text: str
) -> None:
    (shop.project / name).write_text(text)
    run = shop.process("config", "check", "--json")
    found = [(one["key"], one["line"], one["severity"]) for one in json.loads(run.stdout)["problems"]]
    assert found[:2] == [("username", 3, "warning"), ("instructions.1", 5, "warning")]
    assert found[2:] in ([("subagent_depth", 5, "warning")], [("shell", 6, "warning")])
    said = shop.process("config", "check").stdout
    words = "username: the variable GONE_NAME is not set, so {env:GONE_NAME} is empty"
    assert (run.returncode, words in said, "COMMENT" in said) == (0, True, False)
    assert "GONE" not in shop.run("list the files").err
    quiet = dict.fromkeys(("GONE_NAME", "GONE_FOLDER", "GONE_DIGIT", "GONE_SHELL"), "0")
    assert shop.process("config", "check", **quiet).stdout == "No mistakes in 1 file.\n"


def test_a_variable_that_overrides_a_setting_is_named(shop: Shop) -> None:
    file = shop.project / "turnkeeper.json"
    file.write_text('{"compaction": {"auto": true, "prune": true}}')
    flag = {"OPENCODE_DISABLE_AUTOCOMPACT": "1"}
    found = json.loads(shop.process("config", "explain", "compaction.auto", "--json", **flag).stdout)
    assert found["value"] is False
    assert [(one["where"], one["value"], one["fate"]) for one in found["said"]] == [
        (str(file), True, "overridden"),
        ("OPENCODE_DISABLE_AUTOCOMPACT", False, "holds"),
    ]
    shown = shop.process("config", "show", "--origin", **flag).stdout.splitlines()
    assert "compaction.auto = false  # OPENCODE_DISABLE_AUTOCOMPACT" in shown
    assert "compaction.prune = true  # " + f"{file}:1:31" in shown
    shared = shop.process("config", "explain", "share", TURNKEEPER_AUTO_SHARE="1", TURNKEEPER_DISABLE_SHARE="1")
    assert shared.stdout.splitlines()[0] == 'share = "disabled"'


def test_one_file_is_checked_alone(shop: Shop, tmp_path: Path) -> None:
    (shop.project / "opencode.json").write_text("{")
    good, bad = tmp_path / "good.toml", tmp_path / "bad.jsonc"
    good.write_text('model = "a/b"')
    bad.write_text('{"model": "a/b",,}')
    run = shop.process("config", "check", str(good))
    assert (run.returncode, run.stdout) == (0, "No mistakes in 1 file.\n")
    run = shop.process("config", "check", str(bad))
    assert (run.returncode, run.stdout.startswith(f"{bad}:1:18: error: ")) == (1, True)
    assert shop.process("config", "check", str(tmp_path / "gone.json")).returncode == 2


def test_the_schema_is_printed(shop: Shop) -> None:
    made = json.loads(shop.process("config", "schema").stdout)
    assert made["$defs"]["Config"]["properties"]["model"]["description"].startswith("The model of a prompt")


# --- The editor ------------------------------------------------------------------------------------------------


def an_editor(shop: Shop, content: str | None) -> str:
    """An editor that writes this, or nothing."""
    program = shop.home / "editor.py"
    change = f"pathlib.Path(sys.argv[1]).write_text({content!r})" if content is not None else "pass"
    program.write_text(f"import pathlib, sys\nprint('editing', sys.argv[1])\n{change}\n")
    return f"{sys.executable} {program}"


def edited(shop: Shop, *words: str, **environ: str) -> tuple[int, str]:
    with shop.terminal("config", "edit", *words, env=environ) as seat:
        code = seat.end()
        return code, " ".join(seat.shown.split())


def test_an_editor_needs_a_terminal_and_a_name(shop: Shop) -> None:
    run = shop.process("config", "edit", EDITOR="true")
    assert (run.returncode, "an editor needs a terminal" in run.stderr) == (1, True)
    code, shown = edited(shop, VISUAL="", EDITOR="")
    assert (code, "there is no editor; set VISUAL or EDITOR" in shown) == (1, True)
    code, shown = edited(shop, VISUAL="no-such-editor")
    assert (code, "cannot be started" in shown) == (1, True)
    assert shop.process("config", "edit", "--global", "--project").returncode == 2


def test_a_new_file_has_a_schema_line_and_goes_if_nothing_is_changed(shop: Shop) -> None:
    folder = shop.home / ".config/turnkeeper"
    code, shown = edited(shop, EDITOR=an_editor(shop, None))
    assert (code, "Nothing was changed" in shown, list(folder.iterdir())) == (0, True, [])
    code, shown = edited(shop, EDITOR=an_editor(shop, '{"$schema": "./config.schema.json", "model": "a/b"}'))
    assert (code, "is right" in shown) == (0, True)
    assert sorted(path.name for path in folder.iterdir()) == ["config.schema.json", "turnkeeper.jsonc"]
    assert json.loads(shop.process("config", "show").stdout)["model"] == "a/b"


def test_the_scaffold_is_right_as_it_is(shop: Shop) -> None:
    copying = f'sh -c \'cp "$0" {shop.home}/seen; echo {{}} > "$0"\''
    assert edited(shop, EDITOR=copying)[0] == 0
    run = shop.process("config", "check", str(shop.home / "seen"))
    assert (run.returncode, run.stdout) == (0, "No mistakes in 1 file.\n")


def test_a_file_is_checked_after_it_was_edited(shop: Shop, own: Path) -> None:
    code, shown = edited(shop, "--global", VISUAL=an_editor(shop, '[permission]\nbsh = "ask"\n'))
    assert code == 1
    assert f"{own}:2:1: permission.bsh" in shown.replace(" ", "").replace("permission.bsh", " permission.bsh")
    assert own.read_text() == '[permission]\nbsh = "ask"\n', "what the user saved stays"
    code, shown = edited(shop, VISUAL=an_editor(shop, 'modl = "a/b"\n'))
    assert (code, "did you mean 'model'?" in shown, "used, but for this" in shown) == (0, True, True)


def test_a_projects_file_holds_once_it_is_trusted(shop: Shop) -> None:
    code, shown = edited(shop, "--project", EDITOR=an_editor(shop, '{"model": "a/b"}'))
    assert (code, "until `turnkeeper trust` trusts it" in shown) == (0, True)
    assert (shop.project / ".turnkeeper/turnkeeper.jsonc").read_text() == '{"model": "a/b"}'
    (shop.project / "opencode.json").write_text("{}")
    edited(shop, "--project", EDITOR=an_editor(shop, '{"model": "a/c"}'))
    assert (shop.project / ".turnkeeper/turnkeeper.jsonc").read_text() == '{"model": "a/c"}'


# --- Hosts -----------------------------------------------------------------------------------------------------


def test_without_a_host_nothing_is_fetched(shop: Shop) -> None:
    run = shop.process("config", "fetch")
    assert (run.returncode, "logged in to no host" in run.stderr) == (0, True)


async def test_what_hosts_publish_is_fetched_on_request_only(shop: Shop) -> None:
    pages: dict[str, Page] = {}
    async with site(pages) as host:
        more = {"url": f"{host.url}/more", "headers": {"authorization": "Bearer {env:HOST_TOKEN}"}}
        published = {"config": {"model": "p/host", "small_model": "p/host"}, "remote_config": more}
        pages["/.well-known/opencode"] = Page(json.dumps(published).encode(), "application/json")
        pages["/more"] = Page(b'{"model": "p/more"}', "application/json")
        auth.file(shop.environ()).write(host.url, WellKnown(key="HOST_TOKEN", token="t0ken"))

        async def process(*words: str) -> "CompletedProcess[str]":
            return await anyio.to_thread.run_sync(partial(shop.process, *words))

        assert ((await process("config", "show")).stdout, host.requests) == ("", [])
        run = await process("config", "fetch", "--json")
        assert json.loads(run.stdout) == {"items": [{"address": host.url, "keys": ["model", "small_model"]}]}
        assert [one.line.split(" ")[1] for one in host.requests] == ["/.well-known/opencode", "/more"]
        assert host.requests[1].headers["authorization"] == "Bearer t0ken"
        [said] = json.loads((await process("config", "explain", "model", "--json")).stdout)["said"]
        where = f"{host.url}/.well-known/opencode"
        assert (said["layer"], said["value"], said["where"]) == ("well-known", "p/more", where)
        pages["/more"] = Page(b'{"config": {"model": "p/inner"}}', "application/json")
        await process("config", "fetch")
        assert json.loads((await process("config", "show")).stdout) == {"model": "p/inner", "small_model": "p/host"}
        pages["/more"] = Page(b'{"model": "p/more"}', "application/json")
        await process("config", "fetch")
        pages["/.well-known/opencode"] = Page(b"no json")
        refused = await process("config", "fetch")
        assert (refused.returncode, "has no settings" in refused.stderr) == (1, True)
        assert json.loads((await process("config", "show")).stdout)["model"] == "p/more"


def test_the_lines_that_a_new_file_suggests_can_be_uncommented_as_they_are() -> None:
    written = jsonc.parse(SCAFFOLD.replace("// ", ""))
    assert isinstance(written, dict)
    assert (list(written), sifted(written).problems) == (["$schema", "model", "permission"], ())
    assert jsonc.parse(SCAFFOLD) == {"$schema": "./config.schema.json"}
