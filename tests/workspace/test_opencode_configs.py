"""Configuration files as opencode's documentation describes them mean here what they mean there."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from turnkeeper.core.agents import agents
from turnkeeper.core.permission import evaluate
from turnkeeper.core.window import window
from turnkeeper.model.config import Config
from turnkeeper.providers.catalog import Catalog
from turnkeeper.workspace.config import LoadedSettings, load

HOME = "/home/ada"


class Shape(NamedTuple):
    """A file, and what it means."""

    name: str
    text: str | dict[str, object]
    meaning: Callable[[LoadedSettings], object]
    expected: object


def action(agent: str, permission: str, pattern: str) -> Callable[[LoadedSettings], object]:
    return lambda loaded: evaluate(agents(loaded.config, HOME)[agent].permission, permission, pattern)


def of(read: Callable[[Config], object]) -> Callable[[LoadedSettings], object]:
    return lambda loaded: read(loaded.config)


LM_STUDIO = {
    "npm": "@ai-sdk/openai-compatible",
    "name": "A server in the cellar",
    "options": {"baseURL": "http://127.0.0.1:1234/v1", "headers": {"x-room": "cellar"}},
    "models": {"gemma-tides": {"name": "Gemma for tides", "limit": {"context": 64000, "output": 4000}}},
}

SHAPES = [
    Shape(
        "comments and trailing commas",
        '{\n  "$schema": "https://opencode.ai/config.json",\n  // which model\n  "model": "acme/large", /* ! */\n}',
        of(lambda config: config.model),
        "acme/large",
    ),
    Shape("a small model", {"small_model": "acme/small"}, of(lambda config: config.small_model), "acme/small"),
    Shape(
        "a provider of one's own",
        {"provider": {"cellar": LM_STUDIO}},
        of(lambda config: Catalog(config).find("cellar", "gemma-tides").limits.context),
        64000,
    ),
    Shape(
        "options of a provider, known and unknown",
        {"provider": {"anthropic": {"options": {"timeout": 90000, "chunkTimeout": False, "setCacheKey": True}}}},
        of(lambda config: (config.provider["anthropic"].options.timeout, config.provider["anthropic"].own_options)),
        (90000, {"setCacheKey": True}),
    ),
    Shape(
        "a key from a variable",
        {"provider": {"openai": {"options": {"apiKey": "{env:TIDE_KEY}"}}}},
        of(lambda config: config.provider["openai"].options.api_key),
        "from-variable",
    ),
    Shape(
        "a key from a file",
        {"provider": {"openai": {"options": {"apiKey": "{file:./secret}"}}}},
        of(lambda config: config.provider["openai"].options.api_key),
        "from-file",
    ),
    Shape(
        "providers that are not used",
        {"disabled_providers": ["openai", "google"], "enabled_providers": ["anthropic"]},
        of(lambda config: (config.disabled_providers, config.enabled_providers)),
        (("openai", "google"), ("anthropic",)),
    ),
    Shape(
        "models that are not offered",
        {"provider": {"openai": {"whitelist": ["gpt-5"], "blacklist": ["gpt-4o"]}}},
        of(lambda config: (config.provider["openai"].whitelist, config.provider["openai"].blacklist)),
        (("gpt-5",), ("gpt-4o",)),
    ),
    Shape("one action for everything", {"permission": "ask"}, action("build", "edit", "a.py"), "ask"),
    Shape("one action for a tool", {"permission": {"edit": "deny"}}, action("build", "edit", "a.py"), "deny"),
    Shape(
        "patterns of commands, the last match wins",
        {"permission": {"bash": {"*": "ask", "git *": "allow", "git push *": "deny"}}},
        lambda loaded: [action("build", "bash", line)(loaded) for line in ("ls", "git log", "git push origin")],
        ["ask", "allow", "deny"],
    ),
    Shape(
        "patterns in the other order",
        {"permission": {"bash": {"git push *": "deny", "*": "allow"}}},
        action("build", "bash", "git push origin"),
        "allow",
    ),
    Shape(
        "a directory outside of the project",
        {"permission": {"external_directory": {"~/tides/**": "allow"}}},
        action("build", "external_directory", f"{HOME}/tides/2026/*"),
        "allow",
    ),
    Shape(
        "an agent's rules are stronger",
        {"permission": {"edit": "deny"}, "agent": {"build": {"permission": {"edit": "ask"}}}},
        action("build", "edit", "a.py"),
        "ask",
    ),
    Shape("the older switches", {"tools": {"write": False}}, action("build", "edit", "a.py"), "deny"),
    Shape(
        "tools of a server by a pattern",
        {
            "mcp": {"gauge": {"type": "local", "command": ["gauge", "--stdio"], "environment": {"A": "b"}}},
            "tools": {"gauge_*": False},
        },
        action("build", "gauge_read", "*"),
        "deny",
    ),
    Shape(
        "an agent of one's own",
        {
            "agent": {
                "reviewer": {
                    "description": "Reads changes",
                    "mode": "subagent",
                    "model": "acme/large",
                    "prompt": "You review.",
                    "temperature": 0.1,
                    "tools": {"write": False, "edit": False},
                }
            }
        },
        lambda loaded: (
            (found := agents(loaded.config, HOME)["reviewer"]).mode,
            found.prompt,
            found.temperature,
            evaluate(found.permission, "edit", "a.py"),
        ),
        ("subagent", "You review.", 0.1, "deny"),
    ),
    Shape(
        "further options of an agent",
        {"agent": {"thinker": {"description": "x", "reasoningEffort": "high", "textVerbosity": "low"}}},
        lambda loaded: agents(loaded.config, HOME)["thinker"].options,
        {"reasoningEffort": "high", "textVerbosity": "low"},
    ),
    Shape(
        "the older modes",
        {"mode": {"chart": {"prompt": "You draw charts."}}},
        lambda loaded: agents(loaded.config, HOME)["chart"].mode,
        "primary",
    ),
    Shape(
        "an agent that is switched off",
        {"agent": {"plan": {"disable": True}}, "default_agent": "build"},
        lambda loaded: "plan" in agents(loaded.config, HOME),
        False,
    ),
    Shape(
        "steps under the older name",
        {"agent": {"build": {"maxSteps": 5}}},
        lambda loaded: agents(loaded.config, HOME)["build"].steps,
        5,
    ),
    Shape(
        "a command",
        {
            "command": {
                "tide": {
                    "template": "The tide at $ARGUMENTS?",
                    "description": "Tides",
                    "agent": "plan",
                    "subtask": True,
                }
            }
        },
        of(lambda config: (config.command["tide"].template, config.command["tide"].subtask)),
        ("The tide at $ARGUMENTS?", True),
    ),
    Shape(
        "instructions",
        {"instructions": ["CONTRIBUTING.md", "docs/*.md", "https://example.com/rules.md"]},
        of(lambda config: config.instructions),
        ("CONTRIBUTING.md", "docs/*.md", "https://example.com/rules.md"),
    ),
    Shape(
        "formatters",
        {"formatter": {"prettier": {"disabled": True}, "mine": {"command": ["fmt", "$FILE"], "extensions": [".tide"]}}},
        of(lambda config: isinstance(config.formatter, dict) and config.formatter["mine"].command),
        ("fmt", "$FILE"),
    ),
    Shape("no formatter", {"formatter": False}, of(lambda config: config.formatter), False),
    Shape(
        "a language server",
        {"lsp": {"tidels": {"command": ["tidels"], "extensions": [".tide"], "initialization": {"deep": 1}}}},
        of(lambda config: isinstance(config.lsp, dict) and config.lsp["tidels"].initialization),
        {"deep": 1},
    ),
    Shape(
        "compaction",
        {"compaction": {"auto": False, "prune": False, "reserved": 9000}},
        lambda loaded: (
            (found := window(loaded.config.compaction, {})).auto,
            found.prune,
            found.reserved,
        ),
        (False, "never", 9000),
    ),
    Shape(
        "what opencode's server answers for a whole configuration",
        {
            "$schema": "https://opencode.ai/config.json",
            "agent": {"build": {"model": "acme/large", "permission": {"bash": "ask"}, "options": {}, "name": "build"}},
            "autoupdate": False,
            "command": {},
            "enabled_providers": ["acme"],
            "mode": {},
            "permission": {"edit": "allow"},
            "plugin": [],
            "share": "disabled",
            "username": "ada",
        },
        action("build", "bash", "ls"),
        "ask",
    ),
    Shape("snapshots", {"snapshot": False}, of(lambda config: config.snapshot), False),
    Shape("a shell", {"shell": "/bin/zsh"}, of(lambda config: config.shell), "/bin/zsh"),
    Shape(
        "what only opencode's programs use",
        {
            "theme": "tokyonight",
            "tui": {"scroll_speed": 3},
            "keybinds": {"leader": "ctrl+x"},
            "autoupdate": "notify",
            "share": "manual",
            "username": "ada",
            "server": {"port": 4096, "cors": ["https://a.example"]},
            "watcher": {"ignore": ["node_modules/**"]},
            "plugin": ["opencode-tides@1.0", ["file:///p.js", {"a": 1}]],
            "skills": {"paths": ["skills"]},
            "references": {"docs": "~/docs"},
            "enterprise": {"url": "https://e.example"},
            "logLevel": "DEBUG",
            "experimental": {"openTelemetry": True, "batch_tool": True, "disable_paste_summary": True},
            "mcp": {"jira": {"type": "remote", "url": "https://jira.example/mcp", "enabled": False, "oauth": {}}},
        },
        lambda loaded: (loaded.merged["theme"], loaded.merged["plugin"]),
        ("tokyonight", ["opencode-tides@1.0", ["file:///p.js", {"a": 1}]]),
    ),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_file_means_what_opencode_documents(shape: Shape, tmp_path: Path) -> None:
    assert len(SHAPES) > 20
    text = shape.text if isinstance(shape.text, str) else json.dumps(shape.text, indent=2)
    for place in (tmp_path / ".config/opencode", tmp_path / "project", tmp_path / "project/.opencode"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "secret").write_text("from-file\n")
        (place / "opencode.jsonc").write_text(text)
        environ = {"HOME": str(tmp_path), "TURNKEEPER_TRUST": "1", "TIDE_KEY": "from-variable"}
        loaded = load(tmp_path / "project", tmp_path / "project", environ)
        assert (loaded.warnings, shape.meaning(loaded)) == ([], shape.expected)
        (place / "opencode.jsonc").unlink()
