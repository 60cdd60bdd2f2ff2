"""Flags: every environment variable of the program, in one table, with opencode's names where it has one.

Where several names of a flag are set, the last one counts. ``docs/reference/environment.md`` is written from the table.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Flag(NamedTuple):
    """An environment variable: its names, what it does, and what holds without it."""

    names: tuple[str, ...]
    meaning: str
    default: str = "not set"

    def values(self, environ: Mapping[str, str]) -> list[str]:
        """The values that are set, weakest first."""
        return [environ[name] for name in self.names if environ.get(name)]

    def value(self, environ: Mapping[str, str]) -> str | None:
        """The value; None if it is not set."""
        return next(reversed(self.values(environ)), None)

    def is_on(self, environ: Mapping[str, str]) -> bool:
        """Whether it is switched on: ``1`` or ``true``."""
        return (self.value(environ) or "").lower() in ("1", "true")

    def variable(self, environ: Mapping[str, str]) -> str:
        """The name that counts, which is the last that is set; the last of all if none is."""
        return ([name for name in self.names if environ.get(name)] or self.names)[-1]

    def number(self, environ: Mapping[str, str]) -> int | None:
        """The positive whole number that it is set to; None for anything else."""
        found = [
            int(value) for value in self.values(environ) if value.isascii() and value.isdigit() and len(value) < 16
        ]
        return next((number for number in reversed(found) if number > 0), None)


def _both(name: str, meaning: str, default: str = "not set", *, theirs: str | None = None) -> Flag:
    return Flag((f"OPENCODE_{theirs or name}", f"TURNKEEPER_{name}"), meaning, default)


DATA: Final = Flag(
    ("TURNKEEPER_DATA",),
    "the directory that holds the default store and `auth.json`; `--data DIR` overrides it for one command",
    "`$XDG_DATA_HOME/turnkeeper`, which is `~/.local/share/turnkeeper` where that variable is not set",
)
STORE: Final = Flag(
    ("TURNKEEPER_STORE",),
    "the store the command line uses: `sqlite:PATH`, `files:DIR`, `postgresql://USER@HOST/DATABASE` or `memory:`; "
    "`--store` and `--data` override it for one command",
    "the file `turnkeeper.db` in the data directory",
)
CONFIG: Final = _both("CONFIG", "a further configuration file, JSON or TOML; stronger than the project's")
CONFIG_DIR: Final = _both(
    "CONFIG_DIR",
    "a further directory of settings, with `turnkeeper.json`, agents and tools as in `.turnkeeper`; stronger than the "
    "project's, and yours: it needs no trust",
)
CONFIG_CONTENT: Final = _both("CONFIG_CONTENT", "settings as JSON; stronger than every file")
PERMISSION: Final = _both(
    "PERMISSION", "rules as JSON, as under `permission` of a configuration file; stronger than every other setting"
)
DISABLE_PROJECT_CONFIG: Final = _both(
    "DISABLE_PROJECT_CONFIG", "`1`: neither the settings nor the instruction files of a project are read"
)
TRUST: Final = Flag(
    ("TURNKEEPER_TRUST",),
    "`1`: every project is [trusted](config.md#trust), as with `--trust`; for scripts in directories you know",
)
AUTH_CONTENT: Final = _both("AUTH_CONTENT", "the content of `auth.json`, which is then not read")
MODELS_PATH: Final = _both("MODELS_PATH", "a file with the catalogue of models, in the form of models.dev")
MODELS_URL: Final = _both("MODELS_URL", "where `models --fetch` fetches the catalogue; weaker than `catalog.url`")
DISABLE_MODELS_FETCH: Final = _both("DISABLE_MODELS_FETCH", "`1`: `models` fetches no catalogue")
SERVER: Final = Flag(
    ("TURNKEEPER_SERVER",),
    "the server that `run` and the `session` commands work through, as in `http://127.0.0.1:4096`; `--server`, "
    "`--store` and `--data` override it for one command",
    "not set: they work on the store",
)
PLAIN: Final = Flag(
    ("ACCESSIBLE", "TURNKEEPER_PLAIN"),
    "`1`: a chat prints lines that stay, as with `--plain`, also where it could use the full screen",
    "not set: the full screen, if `turnkeeper[tui]` is installed and the terminal is large enough",
)
SERVER_PASSWORD: Final = _both(
    "SERVER_PASSWORD",
    "the password that `serve` demands of every request, and that clients send",
    "not set: only this machine is served, without one",
)
SERVER_USERNAME: Final = _both("SERVER_USERNAME", "the user that goes with it", "`opencode`")
DISABLE_AUTOCOMPACT: Final = _both("DISABLE_AUTOCOMPACT", "`1`: no session is compacted by itself")
DISABLE_PRUNE: Final = _both("DISABLE_PRUNE", "`1`: no output is pruned")
OUTPUT_TOKEN_MAX: Final = _both(
    "OUTPUT_TOKEN_MAX",
    "the longest answer that room is kept for, in tokens",
    "32000",
    theirs="EXPERIMENTAL_OUTPUT_TOKEN_MAX",
)
BASH_TIMEOUT: Final = _both(
    "BASH_DEFAULT_TIMEOUT_MS",
    "milliseconds after which a command of the model is stopped that asked for no other time",
    "120000",
    theirs="EXPERIMENTAL_BASH_DEFAULT_TIMEOUT_MS",
)
DISABLE_CLAUDE_CODE: Final = _both(
    "DISABLE_CLAUDE_CODE", "`1`: no `CLAUDE.md` and no skill in `.claude` is read, neither yours nor a project's"
)
DISABLE_CLAUDE_CODE_PROMPT: Final = _both(
    "DISABLE_CLAUDE_CODE_PROMPT", "`1`: your own `~/.claude/CLAUDE.md` is not read"
)
DISABLE_CLAUDE_CODE_SKILLS: Final = _both("DISABLE_CLAUDE_CODE_SKILLS", "`1`: no skill in `.claude` is read")
DISABLE_EXTERNAL_SKILLS: Final = _both(
    "DISABLE_EXTERNAL_SKILLS", "`1`: no skill in `.claude` and `.agents`, which other programs share, is read"
)
PURE: Final = _both("PURE", "`1`: no tool of `tool` and `tools` directories and no plugin is loaded")
AUTO_SHARE: Final = _both("AUTO_SHARE", "`1`: each new session is shared, as by the setting `share`")
DISABLE_SHARE: Final = _both("DISABLE_SHARE", "`1`: no session is shared, whatever the settings say")
WATCHER: Final = Flag(
    ("OPENCODE_EXPERIMENTAL_WATCHER", "OPENCODE_EXPERIMENTAL_FILEWATCHER", "TURNKEEPER_WATCHER"),
    "`1`: a server looks at files of settings also between turns, so that mistakes in them are told at once",
    "not set: before each turn",
)
DISABLE_WATCHER: Final = _both(
    "DISABLE_WATCHER",
    "`1`: it does not, also if `TURNKEEPER_WATCHER` is set",
    theirs="EXPERIMENTAL_DISABLE_FILEWATCHER",
)
LOG_LEVEL: Final = _both(
    "LOG_LEVEL",
    "what is logged on standard error: `debug`, `info`, `warn` or `error`; `serve --log-level` is stronger",
    "`warn`",
)
PRINT_LOGS: Final = _both("PRINT_LOGS", "`1`: `info` is logged, too, unless `TURNKEEPER_LOG_LEVEL` says otherwise")
LSP_TY: Final = _both(
    "LSP_TY",
    "`1`: `ty server` is the language server for Python if it is installed, in place of pyright",
    theirs="EXPERIMENTAL_LSP_TY",
)
OXFMT: Final = _both("OXFMT", "`1`: `oxfmt` is among the formatters if it is installed", theirs="EXPERIMENTAL_OXFMT")
TEST_HOME: Final = Flag(
    ("OPENCODE_TEST_HOME",), "for tests: the home directory, in place of `HOME`, for the command and what it runs"
)
FAKE_VCS: Final = _both("FAKE_VCS", "`git`: a directory outside of a repository counts as one, for tests")
DATABASE: Final = Flag(
    ("OPENCODE_DB",), "where `import opencode` looks for opencode's history", "opencode's data directory"
)
RECORD: Final = Flag(
    ("TURNKEEPER_RECORD",),
    "`1`: tests record the [recordings](../guides/python.md#tests) that do not exist yet, in place of failing",
)
OFFLINE_PAUSE: Final = Flag(
    ("TURNKEEPER_OFFLINE_PAUSE_MS",),
    "how long the offline model pauses between two words, for those who want to watch",
    "0",
)
CRASH: Final = Flag(
    ("TURNKEEPER_CRASH",),
    "for tests only: die without clean-up at a named crash point, as in `sqlite.before-commit:3` for the third time it "
    "is reached",
    "not set: nothing happens",
)

FLAGS: Final = (
    *(DATA, STORE, CONFIG, CONFIG_DIR, CONFIG_CONTENT, PERMISSION, DISABLE_PROJECT_CONFIG, TRUST, AUTH_CONTENT),
    *(MODELS_PATH, MODELS_URL, DISABLE_MODELS_FETCH, SERVER, SERVER_PASSWORD, SERVER_USERNAME, PLAIN),
    *(
        DISABLE_AUTOCOMPACT,
        DISABLE_PRUNE,
        OUTPUT_TOKEN_MAX,
        BASH_TIMEOUT,
        DISABLE_CLAUDE_CODE,
        DISABLE_CLAUDE_CODE_PROMPT,
        DISABLE_CLAUDE_CODE_SKILLS,
        DISABLE_EXTERNAL_SKILLS,
        PURE,
        FAKE_VCS,
        AUTO_SHARE,
        DISABLE_SHARE,
        WATCHER,
        DISABLE_WATCHER,
        LOG_LEVEL,
        PRINT_LOGS,
        LSP_TY,
        OXFMT,
        TEST_HOME,
    ),
    *(DATABASE, RECORD, OFFLINE_PAUSE, CRASH),
)
"""Every flag that does something."""

WITHOUT_EFFECT: Final[Mapping[str, str]] = {
    "OPENCODE_CLIENT": "clients say who they are themselves",
    "OPENCODE_DISABLE_CHANNEL_DB": "`OPENCODE_DB` names another database",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "no plugin is built in",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "no language server is ever downloaded",
    "OPENCODE_ENABLE_EXA": "there is no tool for web searches",
    "OPENCODE_ENABLE_PARALLEL": "there is no tool for web searches",
    "OPENCODE_ENABLE_QUESTION_TOOL": "the question tool is always offered",
    "OPENCODE_EXPERIMENTAL": "of what it switches on, the parts that are built are always on",
    "OPENCODE_EXPERIMENTAL_BACKGROUND_SUBAGENTS": "subagents can always run in the background",
    "OPENCODE_EXPERIMENTAL_CODE_MODE": "models call tools one by one",
    "OPENCODE_EXPERIMENTAL_EVENT_SYSTEM": "events are always recorded",
    "OPENCODE_EXPERIMENTAL_EXA": "there is no tool for web searches",
    "OPENCODE_EXPERIMENTAL_ICON_DISCOVERY": "projects have no icons",
    "OPENCODE_EXPERIMENTAL_LSP_TOOL": "language servers report mistakes after edits, and there is no tool for them",
    "OPENCODE_EXPERIMENTAL_NATIVE_LLM": "providers are always asked by this program's own code",
    "OPENCODE_EXPERIMENTAL_PLAN_MODE": "plan mode is always there",
    "OPENCODE_EXPERIMENTAL_REFERENCES": "the setting `references` is not used yet",
    "OPENCODE_EXPERIMENTAL_WEBSOCKETS": "providers are asked over HTTP",
    "OPENCODE_EXPERIMENTAL_WORKSPACES": "a session has a directory",
    "OPENCODE_WEBSEARCH_PROVIDER": "there is no tool for web searches",
    "OPENCODE_WORKSPACE_ID": "a session has a directory",
}
"""Flags of opencode that change nothing here, each with the reason."""


def settings_of(environ: Mapping[str, str], share: object = None) -> list[tuple[str, tuple[str, ...], str | bool]]:
    """The settings that flags override: the variable, the key, and the value that holds in place of the set one.

    ``share`` is what the setting of this name says.
    """
    overriding: list[tuple[Flag, tuple[str, ...], str | bool]] = [
        (DISABLE_AUTOCOMPACT, ("compaction", "auto"), False),
        (DISABLE_PRUNE, ("compaction", "prune"), False),
        *([(AUTO_SHARE, ("share",), "auto")] if share in (None, "manual") else []),
        (DISABLE_SHARE, ("share",), "disabled"),
    ]
    return [(flag.variable(environ), key, value) for flag, key, value in overriding if flag.is_on(environ)]


def watches(environ: Mapping[str, str]) -> bool:
    """Whether a server looks at files of settings also between turns."""
    return WATCHER.is_on(environ) and not DISABLE_WATCHER.is_on(environ)
