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
    hidden: bool = False
    prompt: str | None = None
    model: ModelChoice | None = None
    steps: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    permission: Ruleset = ()
    options: JsonObject = {}
