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
from turnkeeper.model.message import ModelChoice
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
    Shape("the older switch for sharing", {"autoshare": True}, lambda loaded: loaded.merged, {"autoshare": True}),
    Shape("the older layout", {"layout": "stretch"}, lambda loaded: loaded.merged, {"layout": "stretch"}),
    Shape(
        "all rules of an agent in one word",
        {"agent": {"build": {"permission": "deny"}}},
        lambda loaded: [action("build", name, "x")(loaded) for name in ("edit", "bash", "webfetch")],
        ["deny", "deny", "deny"],
    ),
    Shape(
        "a rule for all tools, and one for some",
        {"permission": {"*": "ask", "read": "allow", "edit": {"*": "deny", "*.md": "allow"}}},
        lambda loaded: [
            action("build", *one)(loaded)
            for one in (("webfetch", "x"), ("read", "a.py"), ("edit", "a.py"), ("edit", "a.md"))
        ],
        ["ask", "allow", "deny", "allow"],
    ),
    Shape(
        "rules of an agent by pattern",
        {"agent": {"plan": {"permission": {"bash": {"*": "deny", "git log*": "allow"}}}}},
        lambda loaded: [action("plan", "bash", line)(loaded) for line in ("ls", "git log -3")],
        ["deny", "allow"],
    ),
    Shape(
        "older modes with tools",
        {"mode": {"plan": {"tools": {"bash": False}, "model": "acme/large"}}},
        lambda loaded: (action("plan", "bash", "ls")(loaded), str(agents(loaded.config, HOME)["plan"].model)),
        ("deny", str(ModelChoice(provider_id="acme", model_id="large"))),
    ),
    Shape(
        "a variable within a text, and one that is not set",
        {"provider": {"x": {"options": {"baseURL": "https://{env:TIDE_KEY}.example/{env:NOT_SET}v1"}}}},
        of(lambda config: config.provider["x"].options.base_url),
        "https://from-variable.example/v1",
    ),
    Shape(
        "references in comments are no references",
        '{\n  // "apiKey": "{file:./nowhere}"\n  "username": "{env:TIDE_KEY}" /* {file:nowhere} */\n}',
        lambda loaded: loaded.merged,
        {"username": "from-variable"},
    ),
    Shape(
        "a file as an agent's prompt",
        {"agent": {"reader": {"description": "x", "prompt": "{file:./secret}"}}},
        lambda loaded: agents(loaded.config, HOME)["reader"].prompt,
        "from-file",
    ),
    Shape(
        "servers for tools, local and remote",
        {
            "mcp": {
                "gauge": {"type": "local", "command": ["gauge"], "enabled": False, "timeout": 9000},
                "chart": {
                    "type": "remote",
                    "url": "https://chart.example/mcp",
                    "headers": {"Authorization": "Bearer {env:TIDE_KEY}"},
                    "oauth": False,
                },
            }
        },
        of(lambda config: (config.mcp["gauge"].command, config.mcp["gauge"].enabled, config.mcp["chart"].headers)),
        (("gauge",), False, {"Authorization": "Bearer from-variable"}),
    ),
    Shape("every formatter", {"formatter": True}, of(lambda config: config.formatter), True),
    Shape("no language server", {"lsp": False}, of(lambda config: config.lsp), False),
    Shape(
        "a language server that is switched off",
        {"lsp": {"typescript": {"disabled": True}, "pyright": {"env": {"A": "b"}}}},
        of(
            lambda config: (
                isinstance(config.lsp, dict) and (config.lsp["typescript"].disabled, config.lsp["pyright"].env)
            )
        ),
        (True, {"A": "b"}),
    ),
    Shape(
        "prices, limits and variants of a model",
        {
            "provider": {
                "acme": {
                    "npm": "@ai-sdk/openai-compatible",
                    "models": {
                        "m": {
                            "name": "M",
                            "cost": {"input": 1.5, "output": 3, "cache_read": 0.1},
                            "limit": {"context": 1000, "output": 100},
                            "modalities": {"input": ["text", "image"], "output": ["text"]},
                            "options": {"reasoningEffort": "low"},
                            "variants": {"deep": {"reasoningEffort": "high"}},
                        }
                    },
                }
            }
        },
        of(
            lambda config: (
                (found := Catalog(config).find("acme", "m")).price.input,
                found.limits.output,
                sorted(found.variants),
            )
        ),
        (1.5, 100, ["deep"]),
    ),
    Shape(
        "how an agent looks and how long it works",
        {"agent": {"build": {"color": "#44aa88", "steps": 7, "top_p": 0.9, "hidden": False}}},
        lambda loaded: ((found := agents(loaded.config, HOME)["build"]).color, found.steps, found.top_p),
        ("#44aa88", 7, 0.9),
    ),
    Shape(
        "limits of outputs and images",
        {"tool_output": {"max_lines": 10}, "attachment": {"image": {"max_width": 640, "auto_resize": False}}},
        of(lambda config: (config.tool_output.max_lines, config.attachment.image.max_width)),
        (10, 640),
    ),
    Shape(
        "child sessions",
        {"subagent_depth": 3, "experimental": {"primary_tools": ["question"], "continue_loop_on_deny": True}},
        of(lambda config: (config.subagent_depth, config.experimental.primary_tools)),
        (3, ("question",)),
    ),
    Shape(
        "keys and looks of the terminal",
        {"keybinds": {"leader": "ctrl+x", "session_new": "none"}, "tui": {"diff_style": "auto"}, "theme": "system"},
        lambda loaded: sorted(loaded.merged),
        ["keybinds", "theme", "tui"],
    ),
    Shape("an empty object", "{}", lambda loaded: loaded.merged, {}),
    Shape("an empty file", "", lambda loaded: loaded.merged, {}),
    Shape("a mark at the beginning", '\ufeff{"model": "a/b"}', of(lambda config: config.model), "a/b"),
    Shape("lines as in Windows", '{\r\n  // x\r\n  "model": "a/b",\r\n}\r\n', of(lambda config: config.model), "a/b"),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_file_means_what_opencode_documents(shape: Shape, tmp_path: Path) -> None:
    assert len(SHAPES) > 50
    text = shape.text if isinstance(shape.text, str) else json.dumps(shape.text, indent=2)
    for place in (tmp_path / ".config/opencode", tmp_path / "project", tmp_path / "project/.opencode"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "secret").write_text("from-file\n")
        (place / "opencode.jsonc").write_text(text)
        environ = {"HOME": str(tmp_path), "TURNKEEPER_TRUST": "1", "TIDE_KEY": "from-variable"}
        loaded = load(tmp_path / "project", tmp_path / "project", environ)
        assert (loaded.warnings, shape.meaning(loaded)) == ([], shape.expected)
        (place / "opencode.jsonc").unlink()


def test_of_a_key_that_is_set_twice_the_last_holds_and_a_warning_says_so(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "opencode.jsonc").write_text('{"model": "a/first", "model": "a/last"}')
    loaded = load(project, project, {"HOME": str(tmp_path), "TURNKEEPER_TRUST": "1"})
    assert loaded.config.model == "a/last"
    [warning] = loaded.warnings
    assert "model is set twice" in warning
