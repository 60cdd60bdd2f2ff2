"""Agent: an agent that a program defines in Python. It becomes configuration, as one in a file would."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from turnkeeper.model.config import PermissionConfig
from turnkeeper.model.message import ModelName, model_choice
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
        """The settings that define it and its children."""
        return {"agent": self._agents()}

    def _agents(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for child in self.children or ():
            found |= msgspec.structs.replace(child, mode="subagent" if child.mode == "all" else child.mode)._agents()
        own = {
            "description": self.description,
            "prompt": self.prompt,
            "model": str(model_choice(self.model)) if self.model is not None else None,
            "variant": model_choice(self.model).variant if self.model is not None else None,
            "mode": self.mode,
            "steps": self.steps,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "permission": self._permission(),
            "options": self.options,
        }
        return found | {self.name: {key: value for key, value in own.items() if value is not None}}

    def _permission(self) -> PermissionConfig | None:
        """The given rules, and that tasks go to the children only."""
        if self.children is None:
            return self.permission
        given: PermissionConfig = {"*": self.permission} if isinstance(self.permission, str) else self.permission or {}
        assert isinstance(given, dict), "a word was made an object"
        return {**given, TASK: {"*": "deny", **{child.name: "allow" for child in self.children}}}
