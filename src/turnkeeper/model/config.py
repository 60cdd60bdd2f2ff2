"""Config: the settings of ``opencode.json``. Unknown keys are ignored.

Field names keep the spelling of the file: ``small_model``, but ``apiKey`` and ``baseURL``. None means not set.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from turnkeeper.model.permission import Action
from turnkeeper.model.value import JsonObject, Value

PermissionConfig: TypeAlias = Action | dict[str, Action | dict[str, Action]]
"""One action for everything, or by permission, or by permission and pattern. The last match wins."""

COLOR: Final = r"^(#[0-9a-fA-F]{6}|primary|secondary|accent|success|warning|error|info)$"
"""The colours that clients know."""


def _as_written(name: str) -> str:
    return name


class Setting(Value, rename=_as_written):
    """Base of the objects in a configuration file."""


class PriceConfig(Setting):
    """US dollars for a million tokens."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class TierSize(Setting):
    """The input size at which a tier begins."""

    type: str = "context"
    size: int = 0


class TierConfig(PriceConfig):
    """Prices for requests whose input is larger than the tier's size."""

    tier: TierSize = TierSize()


class CostConfig(PriceConfig):
    """A model's prices, with those for long requests."""

    tiers: tuple[TierConfig, ...] | None = None
    context_over_200k: PriceConfig | None = None


class LimitConfig(Setting):
    """Limits in tokens."""

    context: int | None = None
    input: int | None = None
    output: int | None = None


class ModalityConfig(Setting):
    """The inputs and outputs of a model."""

    input: tuple[str, ...] | None = None
    output: tuple[str, ...] | None = None


class InterleavedConfig(Setting):
    """The message field in which reasoning is sent back."""

    field: str | None = None


class RouteConfig(Setting):
    """The protocol or URL of a model, if it differs from its provider's other models."""

    npm: str | None = None
    api: str | None = None
    protocol: str | None = None


class ModelConfig(Setting):
    """One model: the shape of models.dev, of our vendored catalogue and of configuration files alike."""

    id: str | None = None
    """The model's name in requests, if it differs from its key."""
    name: str | None = None
    family: str | None = None
    release_date: str | None = None
    attachment: bool | None = None
    reasoning: bool | None = None
    temperature: bool | None = None
    tool_call: bool | None = None
    interleaved: bool | InterleavedConfig | None = None
    cost: CostConfig | None = None
    limit: LimitConfig | None = None
    modalities: ModalityConfig | None = None
    status: Literal["active", "alpha", "beta", "deprecated"] | None = None
    options: JsonObject | None = None
    variants: JsonObject | None = None
    provider: RouteConfig | None = None


class ProviderOptions(Setting):
    """The key, URL, headers and timeouts of a provider. ``repr`` hides the key."""

    api_key: str | None = msgspec.field(default=None, name="apiKey")
    base_url: str | None = msgspec.field(default=None, name="baseURL")
    headers: Mapping[str, str] | None = None
    timeout: int | float | Literal[False] | None = None
    """Milliseconds for a whole answer; false: no limit."""
    header_timeout: int | float | Literal[False] | None = msgspec.field(default=None, name="headerTimeout")
    """Milliseconds until an answer begins; false: no limit."""
    chunk_timeout: int | float | Literal[False] | None = msgspec.field(default=None, name="chunkTimeout")
    """Milliseconds between two pieces of an answer; false: no limit."""

    def __repr__(self) -> str:
        return f"ProviderOptions(base_url={self.base_url!r}, api_key={'set' if self.api_key else 'not set'})"


class ProviderConfig(Setting):
    """A provider: a new one, or changes to one of the catalogue."""

    npm: str | None = None
    """The package that names the protocol in opencode's files, such as ``@ai-sdk/openai-compatible``."""
    protocol: str | None = None
    """The wire protocol, a key of PROVIDERS; it overrides ``npm``."""
    name: str | None = None
    api: str | None = None
    env: tuple[str, ...] | None = None
    options: ProviderOptions = ProviderOptions()
    own_options: JsonObject = msgspec.field(default={}, name="$options")
    """Other keys under ``options`` in the file, which the protocol reads."""
    models: dict[str, ModelConfig] = {}
    whitelist: tuple[str, ...] | None = None
    blacklist: tuple[str, ...] | None = None


class AgentConfig(Setting):
    """An agent: a new one, or changes to a built-in."""

    name: str | None = None
    """The name, if it is not the key."""
    model: str | None = None
    variant: str | None = None
    description: str | None = None
    prompt: str | None = None
    mode: Literal["primary", "subagent", "all"] | None = None
    hidden: bool | None = None
    disable: bool | None = None
    color: Annotated[str, msgspec.Meta(pattern=COLOR)] | None = None
    """``#RRGGBB``, or a name of the client's theme."""
    temperature: float | None = None
    top_p: float | None = None
    steps: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_steps: Annotated[int, msgspec.Meta(ge=1)] | None = msgspec.field(default=None, name="maxSteps")
    """The old name of ``steps``."""
    permission: PermissionConfig | None = None
    tools: dict[str, bool] | None = None
    options: JsonObject | None = None


class CatalogConfig(Setting):
    """The URL from which ``models --refresh`` fetches the catalogue. No other command fetches it."""

    url: str | None = None


class ImageConfig(Setting):
    """The maximum size of a prompt's images, and whether larger images are scaled down."""

    auto_resize: bool | None = None
    max_width: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_height: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_base64_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AttachmentConfig(Setting):
    """Settings of prompt attachments."""

    image: ImageConfig = ImageConfig()


