"""Permission rules: what an agent may do, as an ordered list of which the last match wins."""

from typing import Literal, TypeAlias

from turnkeeper.model.value import Value

Action: TypeAlias = Literal["allow", "deny", "ask"]


class Rule(Value):
    """One line of a ruleset: a permission's name, a wildcard pattern and what to do on a match."""

    permission: str
    pattern: str
    action: Action


Ruleset: TypeAlias = tuple[Rule, ...]
