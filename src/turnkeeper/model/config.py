"""Config: what a person may set, in the words of ``opencode.json``. Keys that are not listed here are ignored.

Unlike other values these keep the spelling of the files: ``small_model``, but ``apiKey`` and ``baseURL``.
None always means: not said.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

import msgspec

from turnkeeper.model.permission import Action
from turnkeeper.model.value import JsonObject, Value

PermissionConfig: TypeAlias = Action | dict[str, Action | dict[str, Action]]
"""One action for everything, or by permission, or by permission and pattern. The last that matches wins."""


def _as_written(name: str) -> str:
    return name


class Setting(Value, rename=_as_written):
    """Base of what a configuration file holds."""


class PriceConfig(Setting):
    """US dollars for a million tokens."""

    input: float | None = None
    output: float | None = None
    cache_read: float | None = None
    cache_write: float | None = None


class TierSize(Setting):
    """Where a tier begins."""

    type: str = "context"
    size: int = 0


class TierConfig(PriceConfig):
    """Prices for requests whose whole input is larger than the tier's size."""

    tier: TierSize = TierSize()


class CostConfig(PriceConfig):
    """A model's prices, with those for long requests."""

    tiers: tuple[TierConfig, ...] | None = None
    context_over_200k: PriceConfig | None = None


class LimitConfig(Setting):
    """Tokens."""

    context: int | None = None
    input: int | None = None
    output: int | None = None


class ModalityConfig(Setting):
    """What a model reads and writes."""

    input: tuple[str, ...] | None = None
    output: tuple[str, ...] | None = None


class InterleavedConfig(Setting):
    """The message field that carries reasoning back."""

    field: str | None = None


class RouteConfig(Setting):
    """A model that speaks another protocol, or lives elsewhere, than its provider's other models."""

    npm: str | None = None
    api: str | None = None
    protocol: str | None = None


class ModelConfig(Setting):
    """One model: the shape of models.dev, of our vendored catalogue and of configuration files alike."""

    id: str | None = None
    """What the provider calls it, if that is not the key it stands under."""
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
    """How to reach a provider. The key is never shown."""

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
    """The package by which opencode's files name a protocol, as ``@ai-sdk/openai-compatible``."""
    protocol: str | None = None
    """The wire protocol by our own name; stronger than ``npm``."""
    name: str | None = None
    api: str | None = None
    env: tuple[str, ...] | None = None
    options: ProviderOptions = ProviderOptions()
    own_options: JsonObject = msgspec.field(default={}, name="$options")
    """What else stands under ``options`` in the file: the protocol's own matter."""
    models: dict[str, ModelConfig] = {}
    whitelist: tuple[str, ...] | None = None
    blacklist: tuple[str, ...] | None = None


class AgentConfig(Setting):
    """An agent: a new one, or changes to a built-in."""

    model: str | None = None
    variant: str | None = None
    description: str | None = None
    prompt: str | None = None
    mode: Literal["primary", "subagent", "all"] | None = None
    hidden: bool | None = None
    disable: bool | None = None
    temperature: float | None = None
    top_p: float | None = None
    steps: int | None = None
    max_steps: int | None = msgspec.field(default=None, name="maxSteps")
    """The old name of ``steps``."""
    permission: PermissionConfig | None = None
    tools: dict[str, bool] | None = None
    options: JsonObject | None = None


class CatalogConfig(Setting):
    """Where ``models --refresh`` fetches the catalogue. Nothing is fetched unless a person asks."""

    url: str | None = None


class ImageConfig(Setting):
    """What images of a prompt may measure, and whether larger ones are made smaller."""

    auto_resize: bool | None = None
    max_width: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_height: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_base64_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AttachmentConfig(Setting):
    """About what is attached to a prompt."""

    image: ImageConfig = ImageConfig()


class CompactionConfig(Setting):
    """When a session is compacted, what is kept of it, and whether old tool outputs are pruned."""

    auto: bool | None = None
    prune: bool | Literal["always", "pays"] | None = None
    """False: never. True or ``pays`` (the default): where it costs nothing. ``always``: after each run."""
    reserved: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Tokens kept free for the answer."""
    tail_turns: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many of the newest turns are kept word for word at the most; 0: none."""
    preserve_recent_tokens: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """How many tokens of the newest history are kept word for word."""
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    """Compact above so many tokens, even if the model could take more."""
    max_messages: Annotated[int, msgspec.Meta(ge=2)] | None = None
    """Compact above so many messages."""


class ToolOutputConfig(Setting):
    """How much of a tool's output a model is shown; the rest is kept, and can be asked for."""

    max_lines: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None


class AskConfig(Setting):
    """How long requests to the user wait, and what holds when nobody answered."""

    timeout: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """Seconds; not said: as long as it takes."""
    default: Literal["reject", "once"] | None = None
    """What a permission request is answered with then. Questions count as dismissed."""


class ExperimentalConfig(Setting):
    """Settings of opencode that may still change."""

    continue_loop_on_deny: bool | None = None
    """Whether the model goes on after the user rejected a call without a word."""


class CommandConfig(Setting):
    """A command: what is said when somebody writes its name, and by whom it is answered."""

    template: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    subtask: bool | None = None


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
    recovery: Literal["rest", "continue", "ask"] | None = None
    """What becomes of turns that a dead process left open."""
    instructions: tuple[str, ...] = ()
    """Further instruction files: paths, patterns, or addresses."""
    timezone: str | None = None
    """The user's, as ``Europe/Berlin``; the host's if not said."""
    shell: str | None = None
    command_environment: tuple[str, ...] = ()
    """Variables with keys or passwords that the model's commands may see all the same."""
    catalog: CatalogConfig = CatalogConfig()
    attachment: AttachmentConfig = AttachmentConfig()
    tool_output: ToolOutputConfig = ToolOutputConfig()
    compaction: CompactionConfig = CompactionConfig()
    command: dict[str, CommandConfig] = {}
    ask: AskConfig = AskConfig()
    experimental: ExperimentalConfig = ExperimentalConfig()
