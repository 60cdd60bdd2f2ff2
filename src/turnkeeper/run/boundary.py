"""The Safe Provider-Turn Boundary: just before a turn, prompts promoted and calls settled, changed context is admitted.

Every component is sampled once, here and nowhere else; at most one event follows. Nobody pushes, nothing wakes an idle
session because a file changed.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from turnkeeper.context import assemble
from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.sample import sample
from turnkeeper.core.entry import Recorded
from turnkeeper.core.history import History, compacted_at, extend
from turnkeeper.core.system_context import Admission, Circumstances, reconcile
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.context import Epoch
from turnkeeper.model.event import ContextAdmitted, EpochStarted, Event
from turnkeeper.model.message import MessageTime, SystemMessage
from turnkeeper.run.pen import Pen
from turnkeeper.workspace.project import ProjectPlace


@dataclass(frozen=True)
class Boundary:
    """Where the context of a turn is made to fit."""

    mint: Mint
    own: Callable[[], Sequence[ContextComponent]] = tuple
    """The components that plugins registered."""

    async def cross(
        self,
        pen: Pen,
        view: SessionView,
        history: History,
        model: ModelInfo,
        agent: Agent,
        place: ProjectPlace,
        *,
        instructions: tuple[str, ...] = (),
        timezone: str | None = None,
    ) -> tuple[Epoch, History]:
        """The epoch this turn runs in, and the history with the news the model is told before it."""
        sampling = Sampling(
            place=place,
            model=model,
            agent=agent,
            now=lambda: self._local(timezone),
            environ=os.environ,
            home=Path.home(),
            instructions=instructions,
            nested=view.instructions,
        )
        samples = await sample(await assemble(sampling, self.own()), sampling)
        now = Circumstances(
            provider_id=model.provider_id,
            model_id=model.id,
            directory=view.session.directory,
            compacted_at=compacted_at(history),
        )
        event = self._event(view, reconcile(samples, view.epoch, now))
        if event is None:
            assert view.epoch is not None, "without an epoch one begins"
            return view.epoch, history
        after = await pen.append(event)
        assert after.epoch is not None, "the event began or changed one"
        return after.epoch, extend(history, Recorded(after.seq, self.mint.now(), event))

    def _event(self, view: SessionView, decided: Epoch | Admission | None) -> Event | None:
        match decided:
            case Epoch():
                return EpochStarted(epoch=decided)
            case Admission(updates=updates, checkpoint=checkpoint):
                message = SystemMessage(
                    id=self.mint.message_id(),
                    session_id=view.session.id,
                    time=MessageTime(created=self.mint.now()),
                    updates=updates,
                )
                return ContextAdmitted(message=message, checkpoint=checkpoint)
            case None:
                return None

    def _local(self, timezone: str | None) -> datetime:
        """The user's time: the host's, unless they say where they are."""
        moment = self.mint.now() / 1000
        return datetime.fromtimestamp(moment, ZoneInfo(timezone)) if timezone else datetime.fromtimestamp(moment)
