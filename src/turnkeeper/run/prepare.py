"""Prepare a turn: agent, model, epoch, history and tools become one request; then the turn is run."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from turnkeeper.context.texts import text
from turnkeeper.core.conversations import Conversations
from turnkeeper.core.history import Entry, History, behind
from turnkeeper.core.lowering import continuation
from turnkeeper.core.next_action import STRUCTURED_TOOL, RunTurn
from turnkeeper.core.permission import freed, merge
from turnkeeper.core.prefix import measure
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.event import TurnEnded, TurnStarted
from turnkeeper.model.failure import UnknownData, UnknownFailure
from turnkeeper.model.message import (
    AssistantMessage,
    AssistantTime,
    JsonSchemaFormat,
    ModelChoice,
    TurnPath,
    UserMessage,
)
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Refusal
from turnkeeper.model.request import ModelMessage, ModelRequest, SystemTurn, ToolDefinition
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.provider import Provider
from turnkeeper.run.boundary import Boundary
from turnkeeper.run.discovery import Discovery
from turnkeeper.run.pen import Pen
from turnkeeper.run.permission import Approvals, Asker
from turnkeeper.run.settle import Settlement
from turnkeeper.run.turn import Surroundings, Turn
from turnkeeper.store.recall import SessionRecall
from turnkeeper.store.store import Store
from turnkeeper.tools.output import Bounds
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.project import ProjectPlace, identify


@dataclass(frozen=True)
class Means:
    """What a directory's configuration gives its sessions: who may answer, with what, and under which rules."""

    agents: Mapping[str, Agent]
    toolbox: Toolbox
    rules: Ruleset
    find: Callable[[ModelChoice], ModelInfo]
    """Raises a Refusal that says what there is instead."""
    provider: Callable[[ModelInfo], Provider]
    instructions: tuple[str, ...] = ()
    timezone: str | None = None
    bounds: Callable[[], Bounds] = Bounds
    """The limits of one turn's results, which they share."""
    outputs: str | None = None
    """Where whole outputs are kept for tools to read; free to every agent that is not denied it."""


