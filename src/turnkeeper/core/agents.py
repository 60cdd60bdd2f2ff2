"""Agents: the built-in ones, changed and added to by configuration."""

from collections.abc import Mapping

from turnkeeper.core.permission import agent_rules, parse_rules, parse_switches
from turnkeeper.model.agent import Agent
from turnkeeper.model.config import AgentConfig, Config
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.refusal import Invalid

BUILD = "build"
PLAN = "plan"
TITLE = "title"
COMPACTION = "compaction"

BUILT_IN = (
    Agent(
        name=BUILD,
        description="Does the work: reads, changes and runs.",
        permission=(
            Rule(permission="question", pattern="*", action="allow"),
            Rule(permission="plan_enter", pattern="*", action="allow"),
        ),
    ),
    Agent(
        name=PLAN,
        description="Looks and plans; changes nothing.",
        permission=(
            Rule(permission="question", pattern="*", action="allow"),
            Rule(permission="plan_exit", pattern="*", action="allow"),
            Rule(permission="task", pattern="general", action="deny"),
            Rule(permission="edit", pattern="*", action="deny"),
        ),
    ),
    Agent(name=COMPACTION, hidden=True, permission=(Rule(permission="*", pattern="*", action="deny"),)),
    Agent(name=TITLE, hidden=True, temperature=0.5, permission=(Rule(permission="*", pattern="*", action="deny"),)),
)
"""The built-in agents, each with the rules in which it differs from the defaults."""


UNCONFINED = Rule(permission="bash", pattern="*", action="ask")
"""What the plan agent has where no sandbox keeps its commands from writing."""


def agents(config: Config, home: str, *, is_confined: bool = True) -> dict[str, Agent]:
    """The agents of a configuration, by name, each with all rules that hold for it in every session.

    ``is_confined``: commands run in a sandbox.
    """
    known = {agent.name: agent for agent in BUILT_IN}
    if not is_confined:
        known[PLAN] = known[PLAN].but(permission=(*known[PLAN].permission, UNCONFINED))
    own: dict[str, Ruleset] = {}
    for name, given in config.agent.items():
        if given.disable:
            known.pop(name, None)
        else:
            known[name] = _changed(known.get(name) or Agent(name=name, mode="all"), given)
            own[name] = _rules(given, home)
    return {
        name: agent.but(permission=agent_rules(config, home, name, agent.permission, own.get(name, ())))
        for name, agent in known.items()
    }


def default_agent(known: Mapping[str, Agent], config: Config) -> Agent:
    """The agent that answers a prompt without an agent."""
    wanted = config.default_agent
    if wanted is not None:
        agent = known.get(wanted)
        if agent is None or agent.mode == "subagent" or agent.hidden:
            raise Invalid(f"default_agent {wanted!r} is not an agent that answers prompts; choose another")
        return agent
    return next(agent for agent in known.values() if agent.mode != "subagent" and not agent.hidden)


def find_agent(known: Mapping[str, Agent], name: str) -> Agent:
    """The agent of this name. Raises Invalid, which lists the known agents."""
    if name not in known:
        shown = ", ".join(sorted(agent.name for agent in known.values() if not agent.hidden))
        raise Invalid(f"there is no agent {name!r}; the agents are: {shown}")
    return known[name]


def _changed(agent: Agent, given: AgentConfig) -> Agent:
    changes: dict[str, object] = {
        name: value
        for name in ("description", "prompt", "mode", "hidden", "temperature", "top_p", "options")
        if (value := getattr(given, name)) is not None
    }
    if (steps := given.steps if given.steps is not None else given.max_steps) is not None:
        changes["steps"] = steps
    if given.model is not None:
        provider_id, _, model_id = given.model.partition("/")
        changes["model"] = ModelChoice(provider_id=provider_id, model_id=model_id, variant=given.variant)
    return agent.but(**changes)


def _rules(given: AgentConfig, home: str) -> Ruleset:
    rules = parse_rules(given.permission, home) if given.permission is not None else ()
    switches = parse_switches(given.tools) if given.tools else ()
    return (*switches, *rules)
