"""Config: the settings of ``opencode.json``. Unknown keys are ignored, with a warning.

Field names keep the spelling of the file: ``small_model``, but ``apiKey`` and ``baseURL``. None means not set. The text
below a field is its documentation, in docs/reference/config.md and in the JSON Schema for editors: what it means, then
``Default: ...`` if that is more than "not set", then ``Example: `...` `` as JSON if the type does not suggest one.
"""

from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from turnkeeper.model.mcp_config import McpConfig, McpOAuthConfig
from turnkeeper.model.permission import Action
from turnkeeper.model.provider_config import (
    CostConfig,
    InterleavedConfig,
    LimitConfig,
    ModalityConfig,
    ModelConfig,
    PriceConfig,
    ProviderConfig,
    ProviderOptions,
    RouteConfig,
    Setting,
    TierConfig,
    TierSize,
)
from turnkeeper.model.tool_config import FormatterConfig, LspConfig, WebfetchConfig
from turnkeeper.model.value import JsonObject

PermissionConfig: TypeAlias = Action | dict[str, Action | dict[str, Action]]
"""One action for everything, or by permission, or by permission and pattern. The last match wins."""

__all__ = [
    "CostConfig",
    "FormatterConfig",
    "InterleavedConfig",
    "LimitConfig",
    "LspConfig",
    "McpConfig",
    "McpOAuthConfig",
    "ModalityConfig",
    "ModelConfig",
    "PriceConfig",
    "ProviderConfig",
    "ProviderOptions",
    "RouteConfig",
    "Setting",
    "TierConfig",
    "TierSize",
    "WebfetchConfig",
]
"""What other modules import from here although it is in another one."""

COLOR: Final = r"^(#[0-9a-fA-F]{6}|primary|secondary|accent|success|warning|error|info)$"
"""The colours that clients know."""


class AgentConfig(Setting):
    """An agent: a new one, or changes to a built-in."""

    name: str | None = None
    """The name, if it is not the key. Example: `"reviewer"`"""
    model: str | None = None
    """Its model, as `provider/model`. Example: `"anthropic/claude-haiku-4-5"`"""
    variant: str | None = None
    """The variant of its model, unless the prompt names one. Example: `"high"`"""
    description: str | None = None
    """What it is for. Example: `"Reads changes and looks for mistakes"`"""
    prompt: str | None = None
    """Who the model is; in place of the prompt for its family. Example: `"You review code."`"""
    mode: Literal["primary", "subagent", "all"] | None = None
    """`primary` (can be talked to), `subagent` (is only called), `all`."""
    hidden: bool | None = None
    """Not offered."""
    disable: bool | None = None
    """Removed."""
    color: Annotated[str, msgspec.Meta(pattern=COLOR)] | None = None
    """How clients show it: `#RRGGBB`, or `primary`, `secondary`, `accent`, `success`, `warning`, `error`, `info`.
    Example: `"#44aa88"`
    """
    temperature: float | None = None
    """As the model takes it; sent if the model says that it takes one. Example: `0.2`"""
    top_p: float | None = None
    """As the model takes it. Example: `0.9`"""
    steps: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """How many turns after the user spoke; in the last one it is told to answer without tools. Example: `20`"""
    max_steps: Annotated[int, msgspec.Meta(ge=1)] | None = msgspec.field(default=None, name="maxSteps")
    """The older name of `steps`. Example: `20`"""
    permission: PermissionConfig | None = None
    """Rules, stronger than the general ones. Example: `{"edit": "deny"}`"""
    tools: dict[str, bool] | None = None
    """The older form of them. Example: `{"write": false}`"""
    options: JsonObject | None = None
    """Further options of the request, as the protocol knows them; keys that stand on no line here are options, too.
    Example: `{"reasoningEffort": "high"}`
    """


class CatalogConfig(Setting):
    """The URL from which ``models --fetch`` fetches the catalogue. No other command fetches it."""

    url: str | None = None
    """Where `turnkeeper models --fetch` fetches it; nothing is fetched unasked. Default: not set. Example:
    `"https://models.dev/api.json"`
    """


