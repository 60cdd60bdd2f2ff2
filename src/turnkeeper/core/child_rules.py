"""Rules of a Child Session: what it inherits, so that it may never do more than its parent.

| Rule | The Child Session |
|---|---|
| of the parent session: a deny, an ask, anything about directories outside the project | has it, too |
| of the agent plan, if that one calls: a deny or an ask for edit and bash | has it, too |
| of any other calling agent | has it only if its own agent has it |
| deny of todowrite, deny of task | has it, unless its agent has a rule for that permission |
| deny of each tool that is only for primary agents | has it |
| a deny of its own agent, for a permission that an inherited rule asks or allows | has it again, after that rule |

The rules of a session come after those of its agent, and the last match wins. A Child Session that goes on for a caller
with other rules than before, such as plan after build, has these, too, from then on.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from turnkeeper.core.agents import PLAN
from turnkeeper.core.permission import about, evaluate
from turnkeeper.model.agent import Agent
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.text import wildcard

TASK: Final = "task"
"""The tool that starts Child Sessions, and its permission."""

_OWN: Final = ("todowrite", TASK)
"""Permissions that an agent has in a Child Session only if it has a rule for them."""

_CHANGING: Final = frozenset({"edit", "bash"})


def child_rules(
    session: Sequence[Rule],
    caller: Agent,
    agent: Agent,
    *,
    primary_tools: Sequence[str] = (),
    inherits_plan: bool = True,
) -> Ruleset:
    """The rules of a new Child Session. ``session`` are those of its parent, ``caller`` is the parent's agent."""
    inherited = [one for one in session if one.action != "allow" or one.permission == "external_directory"]
    if caller.name == PLAN and inherits_plan:
        inherited += [one for one in caller.permission if one.permission in _CHANGING and one.action != "allow"]
    named = {one.permission for one in agent.permission}
    denied = (*(own for own in _OWN if own not in named), *primary_tools)
    loose = [one.permission for one in inherited if one.action != "deny"]
    again = [one for one in agent.permission if one.action == "deny" and any(_overlap(one, other) for other in loose)]
    return (*inherited, *(Rule(permission=one, pattern="*", action="deny") for one in denied), *again)


def narrowed(own: Sequence[Rule], inherited: Sequence[Rule]) -> Ruleset:
    """The rules of a Child Session that goes on: its own, then those that it would inherit now, unless it has them."""
    return (*own, *inherited) if any(one not in own for one in inherited) else tuple(own)


def callable_agents(agents: Iterable[Agent], rules: Sequence[Rule]) -> tuple[Agent, ...]:
    """The agents that may be called under these rules, by name: none that is primary or hidden."""
    free, tasks = (one for one in agents if one.mode != "primary" and not one.hidden), about(rules, TASK)
    return tuple(sorted((one for one in free if evaluate(tasks, TASK, one.name) != "deny"), key=lambda one: one.name))


def described_agents(agents: Iterable[Agent]) -> tuple[Agent, ...]:
    """The agents that a model is told of: those that some agent which answers the user may call.

    The text is the same for every answering agent: a text that changed with the agent would miss the provider's cache.
    """
    known = tuple(agents)
    callers = [one for one in known if one.mode != "subagent" and not one.hidden]
    found = {one.name: one for caller in callers for one in callable_agents(known, caller.permission)}
    return tuple(sorted(found.values(), key=lambda one: one.name))


def mentioned(names: Sequence[str]) -> Ruleset:
    """The rules that let a model call the agents which the user has named."""
    return tuple(Rule(permission=TASK, pattern=wildcard.literal(name), action="allow") for name in names)


def _overlap(rule: Rule, permission: str) -> bool:
    return wildcard.matches(permission, rule.permission) or wildcard.matches(rule.permission, permission)
