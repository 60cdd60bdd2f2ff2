"""Plugin status: the state of a plugin in a running program, and its last error."""

from typing import Literal, TypeAlias

from turnkeeper.model.value import Value

PluginState: TypeAlias = Literal["loaded", "left out", "failed"]


class PluginStatus(Value, omit_defaults=False):
    """A plugin, as it is now."""

    name: str
    kind: Literal["package", "file"]
    source: str
    """The file, or the value of the entry point."""
    hooks: tuple[str, ...]
    state: PluginState
    """``failed`` if it could not be loaded; a plugin stays ``loaded`` if only a hook of it failed."""
    error: str | None
    """The last error since it was loaded."""
    failures: int
    """The number of errors since then."""
    failed_at: int | None
    """The time of the last error, in milliseconds since 1970."""
    stopped: tuple[str, ...]
    """Hooks that took too long, and are not called until the plugin is loaded again."""
