"""Delegation of one call: what the task tool is lent to hand its work to a Child Session."""

from collections.abc import Mapping
from typing import NamedTuple

import anyio
import msgspec

from turnkeeper.core.agents import find_agent
from turnkeeper.core.child_results import ChildResult
from turnkeeper.core.child_rules import child_rules
from turnkeeper.core.child_tasks import background_tasks, task_of
from turnkeeper.core.limits import SUBAGENT_DEPTH
from turnkeeper.core.view import SessionView
from turnkeeper.model.agent import Agent
from turnkeeper.model.child import ChildTask
from turnkeeper.model.event import ChildBegun, ChildEnded
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.refusal import Invalid, NotFound, Refusal
from turnkeeper.model.session import Session
from turnkeeper.run.asking import WaitingCall
from turnkeeper.run.children import ChildPrompt, Children, NewChild
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.store.crash import crash_point
from turnkeeper.tools.delegation import Assignment, Delegated, TaskResult


class Delegating(msgspec.Struct, frozen=True):
    """The settings of Child Sessions: how deep they nest, and what they inherit."""

    depth_max: int = SUBAGENT_DEPTH
    primary_tools: tuple[str, ...] = ()
    inherits_plan: bool = True


class Caller(NamedTuple):
    """The caller of a Child Session: a session, its agent, all agents, and the settings of delegation."""

    session: Session
    agent: Agent
    agents: Mapping[str, Agent]
    config: Delegating


class CallDelegation:
    """Hands the work of one call on. Every step can be repeated after a crash, and is then done once."""

    def __init__(
        self, children: Children, writer: FencedWriter, caller: Caller, call: WaitingCall, part: ToolPart
    ) -> None:
        self._children, self._writer, self._caller, self._call, self._part = children, writer, caller, call, part
        self._store = children.store

    async def is_begun(self) -> bool:
        """Whether the child task of the call is recorded."""
        return task_of(await self._writer.view(), self._part) is not None

    async def check(self, wanted: Assignment) -> None:
        """Raise Invalid for an unknown agent, sessions that nest too deep and a task that is none of the caller's."""
        find_agent(self._caller.agents, wanted.agent)
        if wanted.task_id is not None:
            await self._check_descendant(wanted.task_id)
        limit = await self.depth_limit()
        if limit is not None:
            raise Invalid(limit)

    async def depth_limit(self) -> str | None:
        """Why the session may start no Child Session, if it is as deep as they may nest; else None."""
        depth, most = len(await self._ancestors(self._caller.session)), self._caller.config.depth_max
        if depth < most:
            return None
        return (
            f"Agents may nest {most} deep (the setting subagent_depth), and this session is at depth {depth}: "
            "the limit is reached. Do the work yourself."
        )

    async def begin(self, wanted: Assignment) -> Delegated:
        """Record the child task, then make the Child Session, then admit its prompt. Each is done once."""
        view = await self._writer.view()
        task = task_of(view, self._part)
        agent = find_agent(self._caller.agents, task.agent if task is not None else wanted.agent)
        model = agent.model or self._calling_model(view)
        if task is None:
            task = await self._record(view, wanted)
        self._call.waits = True
        try:
            crash_point("run.before-create")
            await self._children.sessions.create(self._new(task, wanted, agent))
            crash_point("run.after-create")
            prompt = ChildPrompt(id=task.prompt_id, text=wanted.prompt, agent=agent.name, model=model)
            await self._children.sessions.admit(task.session_id, prompt)
        except Refusal:
            if task.background:
                await self._writer.append(ChildEnded(session_id=task.session_id))
            raise
        return Delegated(
            session_id=task.session_id,
            parent_session_id=self._caller.session.id,
            model=model,
            background=task.background,
        )

    async def result(self, work: Delegated) -> TaskResult:
        """Run the Child Session until it rests. If the call is cancelled by the user, so is the Child Session."""
        if work.background:
            self._children.wake(work.session_id)
            return TaskResult(state="running", text="")
        task = task_of(await self._writer.view(), self._part)
        assert task is not None, "the work has begun"
        try:
            found: ChildResult = await self._children.settled(work.session_id, task.prompt_id)
        except anyio.get_cancelled_exc_class():
            if self._call.is_stopped():
                self._children.stop(work.session_id)
            raise
        return TaskResult(state=found.state, text=found.text)

    async def _record(self, view: SessionView, wanted: Assignment) -> ChildTask:
        mint = self._store.mint
        session_id = wanted.task_id or mint.session_id()
        task = ChildTask(
            session_id=session_id,
            prompt_id=mint.message_id(),
            message_id=self._part.message_id,
            call_id=self._part.call_id,
            agent=wanted.agent,
            # A Child Session that works in the background goes on there: this prompt is answered after the others.
            background=wanted.background or bool(background_tasks(view, session_id)),
        )
        await self._writer.append(ChildBegun(task=task), at="child")
        return task

    def _new(self, task: ChildTask, wanted: Assignment, agent: Agent) -> NewChild:
        parent, config = self._caller.session, self._caller.config
        rules = child_rules(
            parent.permission or (),
            self._caller.agent,
            agent,
            primary_tools=config.primary_tools,
            inherits_plan=config.inherits_plan,
        )
        title = f"{wanted.description} (@{agent.name} subagent)"
        return NewChild(id=task.session_id, parent=parent, title=title, agent=agent.name, permission=rules)

    def _calling_model(self, view: SessionView) -> ModelChoice:
        assert view.turn is not None, "a call belongs to an open turn"
        message = view.turn.message
        return ModelChoice(provider_id=message.provider_id, model_id=message.model_id, variant=message.variant)

    async def _check_descendant(self, task_id: str) -> None:
        own = self._caller.session.id
        try:
            ancestors = await self._ancestors(await self._store.queries.session(task_id))
        except NotFound:
            ancestors = []
        if own not in ancestors:
            raise Invalid(f"{task_id!r:.80} is no task of this session; leave task_id out to begin a new one")

    async def _ancestors(self, session: Session) -> list[str]:
        found: list[str] = []
        while session.parent_id is not None and session.parent_id not in found:
            found.append(session.parent_id)
            session = await self._store.queries.session(session.parent_id)
        return found
