"""The Safe Provider-Turn Boundary: just before a turn, prompts promoted and calls settled, changed context is admitted.

Every component is sampled once, here and nowhere else; at most one event follows. Nobody pushes, nothing wakes an idle
session because a file changed.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from turnkeeper.context import BUILT_IN
from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.sample import sample
from turnkeeper.core.entry import Recorded
from turnkeeper.core.history import History, extend
from turnkeeper.core.skills import TOOL as SKILL
from turnkeeper.core.system_context import Circumstances, context_event, look_back, reason_to_begin, reconcile
from turnkeeper.core.view import SessionView
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.context import Epoch, Unavailable
from turnkeeper.model.message import ContextUpdate, Message
from turnkeeper.model.permission import Ruleset
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.settlements import TurnSetting
from turnkeeper.store.crash import crash_point
from turnkeeper.store.store import Store
from turnkeeper.tools.mcp_tools import instructions
from turnkeeper.tools.toolbox import Toolbox


class Boundary(msgspec.Struct, frozen=True):
    """Brings the System Context of a session up to date before a turn."""

    store: Store
    environ: Mapping[str, str]
    own: Iterable[ContextComponent] = ()
    """The components that the program registered, read at each turn."""

    async def cross(
        self,
        writer: FencedWriter,
        view: SessionView,
        history: History,
        model: ModelInfo,
        setting: TurnSetting,
        toolbox: Toolbox,
        rules: Ruleset,
    ) -> tuple[Epoch, History]:
        """The epoch this turn runs in, and the history with the context updates that the model gets before it."""
        setup, epoch_seq = setting.setup, view.epoch.seq if view.epoch is not None else 0
        compacted_at, told = look_back((entry.message for entry in reversed(history.entries)), epoch_seq)
        now = Circumstances(
            provider_id=model.provider_id,
            model_id=model.id,
            directory=view.session.directory,
            compacted_at=compacted_at,
        )
        sampling = Sampling(
            place=setting.place,
            model=model,
            agent=setting.agent,
            now=lambda: self._local(setup.timezone),
            environ=self.environ,
            home=Path(self.environ.get("HOME") or Path.home()),
            instructions=setup.instructions,
            skills=setup.skills if SKILL in toolbox.names else (),
            rules=rules,
            served=instructions(setup.servers, toolbox.names),
            nested=view.instructions,
            begins=reason_to_begin(view.epoch, now) is not None,
        )
        # Of two with one key that of the program counts; a registry has no key twice.
        registered = (*setup.plugins.contributed.components, *self.own)
        own = {one.key: one for one in registered}.values()
        if sampling.begins or setup.instructions or own:
            await writer.flush()  # It may take its time, and what happened should be known.
        samples = await sample(BUILT_IN, own, sampling)
        epoch = await self.store.queries.whole(view.epoch) if view.epoch is not None else None
        if epoch is not None and compacted_at and any(isinstance(one, Unavailable) for _, one in samples):
            # What was told last of a component that is unavailable now may lie before the history's compaction.
            told = await self._told_in_all(view.session.id, epoch_seq)
        mint = self.store.mint
        decided = reconcile(samples, epoch, now, told)
        event = context_event(decided, view.session.id, mint.message_id, mint.now())
        if event is None:
            assert epoch is not None, "without an epoch one begins"
            return epoch, history
        crash_point("boundary.before-admit")
        after = await writer.append(event)
        crash_point("boundary.after-admit")
        assert after.epoch is not None, "the event began or changed one"
        history = extend(history, Recorded(after.seq, self.store.mint.now(), event))
        return await self.store.queries.whole(after.epoch), history

    async def _told_in_all(self, session_id: str, epoch_seq: int) -> list[ContextUpdate]:
        """The context updates of this epoch that the model has received, from the store."""
        past: list[Message] = []
        async for message in self.store.queries.stream(session_id):
            if message.info.seq <= epoch_seq:
                break
            past.append(message.info)
        return look_back(past, epoch_seq)[1]

    def _local(self, timezone: str | None) -> datetime:
        """The user's time: the host's, unless they say where they are."""
        return datetime.fromtimestamp(self.store.mint.now() / 1000, ZoneInfo(timezone) if timezone else None)