class ImageConfig(Setting):
    """The maximum size of a prompt's images, and whether larger images are scaled down."""

    auto_resize: bool | None = None
    """Whether images of a prompt over these limits are made smaller (with `turnkeeper[images]`) or refused. Default:
    `true`.
    """
    max_width: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Pixels. Default: 2000. Example: `1600`"""
    max_height: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Pixels. Default: 2000. Example: `1600`"""
    max_base64_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """The length of an image's base64 text. Default: 5242880. Example: `1000000`"""


class AttachmentConfig(Setting):
    """Settings of prompt attachments."""

    image: ImageConfig = ImageConfig()
    """About images that are attached to a prompt."""


class CompactionConfig(Setting):
    """When a session is compacted, how much of it is kept, and whether old tool outputs are pruned."""

    auto: bool | None = None
    """Compact before a request would not fit, and after a provider refuses one. Default: `true`."""
    prune: bool | Literal["always", "pays"] | None = None
    """`false`: old outputs are never pruned; `"pays"` or `true`: where it costs nothing; `"always"`: after each run.
    Default: `"pays"`. Example: `"always"`
    """
    reserved: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Tokens kept free for the answer. Default: the longest answer. Example: `20000`"""
    tail_turns: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many of the newest turns stay word for word at the most; 0: none. Default: no limit. Example: `2`"""
    preserve_recent_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many tokens of the newest history stay word for word. Default: a quarter of the window, 2000 to 15000.
    Example: `8000`
    """
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Compact above so many tokens, even if the model could take more. Default: not set. Example: `100000`"""
    max_messages: Annotated[int, msgspec.Meta(ge=2)] | None = None
    """Compact above so many messages. Default: not set. Example: `200`"""


class ToolOutputConfig(Setting):
    """How much of a tool's output a model is shown. The store keeps the whole output."""

    max_lines: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Lines. Default: 2000. Example: `500`"""
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Bytes; all results of one turn share four times as much. Default: 51200. Example: `20000`"""


SandboxMode: TypeAlias = Literal["read-only", "workspace", "off"]
"""What the kernel lets a model's commands change: nothing, the project and what its tools need, or everything."""


class SandboxConfig(Setting):
    """What the model's commands may change and reach, enforced by the kernel."""

    mode: SandboxMode | None = None
    """`workspace`: the project, temporary files and caches; `read-only`: nothing; `off`: no sandbox. Default:
    `"workspace"`; `"read-only"` for an agent whose rules deny `edit`.
    """
    write: tuple[str, ...] | None = None
    """Further paths that commands may write, as `["~/notes", "/srv/www"]`. Default: none. Example: `["~/notes",
    "/srv/www"]`
    """
    network: bool | None = None
    """Whether commands may use the network. Default: `true`."""


class AskConfig(Setting):
    """How long requests to the user wait, and what holds when no answer came."""

    timeout: Annotated[float, msgspec.Meta(gt=0, le=2**40)] | None = None
    """Seconds until a permission request is answered by the default, and a question counts as dismissed. Default: not
    set: as long as it takes. Example: `300`
    """
    default: Literal["reject", "once"] | None = None
    """What a permission request is answered with then: `reject` or `once`. Default: `reject`."""


class SnapshotConfig(Setting):
    """How much the snapshots of a project may take, and how long they stay."""

    quota_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Bytes of all snapshots of a project; the oldest go first. Default: 2147483648. Example: `1073741824`"""
    retention_days: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Days that a session's snapshots stay after its last one. Default: 7. Example: `14`"""
    max_file_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Larger files are left out, unless the project's repository tracks them. Default: 2097152. Example: `1048576`"""


class ExperimentalConfig(Setting):
    """Settings of opencode that may still change."""

    continue_loop_on_deny: bool | None = None
    """Whether the model goes on after you rejected a call without a word. Default: `false`."""
    primary_tools: tuple[str, ...] = ()
    """Tools that [child sessions](../guides/children.md) do not have. Default: none. Example: `["question"]`"""
    mcp_timeout: Annotated[int, msgspec.Meta(ge=1, le=2**53)] | None = None
    """Milliseconds of a call of an [MCP server](../guides/mcp.md) that has no `timeout`. Default: 60000. Example:
    `120000`
    """
    inherit_plan: bool | None = None
    """`false`: child sessions of `plan` may edit and run commands as their own agent may. Default: `true`."""


