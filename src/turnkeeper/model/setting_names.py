"""Names of settings beside those of Config: the objects with further keys, and the settings that only opencode has."""

from collections.abc import Mapping
from typing import Final

from turnkeeper.model.config import (
    AgentConfig,
    CostConfig,
    InterleavedConfig,
    LimitConfig,
    ModalityConfig,
    ModelConfig,
    PriceConfig,
    ProviderOptions,
    RouteConfig,
    TierConfig,
    TierSize,
)

OPEN: Final[frozenset[type]] = frozenset(
    {
        *(AgentConfig, ProviderOptions, ModelConfig, CostConfig, PriceConfig, TierConfig, TierSize, LimitConfig),
        *(ModalityConfig, InterleavedConfig, RouteConfig),
    }
)
"""Objects that may have keys of their own: options of a provider, and further fields of models.dev."""

UNUSED: Final[Mapping[str, str]] = {
    "$schema": "the address of the JSON Schema, for editors",
    "autoshare": "the older form of `share`",
    "autoupdate": "whether opencode installs newer versions of itself",
    "experimental.batch_tool": "has no effect in opencode either",
    "experimental.chatMaxRetries": "retries follow a table here",
    "experimental.disable_paste_summary": "how opencode's terminal shows pasted text",
    "experimental.hook": "programs that opencode starts after an edit",
    "experimental.openTelemetry": "traces of opencode",
    "experimental.policies": "which providers and models may be used",
    "keybinds": "keys of opencode's terminal",
    "layout": "how opencode's terminal looked",
    "logLevel": "what opencode logs",
    "mode": "the older form of agents, which is read as `agent`",
    "provider.*.id": "the name of the provider, which is its key",
    "reference": "the older name of `references`",
    "references": "other repositories that a model may read",
    "server": "the address of opencode's server",
    "theme": "colours of opencode's terminal",
    "tui": "opencode's terminal",
    "username": "the name that clients show",
    "watcher": "files that opencode does not watch",
}
"""Settings of opencode that have no effect here. They are no error, so that files can be shared."""
