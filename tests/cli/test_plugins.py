"""``turnkeeper plugin``: which plugins there are and what became of each; a new one passes its own test."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from workshop import Shop

from turnkeeper.plugins.hooks import HOOKS, REGISTERING

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/plugins.md").read_text("utf-8")
DEADLINE_S = 60


def put(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(text)
    return file


def listed(shop: Shop, **environ: str) -> list[dict[str, Any]]:
    run = shop.process("plugin", "list", "--json", **environ)
    assert run.returncode == 0, run.stderr
    found: list[dict[str, Any]] = json.loads(run.stdout)["items"]
    return found


def test_the_list_says_what_became_of_each_plugin(shop: Shop) -> None:
    shop.configure(plugin=["nowhere", "opencode-thing@1.2"])
    own = shop.home / ".config/turnkeeper/plugins"
    good = put(
        own, "good", "def plugin(context, options):\n    return {'chat.params': print, 'tool_definition': print}\n"
    )
    bad = put(own, "bad", "def plugin(context, options):\n    return {'chat.parms': print}\n")
    theirs = put(shop.project / ".turnkeeper/plugin", "theirs", "raise SystemExit\n")
    found = {one["name"]: one for one in listed(shop, TURNKEEPER_TRUST="")}
    loaded = {"kind": "file", "source": str(good), "hooks": ["chat.params", "tool.definition"], "state": "loaded"}
    nothing: dict[str, object] = {"error": None, "failures": 0, "failedAt": None, "stopped": []}
    assert found["good"] == {"name": "good", **loaded, **nothing}
    assert (found["bad"]["state"], found["bad"]["source"]) == ("failed", str(bad))
    assert found["bad"]["error"].startswith("Invalid: 'chat.parms' is no hook; there are: ")
    assert (found["theirs"]["state"], found["theirs"]["source"]) == ("left out", str(theirs))
    assert found["theirs"]["error"] == "not trusted; `turnkeeper trust` trusts it as it is now"
    assert shop.process("trust", TURNKEEPER_TRUST="").returncode == 0
    again = {one["name"]: one for one in listed(shop, TURNKEEPER_TRUST="")}
    assert (again["theirs"]["state"], again["theirs"]["error"]) == ("failed", "StrayExit: SystemExit()")
    theirs.write_text("def plugin(context, options): ...\n")
    assert {one["name"]: one["state"] for one in listed(shop, TURNKEEPER_TRUST="")}["theirs"] == "left out"
    assert shop.process("plugin", "list").stdout.startswith("PLUGIN ")


def test_a_new_plugin_passes_its_own_test_and_is_not_overwritten(shop: Shop) -> None:
    run = shop.process("plugin", "new", "louder", "--json")
    assert json.loads(run.stdout) == {"name": "louder", "files": ["louder/louder.py", "louder/test_louder.py"]}
    assert ".turnkeeper/plugins" in shop.process("plugin", "new", "softer").stdout
    command = [sys.executable, "louder/test_louder.py"]
    done = subprocess.run(
        command, cwd=shop.project, env=shop.environ(), capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stderr
    again = shop.process("plugin", "new", "louder")
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


@pytest.mark.parametrize("name", ["Big", "a-b", "../a", "", "class", "plugin", "system"])
def test_a_name_that_no_module_can_have_is_refused(shop: Shop, name: str) -> None:
    run = shop.process("plugin", "new", name)
    assert (run.returncode, "cannot name a plugin" in run.stderr) == (2, True)


@pytest.mark.parametrize("name", ["json", "anyio", "turnkeeper"])
def test_a_name_under_which_its_test_would_hide_a_module_is_refused(shop: Shop, name: str) -> None:
    run = shop.process("plugin", "new", name)
    assert (run.returncode, "would hide the Python module" in run.stderr) == (2, True)
    assert not (shop.project / name).exists()


def test_the_plugin_of_the_guide_is_loaded_and_the_guide_names_every_hook(shop: Shop) -> None:
    [text] = re.findall(r"<!-- file: \S+ -->\n```python\n(.*?)```", GUIDE, re.DOTALL)
    put(shop.project / ".turnkeeper/plugins", "tide", text)
    [found] = listed(shop)
    assert (found["state"], found["hooks"]) == ("loaded", ["experimental.text.complete", "tool"])
    for hook in HOOKS:
        assert f"| `{hook.name}` | `{hook.input.__name__}` | `{hook.output.__name__}` | {hook.when} |" in GUIDE
    for one in REGISTERING:
        assert f"| `{one.name}` | " in GUIDE


BRINGS_ALL = """
def settings(given):
    given.setdefault("command", {})["hail"] = {"template": "list the files", "agent": "sampler"}
    given.setdefault("agent", {})["sampler"] = {"prompt": "You sample.", "mode": "primary"}
    given.setdefault("provider", {})["sample"] = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": "http://127.0.0.1:9/v1", "apiKey": "x"},
        "models": {"small": {"name": "Small"}},
    }


def plugin(context, options):
    return {"config": settings}
"""


def test_what_a_plugin_brings_is_listed_and_used_without_a_server(shop: Shop) -> None:
    put(shop.home / ".config/turnkeeper/plugins", "all", BRINGS_ALL)
    assert "sample/small" in shop.process("models").stdout
    [agent] = [line for line in shop.process("agent", "list").stdout.splitlines() if line.startswith("sampler")]
    assert "plugin" in agent.split()
    assert "hail" in shop.process("command", "list").stdout
    ran = shop.process("run", "--agent", "sampler", "-m", "offline/tk-1", "list the files")
    assert (ran.returncode, "> sampler · offline/tk-1" in ran.stdout + ran.stderr) == (0, True), ran.stderr
    refused = shop.process("run", "-m", "sample/smal", "hello")
    assert "did you mean 'small'?" in refused.stderr
    assert shop.process("run", "-m", "offline/tk-1", "/hail").returncode == 0
