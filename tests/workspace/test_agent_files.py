"""Agents of markdown files: where they are found, what they set, and what an untrusted project's may not."""

import re
from pathlib import Path

import pytest
from confined import unprivileged

from turnkeeper.core.agents import agents
from turnkeeper.core.permission import evaluate
from turnkeeper.model.agent import Agent
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace.config import LoadedSettings, project_settings
from turnkeeper.workspace.markdown_files import DEPTH_MAX, found_in
from turnkeeper.workspace.setting_references import FILE_BYTES_MAX
from turnkeeper.workspace.settings_cache import SettingsCache
from turnkeeper.workspace.trust import TrustedDirectories

REVIEW = """---
description: Reviews: thoroughly
mode: subagent
model: acme/large
variant: high
temperature: 0.1
top_p: 0.9
maxSteps: 4
color: "#00FF00"
reasoningEffort: high
tools:
  write: false
  webfetch: true
permission:
  webfetch: ask
---

You review.
"""


class Project:
    """A home and a project in it, which is not trusted."""

    def __init__(self, root: Path) -> None:
        self.top, self.user = root / "project", root / "home" / ".config"
        self.top.mkdir()
        self.environ = {"HOME": str(root / "home")}
        self.cache = SettingsCache(self.environ)

    def write(self, file: Path, text: str) -> Path:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def load(self) -> LoadedSettings:
        return self.cache.load(self.top, self.top)

    def agents(self) -> dict[str, Agent]:
        return agents(self.load().config, "/home/me")

    def trust(self) -> None:
        found = project_settings(self.top, self.top, self.environ)
        TrustedDirectories(self.environ).add(self.top, settings=found.contents)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_a_file_gives_every_field_of_an_agent(project: Project) -> None:
    project.write(project.user / "opencode/agent/review.md", REVIEW)
    review = project.agents()["review"]
    rules = review.permission
    assert review.but(permission=()) == Agent(
        name="review",
        description="Reviews: thoroughly",
        mode="subagent",
        color="#00FF00",
        prompt="You review.",
        model=ModelChoice(provider_id="acme", model_id="large"),
        variant="high",
        steps=4,
        temperature=0.1,
        top_p=0.9,
        options={"reasoningEffort": "high"},
    )
    assert (evaluate(rules, "edit", "a.py"), evaluate(rules, "webfetch", "x")) == ("deny", "ask")


@pytest.mark.parametrize(
    ("place", "name", "mode"),
    [
        ("opencode/agent/a.md", "a", "all"),
        ("turnkeeper/agents/team/deep/a.md", "team/deep/a", "all"),
        ("opencode/mode/a.md", "a", "primary"),
        ("turnkeeper/modes/a.md", "a", "primary"),
    ],
)
def test_the_name_is_the_path_below_the_folder(project: Project, place: str, name: str, mode: str) -> None:
    project.write(project.user / place, "You help.")
    found = project.agents()[name]
    assert (found.name, found.mode, found.prompt) == (name, mode, "You help.")


def test_front_matter_may_name_the_agent_and_a_mode_is_always_primary(project: Project) -> None:
    project.write(project.user / "opencode/agent/file.md", "---\nname: other\n---\nHi")
    project.write(project.user / "opencode/mode/quick.md", "---\nmode: subagent\n---\nHi")
    project.write(project.user / "opencode/mode/below/not-found.md", "Hi")
    known = project.agents()
    assert (known["other"].prompt, known["quick"].mode) == ("Hi", "primary")
    assert not {"file", "below/not-found", "not-found"} & set(known)


def test_the_nearer_file_wins_field_by_field_and_an_empty_body_keeps_the_prompt(project: Project) -> None:
    project.write(project.user / "turnkeeper/turnkeeper.json", '{"agent": {"a": {"prompt": "1", "steps": 1}}}')
    user = project.write(project.user / "turnkeeper/agent/a.md", "---\nsteps: 2\ntemperature: 0\n---\nTwo")
    near = project.write(project.top / ".opencode/agent/a.md", "---\nsteps: 3\n---\n")
    found = project.agents()["a"]
    assert (found.prompt, found.steps, found.temperature) == ("Two", 3, 0)
    assert project.load().setters("agent", "a") == [
        str(project.user / "turnkeeper/turnkeeper.json"),
        str(user),
        str(near),
    ]


