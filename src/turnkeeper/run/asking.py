"""What a request is made of, and the request that is made of it."""

import msgspec

from turnkeeper.context.texts import text
from turnkeeper.core.conversations import Conversations
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
from turnkeeper.tools.toolbox import Toolbox


class Asking(msgspec.Struct, frozen=True):
    """All that one request is made of."""

    view: SessionView
    history: History
    action: RunTurn
    user: UserMessage
    model: ModelInfo
    agent: Agent
    epoch: Epoch
    toolbox: Toolbox
    output_max: int | None = None
    """How many tokens the answer may have; None if nothing is known of the model."""

    @property
    def rewritten(self) -> str | None:
        """Why history was changed since the last request, where an event says so."""
        change, last = self.view.rewritten, last_turn(self.history)
        return change.reason if change is not None and (last is None or change.seq > last.message.seq) else None

    @property
    def schema(self) -> JsonObject | None:
        """What a structured answer must fit; None if prose will do."""
        return self.user.format.schema if isinstance(self.user.format, JsonSchemaFormat) else None

    @property
    def is_last(self) -> bool:
        """Whether this is the last turn the agent may take before the user speaks again."""
        return self.agent.steps is not None and self.action.step >= self.agent.steps


class Sending(msgspec.Struct, frozen=True):
    """A request that is ready to go out, and what it was made of."""

    asking: Asking
    request: ModelRequest
    prefix: Prefix
    lowered: Lowered


def sending(asking: Asking, conversations: Conversations, *, now: int) -> Sending:
    """What the model is asked, and how much of what it was asked before that extends."""
    session, agent = asking.view.session, asking.agent
    lowered = conversations.of(session.id, asking.history, asking.model, asking.epoch.seq, asking.view.quarantined)
    messages = lowered.messages
    passing = (*continuation(messages), *_reminder(asking.schema, is_last=asking.is_last))
    request = ModelRequest(
        model=asking.model,
        system=tuple(one.text for one in asking.epoch.baseline),
        messages=messages.plus(passing),
        tools=_tools(asking.toolbox, asking.schema),
        tool_choice="required" if asking.schema is not None else "none" if asking.is_last else "auto",
        temperature=agent.temperature,
        top_p=agent.top_p,
        session_id=session.id,
        parent_session_id=session.parent_id,
        options=agent.options,
        output_max=asking.output_max,
    )
    prefix = measure(
        request,
        asking.view.prefix,
        asking.epoch,
        now=now,
        passing=len(passing),
        encoded=lowered.encoded,
        rewritten=asking.rewritten,
        meter=lowered.meter,
    )
    return Sending(asking, request, prefix, lowered)


def _reminder(schema: JsonObject | None, *, is_last: bool) -> tuple[ModelMessage, ...]:
    """Words that hold for this request alone. They stand at its end, where they rewrite nothing."""
    if schema is not None:
        return (SystemTurn(text=text("structured")),)
    return (SystemTurn(text=text("max_steps")),) if is_last else ()


def _tools(toolbox: Toolbox, schema: JsonObject | None) -> tuple[ToolDefinition, ...]:
    definitions = toolbox.definitions()
    if schema is None:
        return definitions
    shape = {key: value for key, value in schema.items() if key != "$schema"}
    answer = ToolDefinition(name=STRUCTURED_TOOL, description=text("structured_tool"), schema=shape)
    return tuple(sorted((*definitions, answer), key=lambda tool: tool.name))
