"""Permission rules: what an agent may do, as an ordered list; the last match wins."""

from typing import Literal, TypeAlias

from turnkeeper.model.value import Value

Action: TypeAlias = Literal["allow", "deny", "ask"]


class Rule(Value):
    """A permission, a wildcard pattern, and the action on a match."""

    permission: str
    pattern: str
    action: Action


Ruleset: TypeAlias = tuple[Rule, ...]