class CommandConfig(Setting):
    """A command: its prompt template, and the agent and model that answer it."""

    template: str
    """What is said; `$1`, `$2` ... and `$ARGUMENTS` are what stands behind the name, `` !`program` `` what it prints.
    Example: `"Run the tests of $1."`
    """
    description: str | None = None
    """What clients show with it. Example: `"Run the tests"`"""
    agent: str | None = None
    """Who answers. Default: the prompt's. Example: `"plan"`"""
    model: str | None = None
    """By which model, as `provider/model`. Default: the agent's. Example: `"anthropic/claude-haiku-4-5"`"""
    variant: str | None = None
    """A variant of the model. Default: the prompt's. Example: `"high"`"""
    subtask: bool | None = None
    """Whether it is run in a [child session](../guides/children.md). Default: `true` if its agent is a subagent."""


class SkillsConfig(Setting):
    """Further places of skills."""

    paths: tuple[str, ...] = ()
    """Directories; `~/` begins at home, and others are relative to the directory of the session. Default: none.
    Example: `["~/skills"]`
    """
    urls: tuple[str, ...] = ()
    """Addresses below which there is an `index.json`. Default: none. Example: `["https://example.com/skills/"]`"""


class ProjectAsks(Setting):
    """What a project that is not trusted wants the user to be asked about: in general, and by agent."""

    permission: JsonObject = {}
    agent: dict[str, JsonObject] = {}


class EnterpriseConfig(Setting):
    """Another host for shared sessions."""

    url: str | None = None
    """The address of a host that speaks opencode's share protocol; sessions are shared there, and sent there.
    Default: none: they are shown by your own server. Example: `"https://share.example.com"`
    """


