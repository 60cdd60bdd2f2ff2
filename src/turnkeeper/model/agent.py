"""Agent: a named set of prompt, model, tools and rules."""

from typing import Literal

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.value import JsonObject, Value


class Agent(Value):
    """A named set of prompt, model, tools and rules. ``steps`` bounds the turns of a prompt; the last has no tools."""

    name: str
    description: str = ""
    mode: Literal["primary", "subagent", "all"] = "primary"
    """``primary``: answers prompts. ``subagent``: is called by other agents. ``all``: both."""
    native: bool = False
    """Whether it is built in."""
    hidden: bool = False
    color: str | None = None
    """``#RRGGBB``, or the name of a colour of the client's theme."""
    prompt: str | None = None
    model: ModelChoice | None = None
    """Without a variant; see ``choice``."""
    variant: str | None = None
    """The variant of ``model``, for prompts that name neither a variant nor another model."""
    steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    permission: Ruleset = ()
    options: JsonObject = {}

    @property
    def choice(self) -> ModelChoice | None:
        """The model with its variant; None if the agent uses the model of the session."""
        return self.model.but(variant=self.variant) if self.model is not None else None
