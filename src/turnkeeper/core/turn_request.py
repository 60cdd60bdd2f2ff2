"""The request of a turn, built from its inputs: tool choice, reminder, tool list and prefix.

| The turn | Tool choice | Tools | Last message |
|---|---|---|---|
| must give a structured answer | required | the agent's, and one that takes the answer | names this tool |
| is the last step of its agent | none | the agent's: without them the prefix would differ | says that it is the last |
| any other | auto | the agent's | |
"""

from collections.abc import Callable, Mapping

import msgspec

from turnkeeper.core.history import History
from turnkeeper.core.lowering import Lowered, continuation
from turnkeeper.core.next_action import STRUCTURED_TOOL, RunTurn, last_turn
from turnkeeper.core.prefix import measure
from turnkeeper.core.view import SessionView
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.message import JsonSchemaFormat, UserMessage
from turnkeeper.model.request import ModelMessage, ModelRequest, SystemTurn, ToolDefinition
from turnkeeper.model.value import JsonObject


class TurnInputs(msgspec.Struct, frozen=True):
    """The inputs of the request of one turn."""

    view: SessionView
    history: History
    action: RunTurn
    user: UserMessage
    model: ModelInfo
    agent: Agent
    epoch: Epoch
    tools: tuple[ToolDefinition, ...]
    output_max: int | None = None
    """Tokens that the answer may have; None if the model's limits are unknown."""
    servers: Mapping[str, str] = {}
    """A hash of the tools of each MCP server, by its name."""
    plugins: Mapping[str, str] = {}
    """A hash of the tools that each plugin brings, by its name."""

    @property
    def rewritten(self) -> str | None:
        """The reason of a pruning or quarantine since the last request; None without one."""
        change, last = self.view.rewritten, last_turn(self.history)
        return change.reason if change is not None and (last is None or change.seq > last.message.seq) else None

    @property
    def schema(self) -> JsonObject | None:
        """The schema of the structured answer; None if none is wanted."""
        return self.user.format.schema if isinstance(self.user.format, JsonSchemaFormat) else None

    @property
    def is_last(self) -> bool:
        """Whether this is the last turn that the agent may take for this prompt."""
        return self.agent.steps is not None and self.action.step >= self.agent.steps


class PreparedRequest(msgspec.Struct, frozen=True):
    """A request that is ready to be sent, and its inputs."""

    inputs: TurnInputs
    request: ModelRequest
    prefix: Prefix
    lowered: Lowered

    @property
    def size(self) -> int:
        """An estimate of the tokens of the request."""
        change, around = self.inputs.view.rewritten, self.prefix.system
        since = max(self.inputs.epoch.seq, change.seq if change is not None else 0)
        return self.lowered.gauge.tokens(around.bytes if around is not None else 0, since)

    def changed(self, request: ModelRequest, changes: tuple[str, ...]) -> "PreparedRequest":
        """The request as plugins changed it, measured again."""
        passing = len(self.request.messages) - len(self.lowered.messages)
        last, now = self.request.messages[-passing:], request.messages[-passing:]
        prefix = measure(
            request,
            self.inputs.view.prefix,
            self.inputs.epoch,
            now=self.prefix.at,
            passing=passing if passing and tuple(last) == tuple(now) else 0,
            rewritten=self.inputs.rewritten,
            changes=changes,
            servers=self.inputs.servers,
            plugins=self.inputs.plugins,
        )
        return msgspec.structs.replace(self, request=request, prefix=prefix)


def build_request(inputs: TurnInputs, lowered: Lowered, text: Callable[[str], str], *, now: int) -> PreparedRequest:
    """The request for these inputs, with its prefix.

    ``lowered`` is the lowered history; ``text`` gives a prompt text by its name.
    """
    session, agent, schema = inputs.view.session, inputs.agent, inputs.schema
    messages = lowered.messages
    passing = (*continuation(messages), *_reminder(schema, text, is_last=inputs.is_last))
    request = ModelRequest(
        model=inputs.model,
        system=tuple(one.text for one in inputs.epoch.baseline),
        messages=messages.plus(passing),
        tools=_tools(inputs.tools, schema, text),
        tool_choice="required" if schema is not None else "none" if inputs.is_last else "auto",
        temperature=agent.temperature,
        top_p=agent.top_p,
        session_id=session.id,
        parent_session_id=session.parent_id,
        options=agent.options,
        output_max=inputs.output_max,
    )
    prefix = measure(
        request,
        inputs.view.prefix,
        inputs.epoch,
        now=now,
        passing=len(passing),
        encoded=lowered.encoded,
        rewritten=inputs.rewritten,
        meter=lowered.meter,
        servers=inputs.servers,
        plugins=inputs.plugins,
    )
    return PreparedRequest(inputs, request, prefix, lowered)


def _reminder(schema: JsonObject | None, text: Callable[[str], str], *, is_last: bool) -> tuple[ModelMessage, ...]:
    """A message for this request only. It is the last message, so that the prefix does not change."""
    if schema is not None:
        return (SystemTurn(text=text("structured")),)
    return (SystemTurn(text=text("max_steps")),) if is_last else ()


def _tools(
    tools: tuple[ToolDefinition, ...], schema: JsonObject | None, text: Callable[[str], str]
) -> tuple[ToolDefinition, ...]:
    if schema is None:
        return tools
    shape = {key: value for key, value in schema.items() if key != "$schema"}
    answer = ToolDefinition(name=STRUCTURED_TOOL, description=text("structured_tool"), schema=shape)
    return tuple(sorted((*tools, answer), key=lambda tool: tool.name))