class Config(Setting):
    """All settings, merged."""

    model: str | None = None
    """The model of a prompt that names none, as `provider/model`. Default: the best guess among providers with a key;
    else `offline/tk-1`. Example: `"anthropic/claude-sonnet-4-5"`
    """
    small_model: str | None = None
    """The model for titles. Default: a small one of the same provider, else the session's own. Example:
    `"anthropic/claude-haiku-4-5"`
    """
    default_agent: str | None = None
    """The agent of a prompt that names none; if it does not exist or only helps others, there is a warning and `build`
    answers. Default: `build`. Example: `"plan"`
    """
    agent: dict[str, AgentConfig] = {}
    """Agents by name: changes to the built-in ones, or new ones. Example: `{"build": {"temperature": 0.2}}`"""
    permission: PermissionConfig | None = None
    """Rules about what may happen, see [permissions](#permissions). Default: everything is allowed but what lies
    outside the project, `.env` files and doom loops, which are asked about.
    Example: `{"*": "ask", "bash": {"git status*": "allow"}}`
    """
    tools: dict[str, bool] | None = None
    """The older form of `permission`: `{"bash": false}`. Default: none. Example: `{"bash": false}`"""
    provider: dict[str, ProviderConfig] = {}
    """Providers by name: changes to those of the catalogue, or new ones. Example: `{"local": {"protocol":
    "openai-chat", "options": {"baseURL": "http://127.0.0.1:8080/v1"}}}`
    """
    enabled_providers: tuple[str, ...] | None = None
    """Only these are used. Default: all. Example: `["anthropic"]`"""
    disabled_providers: tuple[str, ...] = ()
    """These are not. Default: none. Example: `["openai"]`"""
    subagent_depth: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How deep [child sessions](../guides/children.md) nest that agents start; 0: none are started. Default: 1.
    Example: `2`
    """
    recovery: Literal["rest", "continue", "ask"] | None = None
    """What becomes of turns that the death of their process, or an outage of the store, cut off with some output:
    `rest` waits for the user, `continue` goes on; `ask` asks where there is somebody to ask, and else rests. A turn
    of which nothing was recorded is always asked again. `turnkeeper session recover` looks after all such sessions;
    `run -c` and `session resume` after the one they name. `metadata.recovery` of a session is stronger than the
    setting. Default: `rest`.
    """
    instructions: tuple[str, ...] = ()
    """Further instruction files: paths, patterns or addresses. Default: none. Example: `["docs/*.md"]`"""
    timezone: str | None = None
    """Yours, as `Europe/Berlin`; decides when the date changes. Default: the host's. Example: `"Europe/Berlin"`"""
    shell: str | None = None
    """The shell of the bash tool and of commands of your own (`!`). Default: `$SHELL`, if it is one that models write
    for. Example: `"/bin/bash"`
    """
    command_environment: tuple[str, ...] = ()
    """Variables with keys or passwords that the model's commands may see, as `["GITHUB_TOKEN"]`; every variable that
    is [named like a secret](../guides/sandbox.md#the-environment) and settings in a variable
    (`TURNKEEPER_CONFIG_CONTENT`) are withheld from them, not from commands of your own (`!`). Default: none.
    Example: `["GITHUB_TOKEN"]`
    """
    sandbox: SandboxMode | SandboxConfig = SandboxConfig()
    """What the kernel lets the model's commands change, in one word or as an object; see [the
    sandbox](../guides/sandbox.md). A project's own files can tighten it and never widen it. Example: `"read-only"`
    """
    catalog: CatalogConfig = CatalogConfig()
    """About the catalogue of models."""
    attachment: AttachmentConfig = AttachmentConfig()
    """About images that are attached to a prompt."""
    tool_output: ToolOutputConfig = ToolOutputConfig()
    """How much of a tool's output a model is shown; [the rest is kept](../guides/run.md#what-a-model-is-not-shown)."""
    compaction: CompactionConfig = CompactionConfig()
    """When a session is compacted, and what a model no longer sees: [long sessions](../guides/long-sessions.md)."""
    snapshot: bool | SnapshotConfig | None = None
    """`false`: changes of files are neither recorded nor undone; an object says how much is kept. Default: `true`.
    Example: `false`
    """
    share: Literal["manual", "auto", "disabled"] | None = None
    """Whether sessions may be [shared](../guides/sharing.md): `auto` shares each new one, `disabled` refuses it.
    Default: `manual`. Example: `"disabled"`
    """
    share_url: str | None = None
    """The address under which others reach `turnkeeper serve`; links to sessions begin with it. Default: the address
    of the server that is asked, else of one that runs here, else `http://127.0.0.1:4096`.
    Example: `"https://tides.example.com"`
    """
    enterprise: EnterpriseConfig = EnterpriseConfig()
    """Another host for shared sessions."""
    command: dict[str, CommandConfig] = {}
    """[Commands](../guides/commands.md) by name, said as `/name`; also in files `command/NAME.md`. Default: none.
    Example: `{"test": {"template": "Run the tests of $1."}}`
    """
    ask: AskConfig = AskConfig()
    """How long requests to the user wait."""
    experimental: ExperimentalConfig = ExperimentalConfig()
    """Settings of opencode that may still change."""
    formatter: bool | dict[str, FormatterConfig] | None = None
    """Programs that [format files after an edit](../guides/tools.md#after-an-edit): `true` for the known ones that are
    installed, or an object by name; `false` for none. Default: none. Example: `{"prettier": {"disabled": true}}`
    """
    lsp: bool | dict[str, LspConfig] | None = None
    """[language servers](../guides/tools.md#after-an-edit) that are asked for errors after an edit, and where
    symbols are that a prompt [mentions](../guides/commands.md#mentions): `true` for the known ones that are installed,
    or an object by name; `false` for none. Default: none. Example: `{"pyright": {"disabled": true}}`
    """
    mcp: dict[str, McpConfig] = {}
    """[MCP servers](../guides/mcp.md) by name, whose tools models may call. Default: none. Example: `{"notes":
    {"type": "local", "command": ["notes-server"]}}`
    """
    webfetch: WebfetchConfig = WebfetchConfig()
    """About the webfetch tool."""
    skills: SkillsConfig = SkillsConfig()
    """Further places of [skills](../guides/skills.md). Example: `{"paths": ["~/skills"]}`"""
    plugin: tuple[str | tuple[str, JsonObject], ...] = ()
    """Installed packages with [plugins](../guides/plugins.md) that are used, by the names of their entry points, each
    alone or with its options. Plugins in JavaScript are left to opencode. Default: none.
    Example: `["audit", ["shout", {"volume": 3}]]`
    """
    denied: tuple[JsonObject, ...] = msgspec.field(default=(), name="$denied")
    """Permissions that projects deny which the user does not trust. No file sets this."""
    denied_to: tuple[dict[str, JsonObject], ...] = msgspec.field(default=(), name="$denied_to")
    """Permissions that such projects deny to agents, by their names. No file sets this."""
    asked: tuple[ProjectAsks, ...] = msgspec.field(default=(), name="$asked")
    """Permissions that such projects want the user to be asked about. No file sets this."""
