"""Toolbox: the tools of one agent in one turn, and the lookup and the running of the model's calls."""

import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Final

import msgspec
from anyio import to_thread

from turnkeeper.core import permission
from turnkeeper.core.child_rules import TASK, described_agents
from turnkeeper.model.agent import Agent
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.request import ToolDefinition
from turnkeeper.tools import schema
from turnkeeper.tools.invalid import explanation
from turnkeeper.tools.output import BoundOutput, Bounds
from turnkeeper.tools.tool import AnyInput, AnyTool, Denied, ToolContext, ToolFailure, ToolOutput

log = logging.getLogger(__name__)

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""The names of tools that every provider takes."""

SELECTIONS_MAX: Final = 64
"""Selections that are cached. Equal ones are one object, so their tools need not be described or compared again."""


class Toolbox:
    """A fixed selection of tools, in the order of their names so that equal selections make equal requests."""

    def __init__(self, tools: Iterable[AnyTool], denied: Mapping[str, permission.Deny] | None = None) -> None:
        """Raises Invalid for a name that no provider takes, and for two tools of one name.

        ``denied`` are the tools that exist and are left out because rules deny every call of them.
        """
        self._denied = dict(denied or {})
        self._tools: dict[str, AnyTool] = {}
        for tool in sorted(tools, key=lambda tool: tool.name):
            check_name(tool.name)
            if tool.name in self._tools:
                raise Invalid(f"two tools are named {tool.name!r}; give one of them another name")
            self._tools[tool.name] = tool
        self._selections: dict[tuple[Ruleset, frozenset[str], str | None, tuple[str, ...]], Toolbox] = {}

    def visible(
        self,
        rules: Sequence[Rule],
        switches: Mapping[str, bool] | None = None,
        *,
        model_id: str | None = None,
        agents: Iterable[Agent] = (),
    ) -> "Toolbox":
        """The tools that the rules do not wholly deny, that the user's message (``tools``) did not switch off, and that
        suit the model, if one is named. ``agents`` are all that there are."""
        off = frozenset(name for name, on in (switches or {}).items() if not on)
        others = described_agents(agents)
        wanted = (tuple(rules), off, model_id, tuple(f"{one.name}\n{one.description}" for one in others))
        known = self._selections.get(wanted)
        if known is None:
            if len(self._selections) >= SELECTIONS_MAX:
                self._selections.clear()
            suited = [
                tool
                for tool in self._tools.values()
                if tool.name not in off and (model_id is None or tool.suits(model_id))
            ]
            denied = {
                tool.name: permission.denial(rules, tool.permission)
                for tool in suited
                if permission.hides(rules, tool.permission)
            }
            allowed = (_described(tool, others) for tool in suited if tool.name not in denied)
            known = self._selections[wanted] = Toolbox(allowed, denied)
        return known

    def preparation(self, name: str) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """The function to call as soon as the model begins to write a call of this tool; None without one."""
        tool = self.find(name)
        return None if tool is None or tool.prepare is None else partial(_prepare, tool.prepare)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, sorted."""
        return tuple(self._tools)

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools as a model is told of them; an identical list each time."""
        return self._definitions

    @cached_property
    def _definitions(self) -> tuple[ToolDefinition, ...]:
        return tuple(tool.definition() for tool in self._tools.values() if tool.is_offered)

    def find(self, name: str) -> AnyTool | None:
        """The tool of this name, also if the case of its letters is wrong."""
        if name in self._tools:
            return self._tools[name]
        return next((tool for tool in self._tools.values() if tool.name.lower() == name.lower()), None)

    async def run(
        self,
        name: str,
        input: object,
        context: ToolContext,
        bounds: Bounds | None = None,
        after: Callable[[ToolOutput], Awaitable[ToolOutput]] | None = None,
    ) -> BoundOutput:
        """Run one call and bound its output. Raises ToolFailure with a text for the model.

        ``after`` may change the output before it is bound.
        """
        tool = self.find(name)
        if tool is None:
            raise await self._refusal(name, context)
        output = await tool.run(decode(tool, input), context)
        return await (bounds or Bounds()).bound(await after(output) if after is not None else output)

    async def _refusal(self, name: str, context: ToolContext) -> ToolFailure:
        """The failure of a call that finds no tool: because of a limit, a rule, or an unknown name."""
        denied = next((one for one in self._denied if one.lower() == name.lower()), None)
        if denied is None:
            return ToolFailure(explanation(name, self._tools))
        if denied == TASK and context.delegation is not None:
            limit = await context.delegation.depth_limit()
            if limit is not None:
                return ToolFailure(limit)
        return Denied(self._denied[denied])


def check_name(name: str) -> None:
    """Raise Invalid for a name of a tool that some provider does not take."""
    if NAME.fullmatch(name) is None:
        raise Invalid(f"{name!r:.80} cannot name a tool; a name is 1 to 64 letters, digits, '_' or '-'")


def _described(tool: AnyTool, agents: Sequence[Agent]) -> AnyTool:
    """The tool as it is described to a model that may call these agents."""
    if tool.describe is None:
        return tool
    return msgspec.structs.replace(tool, description=tool.describe(agents), is_offered=bool(agents))


def decode(tool: AnyTool, input: object) -> object:
    """The input as the tool's arguments; ToolFailure names each violation and asks for another try."""
    if tool.schema is not None:
        if isinstance(input, Mapping):
            return AnyInput({str(key): value for key, value in input.items()})
        raise ToolFailure(f"The input for {tool.name} must be a JSON object. Rewrite the input and call again.")
    try:
        return schema.decode(tool.parameters, input, tool.aliases)
    except schema.Violations as violations:
        raise ToolFailure(
            f"The input for {tool.name} does not fit its schema:\n{violations}\nRewrite the input and call again."
        ) from violations


async def _prepare(prepare: Callable[[], None]) -> None:
    try:
        await to_thread.run_sync(prepare)
    except Exception:
        # The top of a background task: a tool may come from anywhere, and its call reports what is wrong.
        log.exception("a tool could not prepare for its call")
