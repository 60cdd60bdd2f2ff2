"""Components: the plugin-defined Context Components of a runtime, each for as long as its scope lasts."""

import re
from collections.abc import Iterator

from turnkeeper.context.component import ContextComponent
from turnkeeper.model.refusal import Invalid
from turnkeeper.registry import Registration, Registry

OURS = "core/"
"""Keys of built-in components begin like this, those of later releases too."""

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


class Components:
    """A scoped registry. Leaving the scope removes the component; registering it again is how a plugin is reloaded."""

    def __init__(self) -> None:
        self._registry: Registry[ContextComponent] = Registry("context component")

    def register(self, component: ContextComponent) -> Registration[ContextComponent]:
        """Add a component from the next boundary on, until its scope is left. DuplicateKey if its key is taken."""
        check_key(component.key)
        return self._registry.register(component.key, component)

    def __iter__(self) -> Iterator[ContextComponent]:
        """Those registered now, in the order of their keys."""
        return iter(self._registry)


def check_key(key: str) -> None:
    """Raise Invalid unless a plugin may use the key: ``namespace/name`` in lower case, and not one of ours."""
    if not _KEY.fullmatch(key):
        raise Invalid(f"{key!r} is no key of a Context Component; write it as namespace/name in lower case")
    if key.startswith(OURS):
        raise Invalid(f"{key!r} belongs to Turnkeeper, as do all keys that begin with {OURS!r}; use another namespace")
