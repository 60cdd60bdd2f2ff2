"""Agent: an agent that a program defines in Python. It becomes configuration, as one in a file would."""

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from turnkeeper.model.config import PermissionConfig
from turnkeeper.model.message import ModelName, model_choice
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject

TASK = "task"


class Agent(msgspec.Struct, frozen=True):
    """A named set of prompt, model and rules: ``Agent("reviewer", "You review code.", model="provider/model")``.

    ``children`` are the agents that it may hand tasks to. None: any agent that may be given one.
    """

    name: str
    prompt: str | None = None
    """What the model is told in place of the usual prompt."""
    description: str | None = None
    """What it is for. Other agents choose by it."""
    model: ModelName | None = None
    mode: Literal["primary", "subagent", "all"] = "all"
    """Whether it answers prompts, or tasks of other agents, or both."""
    steps: int | None = None
    """How many turns a prompt has at most."""
    temperature: float | None = None
    top_p: float | None = None
    permission: PermissionConfig | None = None
    """As in the configuration: ``{"bash": "ask", "edit": "deny"}``."""
    options: JsonObject | None = None
    """Options of the provider."""
    children: "Sequence[Agent] | None" = None

    def configuration(self) -> JsonObject:
        """The settings that define it and its children. Raises Invalid if it cannot be an agent."""
        return configuration_of([self])

    def _with_children(self) -> "Iterator[Agent]":
        if not isinstance(self.name, str) or not self.name:
            raise Invalid(f"the name of an agent is text that is not empty, not {self.name!r:.80}")
        yield self
        yield from _with_children(self.children or (), f"the children of the agent {self.name!r:.80}")

    def _settings(self, *, is_child: bool) -> dict[str, object]:
        """The settings of this agent without its children. A child answers no prompts, unless its mode allows it."""
        own = {
            "description": self.description,
            "prompt": self.prompt,
            "model": str(model_choice(self.model)) if self.model is not None else None,
            "variant": model_choice(self.model).variant if self.model is not None else None,
            "mode": "subagent" if is_child and self.mode == "all" else self.mode,
            "steps": self.steps,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "permission": self._permission(),
            "options": self.options,
        }
        return {key: value for key, value in own.items() if value is not None}

    def _permission(self) -> PermissionConfig | None:
        """The given rules, limited to tasks for the children: with the action of the task rule, by default allow."""
        if self.children is None:
            return self.permission
        given: PermissionConfig = {"*": self.permission} if isinstance(self.permission, str) else self.permission or {}
        assert isinstance(given, dict), "a word was made an object"
        action = given.get(TASK, "allow")
        if not isinstance(action, str):
            raise Invalid(
                f"the agent {self.name!r:.80} has children, and rules for {TASK!r} that name agents; give the children "
                "to `agents` instead, or make it one rule for all of them"
            )
        return {**given, TASK: {"*": "deny", **{child.name: action for child in self.children}}}


def configuration_of(agents: Sequence[Agent]) -> JsonObject:
    """The settings that define agents and their children. Raises Invalid if two that differ have one name."""
    found: dict[str, Agent] = {}
    for agent in _with_children(agents, "agents"):
        if found.setdefault(agent.name, agent) != agent:
            raise Invalid(f"two agents that differ are named {agent.name!r:.80}; give each a name of its own")
    named = {agent.name for agent in agents}
    return {"agent": {name: agent._settings(is_child=name not in named) for name, agent in found.items()}}


def _with_children(agents: Sequence[Agent], words: str) -> Iterator[Agent]:
    """Agents with all their descendants. Raises Invalid, with ``words``, for values that are no agents."""
    if not isinstance(agents, Sequence) or not all(isinstance(one, Agent) for one in agents):
        raise Invalid(f"{words} are a list of Agents, not {agents!r:.80}")
    for agent in agents:
        yield from agent._with_children()
