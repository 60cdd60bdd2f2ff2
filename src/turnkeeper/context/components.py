"""The registry of Context Components that plugins add to a runtime."""

import re
from collections.abc import Iterator

from turnkeeper.context.component import ContextComponent
from turnkeeper.core.system_context import OURS
from turnkeeper.model.refusal import Invalid
from turnkeeper.registry import Registration, Registry

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._-]*(/[a-z0-9][a-z0-9._-]*)*")


class Components:
    """A scoped registry: leaving the scope removes the component. A reloaded plugin registers its components again."""

    def __init__(self) -> None:
        self._registry: Registry[ContextComponent] = Registry("context component")

    def register(self, component: ContextComponent) -> Registration[ContextComponent]:
        """Add a component from the next boundary on. Raises Invalid, or DuplicateKey if its key is in use."""
        if not isinstance(component, ContextComponent):
            raise Invalid(f"a component is what @turnkeeper.component makes of a function, not {component!r:.80}")
        check_key(component.key)
        return self._registry.register(component.key, component)

    def __iter__(self) -> Iterator[ContextComponent]:
        """The registered components, by key."""
        return iter(self._registry)


def check_key(key: str) -> None:
    """Raise Invalid unless a key is ``namespace/name`` in lower case and not reserved for built-in components."""
    if not _KEY.fullmatch(key):
        raise Invalid(f"{key!r} is no key of a Context Component; write it as namespace/name in lower case")
    if key.startswith(OURS):
        raise Invalid(f"{key!r} belongs to Turnkeeper, as do all keys that begin with {OURS!r}; use another namespace")