@dataclass(frozen=True)
class Preparation:
    """Prepares and runs turns."""

    store: Store
    world: Surroundings
    means: Callable[[ProjectPlace], Awaitable[Means]]
    ask: Asker
    approvals: Approvals
    boundary: Boundary
    conversations: Conversations = field(default_factory=Conversations)
    begun: Callable[[SessionView, History, UserMessage, ProjectPlace], None] | None = None
    """Told when the first turn after a prompt begins, so that upkeep can start beside it."""

    async def run(self, pen: Pen, view: SessionView, history: History, action: RunTurn) -> None:
        """One turn, from its preparation to its end."""
        user = action.user.message
        assert isinstance(user, UserMessage), "a turn answers the user"
        place = await identify(Path(view.session.directory))
        message = answer_to(user, place, self.store.mint)
        if self.begun is not None and action.step == 1:
            self.begun(view, history, user, place)
        try:
            means = await self.means(place)
            model = means.find(user.model)
            agent = _agent(means.agents, user.agent)
            provider = means.provider(model)
        except Refusal as refusal:
            await self._refused(pen, message, str(refusal))
            return
        epoch, history = await self.boundary.cross(
            pen, view, history, model, agent, place, instructions=means.instructions, timezone=means.timezone
        )
        rules = freed(merge(means.rules, agent.permission, view.session.permission or ()), means.outputs)
        # The last step keeps its tools, though it may use none: without them no byte of the request would be reused.
        toolbox = means.toolbox.visible(rules, user.tools)
        asking = _Asking(view, history, action, user, model, agent, epoch, toolbox)
        request, prefix = self._request(asking, now=message.time.created)
        settlement = self._settlement(asking, pen, place, rules, means.bounds())
        turn = Turn(
            pen,
            self.world,
            provider,
            request,
            message,
            view.session.directory,
            settlement.settle,
            structured=lambda: settlement.structured,
            tries=action.tries_left,
            retries=action.tries,
            prefix=prefix,
        )
        await turn.run()

    def _request(self, asking: "_Asking", *, now: int) -> tuple[ModelRequest, Prefix]:
        """What the model is asked, and how much of what it was asked before that extends."""
        session, agent = asking.view.session, asking.agent
        lowered = self.conversations.of(session.id, asking.history, asking.model, asking.epoch.seq)
        passing = (*continuation(lowered.messages), *_reminder(asking.schema, is_last=asking.is_last))
        request = ModelRequest(
            model=asking.model,
            system=tuple(one.text for one in asking.epoch.baseline),
            messages=(*lowered.messages, *passing),
            tools=_tools(asking.toolbox, asking.schema),
            tool_choice="required" if asking.schema is not None else "none" if asking.is_last else "auto",
            temperature=agent.temperature,
            top_p=agent.top_p,
            session_id=session.id,
            parent_session_id=session.parent_id,
            options=agent.options,
        )
        before, encoded = asking.view.prefix, lowered.encoded
        return request, measure(request, before, asking.epoch, now=now, passing=len(passing), encoded=encoded)

    def _settlement(
        self, asking: "_Asking", pen: Pen, place: ProjectPlace, rules: Ruleset, bounds: Bounds
    ) -> Settlement:
        """How the calls of this turn are settled."""
        session_id = asking.view.session.id
        return Settlement(
            pen=pen,
            mint=self.store.mint,
            toolbox=asking.toolbox,
            directory=place.directory,
            worktree=place.worktree,
            rules=rules,
            approvals=self.approvals,
            ask=self.ask,
            todos=lambda: self.store.queries.todos(session_id),
            discovery=Discovery(place, self.boundary.environ, asking.view.instructions),
            earlier=_parts_since(asking.history, asking.action.user),
            is_last=asking.is_last,
            schema=asking.schema,
            bounds=bounds,
            recall=SessionRecall(self.store.queries, session_id),
        )

    async def _refused(self, pen: Pen, message: AssistantMessage, reason: str) -> None:
        """A turn that cannot even be asked for is on record like any other failure."""
        failure = UnknownFailure(data=UnknownData(message=reason))
        ended = message.but(error=failure, time=message.time.but(completed=self.store.mint.now()))
        await pen.append(TurnStarted(message=message), TurnEnded(message=ended))


@dataclass(frozen=True)
class _Asking:
    """All that one request is made of."""

    view: SessionView
    history: History
    action: RunTurn
    user: UserMessage
    model: ModelInfo
    agent: Agent
    epoch: Epoch
    toolbox: Toolbox

    @property
    def schema(self) -> JsonObject | None:
        """What a structured answer must fit; None if prose will do."""
        return self.user.format.schema if isinstance(self.user.format, JsonSchemaFormat) else None

    @property
    def is_last(self) -> bool:
        """Whether this is the last turn the agent may take before the user speaks again."""
        return self.agent.steps is not None and self.action.step >= self.agent.steps


def answer_to(user: UserMessage, place: ProjectPlace, mint: Mint) -> AssistantMessage:
    """An assistant message that is still empty."""
    return AssistantMessage(
        id=mint.message_id(),
        session_id=user.session_id,
        time=AssistantTime(created=mint.now()),
        parent_id=user.id,
        model_id=user.model.model_id,
        provider_id=user.model.provider_id,
        variant=user.model.variant,
        mode=user.agent,
        agent=user.agent,
        path=TurnPath(cwd=str(place.directory), root=str(place.worktree)),
        cost=0,
        tokens=ZERO_TOKENS,
    )


def _agent(agents: Mapping[str, Agent], name: str) -> Agent:
    if name not in agents:
        known = ", ".join(sorted(one.name for one in agents.values() if not one.hidden))
        raise Refusal(f"there is no agent {name!r}; the agents are: {known}")
    return agents[name]


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


def _parts_since(history: History, user: Entry) -> list[Part]:
    return [part for entry in behind(history, user.message.seq) for part in entry.parts]
