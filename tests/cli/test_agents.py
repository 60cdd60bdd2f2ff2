"""``turnkeeper agent``: which agents there are, where each comes from, and a new one in a file."""

import json
from pathlib import Path
from typing import Any

import pytest
from workshop import Shop

from turnkeeper.text import frontmatter


def listed(shop: Shop, **environ: str) -> dict[str, Any]:
    run = shop.process("agent", "list", "--json", **environ)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_the_list_begins_with_the_default_agent_and_names_the_source_of_each(shop: Shop) -> None:
    shop.configure(default_agent="mine", agent={"mine": {"model": "offline/tk-1"}, "plan": {"steps": 3}})
    settings = str(shop.project / "turnkeeper.json")
    file = put(shop.project / ".opencode/agent/team/poet.md", "---\nmode: subagent\n---\nYou rhyme.")
    found = listed(shop)
    assert found["default"] == "mine"
    assert [one["name"] for one in found["items"]][:3] == ["mine", "build", "compaction"]
    sources = {one["name"]: one["from"] for one in found["items"]}
    assert sources["plan"] == ["built-in", settings]
    assert (sources["mine"], sources["team/poet"], sources["build"]) == ([settings], [str(file)], ["built-in"])
    run = shop.process("agent", "list")
    assert run.stdout.startswith("AGENT ")
    assert "mine       default  all       offline/tk-1" in run.stdout
    assert ("title" in run.stdout, "title" in shop.process("agent", "list", "--all").stdout) == (False, True)


def test_a_file_that_is_skipped_and_a_wrong_default_agent_are_named(shop: Shop) -> None:
    shop.configure(default_agent="nobody")
    put(shop.project / ".turnkeeper/agents/broken.md", "---\nsteps: many\n---\nHi")
    first, second = listed(shop)["problems"]
    assert ".turnkeeper/agents/broken.md:2:1: the agent is skipped: agent.broken.steps: " in first
    assert "default_agent 'nobody'" in second
    run = shop.process("agent", "list")
    assert (run.returncode, "broken.md" in run.stderr, "'nobody'" in run.stderr) == (0, True, True)


def test_an_agent_is_shown_with_its_rules_and_prompt_and_without_secrets(shop: Shop) -> None:
    mine = {"prompt": "{env:SECRET_PROMPT}", "description": "Helps.", "options": {"token": "{env:SECRET_PROMPT}"}}
    shop.configure(agent={"mine": {**mine, "permission": {"bash": {"git *": "ask"}}, "temperature": 0.5}})
    run = shop.process("agent", "show", "mine", SECRET_PROMPT="hunter2")
    assert run.returncode == 0
    assert "git *" in run.stdout
    assert "Temperature  0.5" in run.stdout
    assert "{env:SECRET_PROMPT}" in run.stdout
    whole = shop.process("agent", "show", "mine", "--json", SECRET_PROMPT="hunter2")
    assert json.loads(whole.stdout)["from"] == [str(shop.project / "turnkeeper.json")]
    assert "hunter2" not in run.stdout + whole.stdout
    explore = shop.process("agent", "show", "explore").stdout
    assert "You search a project" in explore


def test_an_unknown_agent_is_refused_with_the_known_ones(shop: Shop) -> None:
    run = shop.process("agent", "show", "nobody")
    assert (run.returncode, run.stdout) == (1, "")
    assert "the agents are: build, explore, general, plan" in run.stderr


def test_a_created_agent_is_a_file_that_answers(shop: Shop) -> None:
    words = (
        "--description",
        "Says: hello",
        "--prompt",
        "You greet.",
        "--steps",
        "2",
        "--deny",
        "edit",
        "--deny",
        "bash",
    )
    run = shop.process("agent", "create", "team/greeter", *words, "--mode", "all", "--model", "offline/tk-1", "--json")
    assert run.returncode == 0, run.stderr
    file = shop.project / ".turnkeeper/agents/team/greeter.md"
    assert json.loads(run.stdout) == {"name": "team/greeter", "file": str(file), "leftOut": []}
    assert frontmatter.parse(file.read_text()) == (
        {
            "description": "Says: hello",
            "mode": "all",
            "model": "offline/tk-1",
            "steps": 2,
            "permission": {"edit": "deny", "bash": "deny"},
        },
        "You greet.",
    )
    answered = shop.process("run", "--agent", "team/greeter", "hello")
    assert answered.returncode == 0
    assert "> team/greeter · offline/tk-1" in answered.stdout + answered.stderr


def test_a_file_is_overwritten_only_by_a_yes(shop: Shop) -> None:
    shop.process("agent", "create", "mine", "--prompt", "One")
    file = shop.project / ".turnkeeper/agents/mine.md"
    run = shop.process("agent", "create", "mine", "--prompt", "Two", stdin="y\n")
    assert (run.returncode, "add --yes" in run.stderr, "One" in file.read_text()) == (1, True, True)
    assert shop.process("agent", "create", "mine", "--prompt", "Two", "--yes").returncode == 0
    assert "Two" in file.read_text()


def test_an_agent_for_all_projects_is_in_the_configuration_of_the_user(shop: Shop) -> None:
    run = shop.process("agent", "create", "mine", "--user", "--prompt", "Hi", TURNKEEPER_TRUST="")
    file = shop.home / ".config/turnkeeper/agents/mine.md"
    assert (run.returncode, file.exists(), "trust" in run.stderr) == (0, True, False)
    assert {one["name"] for one in listed(shop)["items"]} >= {"mine"}


def test_what_needs_trust_is_said_when_it_is_written(shop: Shop) -> None:
    run = shop.process("agent", "create", "mine", "--model", "offline/tk-1", TURNKEEPER_TRUST="")
    assert run.returncode == 0
    assert "agent.mine.model" in run.stderr
    assert "turnkeeper trust" in run.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["../x"], "cannot name an agent"),
        (["a b"], "cannot name an agent"),
        (["x", "--color", "red"], "agent.x.color"),
        (["x", "--steps", "0"], "agent.x.steps"),
        (["x", "--model", "offline/nothing"], "models PROVIDER"),
        (["mine", "--deny", "bsh"], "there is no tool or permission 'bsh'"),
    ],
)
def test_what_no_agent_can_be_is_refused_and_not_written(shop: Shop, words: list[str], reason: str) -> None:
    run = shop.process("agent", "create", *words)
    assert (run.returncode, reason in run.stderr) == (2, True)
    assert not [*(shop.project / ".turnkeeper").rglob("*.md")]
