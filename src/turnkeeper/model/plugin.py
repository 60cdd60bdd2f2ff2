"""Plugin status: what became of a plugin in a running program, and what went wrong in it last."""

from typing import Literal, TypeAlias

from turnkeeper.model.value import Value

PluginState: TypeAlias = Literal["loaded", "left out", "failed"]


class PluginStatus(Value, omit_defaults=False):
    """A plugin, as it is now."""

    name: str
    kind: Literal["package", "file"]
    source: str
    """The file, or what the entry point names."""
    hooks: tuple[str, ...]
    state: PluginState
    """``failed`` if it could not be loaded; a plugin stays ``loaded`` if only a hook of it failed."""
    error: str | None
    """What went wrong last since it was loaded."""
    failures: int
    """How often something went wrong since then."""
    failed_at: int | None
    """When it last did, in milliseconds since 1970."""
    stopped: tuple[str, ...]
    """Hooks that took too long, and are not called until the plugin is loaded again."""