def test_a_file_that_appears_changes_or_goes_is_noticed_and_nothing_else_is_read_again(project: Project) -> None:
    file = project.write(project.user / "opencode/agent/a.md", "One")
    first = project.load()
    assert project.load() is first
    project.write(project.top / ".turnkeeper/agents/b.md", "Two")
    assert project.agents()["b"].prompt == "Two"
    file.write_text("Three")
    assert project.agents()["a"].prompt == "Three"
    file.unlink()
    assert set(project.load().config.agent) == {"b"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("---\na: [1\n---\nHi", "no YAML"),
        ("---\ntools: Read, Grep\n---\nHi", r"agent\.wrong\.tools"),
        ("---\ncolor: red\n---\nHi", r"agent\.wrong\.color"),
        ("---\nsteps: 0\n---\nHi", r"agent\.wrong\.steps"),
        ("x" * (FILE_BYTES_MAX + 1), "larger than"),
    ],
)
def test_a_file_that_is_wrong_is_skipped_with_a_reason_and_harms_no_other(
    project: Project, text: str, reason: str
) -> None:
    wrong = project.write(project.user / "opencode/agent/wrong.md", text)
    project.write(project.user / "opencode/agent/right.md", "Hi")
    loaded = project.load()
    assert set(loaded.config.agent) == {"right"}
    [warning] = [one for source in loaded.sources for one in source.warnings]
    assert str(wrong) in warning
    assert re.search(reason, warning)


def test_an_untrusted_projects_agent_only_narrows(project: Project) -> None:
    file = project.write(
        project.top / ".opencode/agent/build.md",
        "---\nmodel: theirs/large\nvariant: max\nbudget: 1\nsteps: 2\ncolor: info\ntools: {bash: false, read: true}\n"
        "permission: {webfetch: ask, edit: {'*': allow, '*.lock': deny}}\n---\nDo it.",
    )
    loaded, build = project.load(), project.agents()["build"]
    assert (build.model, build.variant, dict(build.options)) == (None, None, {})
    assert (build.steps, build.color, build.prompt) == (2, "info", "Do it.")
    kept = {name: evaluate(build.permission, name, "x.lock") for name in ("bash", "webfetch", "edit", "read")}
    assert kept == {"bash": "deny", "webfetch": "ask", "edit": "deny", "read": "allow"}
    names = ("model", "variant", "tools.read", "permission.edit.*", "options")
    assert loaded.left_out == {str(file): tuple(f"agent.build.{name}" for name in names)}
    assert project_settings(project.top, project.top, project.environ).widening == loaded.left_out
    project.trust()
    build = project.agents()["build"]
    assert (build.choice, build.options) == (
        ModelChoice(provider_id="theirs", model_id="large", variant="max"),
        {"budget": 1},
    )
    assert project.load().left_out == {}
    project.write(file, "---\nmodel: others/huge\n---\nDo more.")
    assert project.agents()["build"].choice is None, "what changed is not trusted"


def test_an_untrusted_projects_link_reads_no_file_of_the_user(project: Project) -> None:
    secret = project.write(project.user / "keys", "s3cret")
    agent = project.top / ".opencode" / "agent"
    agent.mkdir(parents=True)
    (agent / "leak.md").symlink_to(secret)
    (agent / "fine.md").symlink_to(project.write(project.top / ".opencode" / "real.md", "Hi"))
    assert set(project.load().config.agent) == {"fine"}
    assert "s3cret" not in repr(project.load().merged)


def test_links_in_a_circle_end(project: Project) -> None:
    project.write(project.user / "opencode/agent/a.md", "Hi")
    (project.user / "opencode/agent/again").symlink_to(project.user / "opencode/agent")
    assert len(list(found_in(project.user / "opencode"))) == DEPTH_MAX


def test_the_old_setting_mode_gives_primary_agents(project: Project) -> None:
    text = '{"mode": {"quick": {"temperature": 0.2, "speed": 9}}, "agent": {"quick": {"steps": 2}}}'
    project.write(project.user / "turnkeeper/opencode.json", text)
    quick = project.agents()["quick"]
    assert (quick.mode, quick.temperature, quick.steps, quick.options) == ("primary", 0.2, 2, {"speed": 9})


@pytest.mark.parametrize("mode", [0o000, 0o311])
def test_a_folder_of_agents_that_cannot_be_listed_is_named(project: Project, mode: int) -> None:
    project.write(project.user / "opencode/agent/review.md", REVIEW)
    folder = project.write(project.top / ".opencode/agent/hidden/other.md", REVIEW).parent
    folder.chmod(mode)
    loaded = unprivileged(project.load)
    folder.chmod(0o700)
    told = [problem.message for source in loaded.sources for problem in source.problems]
    assert told == [f"the agent is skipped: cannot be read: [Errno 13] Permission denied: '{folder}'"]
    assert "review" in agents(loaded.config, "/home/me")


@pytest.mark.parametrize("name", [".opencode", ".opencode/agent"])
def test_settings_of_a_project_that_may_not_be_entered_are_not_taken_for_none(project: Project, name: str) -> None:
    project.write(project.top / ".opencode/opencode.json", '{"permission": {"bash": "deny"}}')
    project.write(project.top / ".opencode/agent/review.md", REVIEW)
    (project.top / name).chmod(0)

    def said() -> str:
        try:
            return "\n".join(str(one) for source in project.load().sources for one in source.problems)
        except Invalid as refusal:
            return str(refusal)

    told = unprivileged(said)
    (project.top / name).chmod(0o700)
    assert "cannot be read: [Errno 13] Permission denied" in told
    assert str(project.top / name) in told