class CompactionConfig(Setting):
    """When a session is compacted, how much of it is kept, and whether old tool outputs are pruned."""

    auto: bool | None = None
    prune: bool | Literal["always", "pays"] | None = None
    """False: never. True or ``pays`` (the default): where it costs nothing. ``always``: after each run."""
    reserved: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Tokens kept free for the answer."""
    tail_turns: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """The most turns that are kept word for word; 0 keeps none."""
    preserve_recent_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Tokens of the newest history that are kept word for word."""
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Compact above this many tokens, even if the model accepts more."""
    max_messages: Annotated[int, msgspec.Meta(ge=2)] | None = None
    """Compact above this many messages."""


class ToolOutputConfig(Setting):
    """How much of a tool's output a model is shown. The store keeps the whole output."""

    max_lines: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None


SandboxMode: TypeAlias = Literal["read-only", "workspace", "off"]
"""What the kernel lets a model's commands change: nothing, the project and what its tools need, or everything."""


class SandboxConfig(Setting):
    """What the model's commands may change and reach, enforced by the kernel."""

    mode: SandboxMode | None = None
    write: tuple[str, ...] | None = None
    """Further directories and files that commands may write; ``~/`` begins at home."""
    network: bool | None = None
    """Whether commands may use the network."""


class AskConfig(Setting):
    """How long requests to the user wait, and what holds when nobody answered."""

    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Seconds; not said: as long as it takes."""
    default: Literal["reject", "once"] | None = None
    """What a permission request is answered with then. Questions count as dismissed."""


class SnapshotConfig(Setting):
    """How much the snapshots of a project may take, and how long they stay."""

    quota_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Bytes of all snapshots of a project."""
    retention_days: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """Days that the snapshots of a session stay after its last capture."""
    max_file_bytes: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Larger files are left out, unless the project's repository tracks them."""


class ExperimentalConfig(Setting):
    """Settings of opencode that may still change."""

    continue_loop_on_deny: bool | None = None
    """Whether the model goes on after the user rejected a call without a word."""
    primary_tools: tuple[str, ...] = ()
    """Tools that Child Sessions do not have."""
    inherit_plan: bool | None = None
    """False: Child Sessions of the agent plan may edit and run commands as their own agent may."""


class CommandConfig(Setting):
    """A command: its prompt template, and the agent and model that answer it."""

    template: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    subtask: bool | None = None


class FormatterConfig(Setting):
    """A program that formats files after an edit. ``$FILE`` in its command is the file."""

    command: tuple[str, ...] | None = None
    extensions: tuple[str, ...] | None = None
    """The endings of the files it is for, as ``.js``."""
    environment: dict[str, str] = {}
    disabled: bool | None = None


class LspConfig(Setting):
    """A language server that is asked for errors after an edit."""

    command: tuple[str, ...] | None = None
    extensions: tuple[str, ...] | None = None
    """The endings of the files it is for, as ``.py``."""
    env: dict[str, str] = {}
    initialization: JsonObject = {}
    """What the server is sent as its initialization options."""
    disabled: bool | None = None


class WebfetchConfig(Setting):
    """What the webfetch tool may reach."""

    private: bool | None = None
    """Whether it may reach this machine and private networks."""


class ProjectAsks(Setting):
    """What a project that is not trusted wants the user to be asked about: in general, and by agent."""

    permission: JsonObject = {}
    agent: dict[str, JsonObject] = {}


class Config(Setting):
    """All settings, merged."""

    model: str | None = None
    """``provider/model``."""
    small_model: str | None = None
    default_agent: str | None = None
    agent: dict[str, AgentConfig] = {}
    permission: PermissionConfig | None = None
    tools: dict[str, bool] | None = None
    """The old form of ``permission``."""
    provider: dict[str, ProviderConfig] = {}
    enabled_providers: tuple[str, ...] | None = None
    disabled_providers: tuple[str, ...] = ()
    subagent_depth: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How deep Child Sessions nest that agents start; 1 by default, so that they start none themselves."""
    recovery: Literal["rest", "continue", "ask"] | None = None
    """How to treat turns that a dead process left open."""
    instructions: tuple[str, ...] = ()
    """Further instruction files: paths, patterns or URLs."""
    timezone: str | None = None
    """The user's time zone, such as ``Europe/Berlin``; the host's by default."""
    shell: str | None = None
    command_environment: tuple[str, ...] = ()
    """Variables with keys or passwords that commands of the model may see."""
    sandbox: SandboxMode | SandboxConfig = SandboxConfig()
    """How the model's commands are confined; one word is short for ``mode``."""
    catalog: CatalogConfig = CatalogConfig()
    attachment: AttachmentConfig = AttachmentConfig()
    tool_output: ToolOutputConfig = ToolOutputConfig()
    compaction: CompactionConfig = CompactionConfig()
    snapshot: bool | SnapshotConfig | None = None
    """False: changes of files are neither recorded nor undone. True, the default: they are; an object says how."""
    command: dict[str, CommandConfig] = {}
    ask: AskConfig = AskConfig()
    experimental: ExperimentalConfig = ExperimentalConfig()
    formatter: bool | dict[str, FormatterConfig] | None = None
    """True: the known formatters that are installed; an object: these, with changes and further ones."""
    lsp: bool | dict[str, LspConfig] | None = None
    """True: the known language servers that are installed; an object: these, with changes and further ones."""
    webfetch: WebfetchConfig = WebfetchConfig()
    denied: tuple[JsonObject, ...] = msgspec.field(default=(), name="$denied")
    """Permissions that projects deny which the user does not trust. No file sets this."""
    asked: tuple[ProjectAsks, ...] = msgspec.field(default=(), name="$asked")
    """Permissions that such projects want the user to be asked about. No file sets this."""
