"""Agents: the built-in ones, changed and added to by configuration."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from turnkeeper.core.permission import EXTERNAL_RULES, READ_RULES, agent_rules, parse_rules, parse_switches
from turnkeeper.model.agent import Agent
from turnkeeper.model.config import AgentConfig, Config
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Action, Rule, Ruleset
from turnkeeper.model.refusal import Invalid
from turnkeeper.text import wildcard

BUILD = "build"
PLAN = "plan"
GENERAL = "general"
EXPLORE = "explore"
TITLE = "title"
SUMMARY = "summary"
COMPACTION = "compaction"

PLANS: Final = ".opencode/plans"
"""The folder of plan files in a repository."""
_PLAN_FILES: Final = f"{PLANS}/*.md"


def _rule(permission: str, action: Action, pattern: str = "*") -> Rule:
    return Rule(permission=permission, pattern=pattern, action=action)


_NOTHING: Final = (_rule("*", "deny"),)

BUILT_IN: Final = (
    Agent(
        name=BUILD,
        description="Does the work: reads, changes and runs.",
        native=True,
        permission=(_rule("question", "allow"), _rule("plan_enter", "allow")),
    ),
    Agent(
        name=PLAN,
        description="Looks and plans; changes nothing but its plan file.",
        native=True,
        permission=(
            _rule("question", "allow"),
            _rule("plan_exit", "allow"),
            _rule("task", "deny", GENERAL),
            _rule("edit", "deny"),
            _rule("edit", "allow", _PLAN_FILES),
        ),
    ),
    Agent(
        name=GENERAL,
        description="Does a task of several steps on its own, such as research or a change. Several can run at once.",
        mode="subagent",
        native=True,
        permission=(_rule("todowrite", "deny"),),
    ),
    Agent(
        name=EXPLORE,
        description="Finds files, code and facts in a project, and changes nothing. Say how thoroughly it is to look.",
        mode="subagent",
        native=True,
        permission=(
            *_NOTHING,
            *(_rule(name, "allow") for name in ("grep", "glob", "list", "bash", "jobs", "webfetch", "websearch")),
            *(_rule("recall", "allow"), *READ_RULES, *EXTERNAL_RULES),
        ),
    ),
    Agent(name=COMPACTION, native=True, hidden=True, permission=_NOTHING),
    Agent(name=TITLE, native=True, hidden=True, temperature=0.5, permission=_NOTHING),
    Agent(name=SUMMARY, native=True, hidden=True, permission=_NOTHING),
)
"""The built-in agents, each with the rules in which it differs from the defaults."""


UNCONFINED = Rule(permission="bash", pattern="*", action="ask")
"""The rule for read-only agents where no sandbox confines their commands: the user is asked about each command."""


def agents(
    config: Config, home: str, prompts: Mapping[str, str] = MappingProxyType({}), *, is_confined: bool = True
) -> dict[str, Agent]:
    """The agents of a configuration, by name, each with all rules that hold for it in every session.

    ``prompts`` are those of the built-in agents that have their own. ``is_confined``: commands run in a sandbox.
    """
    known = {agent.name: agent.but(prompt=prompts.get(agent.name)) for agent in BUILT_IN}
    if not is_confined:
        for name in (PLAN, EXPLORE):
            known[name] = known[name].but(permission=(*known[name].permission, UNCONFINED))
    own: dict[str, Ruleset] = {}
    for name, given in config.agent.items():
        if given.disable:
            known.pop(name, None)
        else:
            known[name] = _changed(known.get(name) or Agent(name=name, mode="all"), given)
            own[name] = _rules(given, home)
    planning = {PLAN: partial(_planning, is_confined=is_confined)}
    return {
        name: agent.but(
            permission=agent_rules(
                config, home, name, agent.permission, own.get(name, ()), planning.get(name, lambda rules: rules)
            )
        )
        for name, agent in known.items()
    }


def default_agent(known: Mapping[str, Agent], config: Config) -> Agent:
    """The agent that answers a prompt without an agent: that of the setting, else build, else the first that can.

    Raises Invalid if none can.
    """
    able = {name: agent for name, agent in known.items() if agent.mode != "subagent" and not agent.hidden}
    for name in (config.default_agent, BUILD, *able):
        if name in able:
            return able[name]
    raise Invalid("no agent answers prompts: all are disabled, hidden or only called by others; enable one")


def default_agent_problem(known: Mapping[str, Agent], config: Config) -> str | None:
    """Why the setting ``default_agent`` has no effect; None if it has."""
    wanted = config.default_agent
    used = default_agent(known, config).name
    if wanted is None or wanted == used:
        return None
    return f"default_agent {wanted!r} is not an agent that answers prompts; {used} is used instead"


def listed(known: Mapping[str, Agent], first: str) -> list[Agent]:
    """The agents in the order of lists: that named ``first``, then the others by name."""
    return sorted(known.values(), key=lambda agent: (agent.name != first, agent.name))


def find_agent(known: Mapping[str, Agent], name: str) -> Agent:
    """The agent of this name. Raises Invalid, which lists the known agents."""
    if name not in known:
        shown = ", ".join(sorted(agent.name for agent in known.values() if not agent.hidden))
        raise Invalid(f"there is no agent {name!r}; the agents are: {shown}")
    return known[name]


def _planning(rules: Ruleset, *, is_confined: bool) -> Ruleset:
    """Rules for all agents, narrowed for the agent plan: none of them lets it write anything but plan files.

    Where commands are not confined, only a rule that names ``bash`` lets it run them unasked.
    """
    result: list[Rule] = []
    for rule in rules:
        result.append(rule)
        if rule.action == "deny":
            continue
        if wildcard.matches("edit", rule.permission) and not wildcard.matches(rule.pattern, _PLAN_FILES):
            result.append(_rule("edit", "deny", rule.pattern))
            if wildcard.matches(_PLAN_FILES, rule.pattern):
                result.append(_rule("edit", rule.action, _PLAN_FILES))
        if not is_confined and rule.permission != "bash" and wildcard.matches("bash", rule.permission):
            result.append(_rule("bash", "ask", rule.pattern))
    return tuple(result)


def _changed(agent: Agent, given: AgentConfig) -> Agent:
    changes: dict[str, object] = {
        name: value
        for name in ("description", "prompt", "mode", "hidden", "color", "variant", "temperature", "top_p", "options")
        if (value := getattr(given, name)) is not None
    }
    if (steps := given.steps if given.steps is not None else given.max_steps) is not None:
        changes["steps"] = steps
    if given.model is not None:
        provider_id, _, model_id = given.model.partition("/")
        changes["model"] = ModelChoice(provider_id=provider_id, model_id=model_id)
    return agent.but(**changes)


def _rules(given: AgentConfig, home: str) -> Ruleset:
    rules = parse_rules(given.permission, home) if given.permission is not None else ()
    switches = parse_switches(given.tools) if given.tools else ()
    return (*switches, *rules)
