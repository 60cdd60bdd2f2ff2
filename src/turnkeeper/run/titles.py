"""Titles of sessions: asked of a small model beside the first turn, never in its way."""

import logging

import anyio
from anyio.abc import TaskGroup

from turnkeeper.context.texts import text
from turnkeeper.core.agents import TITLE
from turnkeeper.core.history import History
from turnkeeper.core.lowering import lower
from turnkeeper.core.titles import cleaned, first_prompt, is_default, own_title, wants_title
from turnkeeper.core.usage import bill
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import Window, answer_max, chars_of, tokens_of, usable
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import Event, SessionTitled, UsageRecorded
from turnkeeper.model.message import ModelChoice, UserMessage
from turnkeeper.model.parts import SubtaskPart
from turnkeeper.model.refusal import Refusal
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.outside_code import contained
from turnkeeper.plugins.requests import AroundProvider
from turnkeeper.providers.one_shot import ask
from turnkeeper.run.directories import Directories
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace

log = logging.getLogger(__name__)

ASKED = "Give a title for this conversation:"


class Titles:
    """Gives sessions their titles, each in a task of its own."""

    def __init__(self, store: Store, group: TaskGroup, directories: Directories) -> None:
        self._store, self._group, self._directories = store, group, directories
        self._under_way: dict[str, anyio.Event] = {}

    def begin(self, view: SessionView, history: History, user: UserMessage, place: ProjectPlace) -> None:
        """Ask for a title in the background, if the session wants one."""
        if wants_title(view, history) and view.session.id not in self._under_way:
            self._under_way[view.session.id] = anyio.Event()
            self._group.start_soon(self._give, view.session.id, history, user.model, place)

    async def wait(self, session_id: str) -> None:
        """Wait until the title is given that is under way, if one is."""
        if (under_way := self._under_way.get(session_id)) is not None:
            await under_way.wait()

    async def _give(self, session_id: str, history: History, used: ModelChoice, place: ProjectPlace) -> None:
        try:
            with contained():
                title, paid = await self._ask(session_id, history, used, place)
            await self._set(session_id, title, paid)
        except Exception:
            # The top of a background job: a session without a title is no reason to end anything.
            log.exception("no title for %s", session_id)
        finally:
            self._under_way.pop(session_id).set()

    async def _ask(
        self, session_id: str, history: History, used: ModelChoice, place: ProjectPlace
    ) -> tuple[str | None, list[UsageRecorded]]:
        """A title, if the configuration wants one, and what it cost. What a provider does wrong is never raised."""
        try:
            setup = await self._directories.setup(place)
            agent = setup.agents.get(TITLE)
            if agent is None:
                return None, []
            model = setup.find(agent.choice) if agent.choice else await self._directories.small_model(place, used)
            provider = AroundProvider(setup.provider(model), setup.plugins, "title", session_id)
            request = _request(history, model, agent, setup.window)
            if not _fits(request, setup.window):
                return own_title(history), []
            answer = await ask(provider, request)
        except Refusal as refusal:
            log.info("no model can be asked for the title of %s: %s", session_id, refusal)
            return own_title(history), []
        return cleaned(answer.text) or own_title(history), [bill("title", model, answer.usage)]

    async def _set(self, session_id: str, title: str | None, paid: list[UsageRecorded]) -> None:
        """Record a title, unless the session was named meanwhile, and what it cost."""

        def decide(view: SessionView) -> list[Event]:
            named: list[Event] = [SessionTitled(title=title)] if title and is_default(view.session.title) else []
            return [*paid, *named]

        await self._store.journal.change(session_id, decide)


def _request(history: History, model: ModelInfo, agent: Agent, window: Window) -> ModelRequest:
    """What a small model is asked for a title."""
    first = first_prompt(history)
    subtasks = [part.prompt for part in first.parts if isinstance(part, SubtaskPart)]
    said = (UserTurn(content=(Text(text="\n".join(subtasks)),)),) if subtasks else lower([first], model)
    return ModelRequest(
        model=model,
        system=(agent.prompt or text("title"),),
        messages=(UserTurn(content=(Text(text=ASKED),)), *said),
        temperature=agent.temperature if model.temperature else None,
        top_p=agent.top_p,
        output_max=answer_max(model.limits, window),
        options=agent.options,
        session_id=first.message.session_id,
    )


def _fits(request: ModelRequest, window: Window) -> bool:
    room = usable(request.model.limits, window)
    return room is None or tokens_of(sum(map(chars_of, request.messages))) < room
