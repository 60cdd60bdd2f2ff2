"""Host: which sessions this process may run, by their labels and by the directories that it has."""

from collections.abc import Callable
from typing import Final

import anyio

from turnkeeper.core.labels import HostLabels, why_not_here
from turnkeeper.core.view import SessionView
from turnkeeper.model.refusal import Elsewhere, NotFound
from turnkeeper.store.damaged import DamagedDocument
from turnkeeper.store.store import Store
from turnkeeper.workspace.files import is_enterable
from turnkeeper.workspace.owner import is_alive

NOTED_S: Final = 30.0
NOTED_MAX: Final = 20


class Host:
    """Which sessions this process may run.

    ``needs_directory``: only those whose directory exists here. ``delegates``: workers are asked to run the others.
    """

    def __init__(
        self,
        store: Store,
        labels: HostLabels,
        *,
        needs_directory: bool = False,
        delegates: bool = False,
        now: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._store, self.labels, self._now = store, labels, now
        self._needs_directory, self._delegates = needs_directory, delegates
        self._lacking: dict[str, float] = {}

    async def admits(self, session_id: str) -> bool:
        """Whether a session may be run here. One that does not exist, or cannot be read, may: its run says so."""
        try:
            session = await self._store.queries.session(session_id)
        except (NotFound, DamagedDocument):
            return True
        if not self.labels.runs(session.label):
            return False
        is_here = not self._needs_directory or is_enterable(session.directory)
        self._lacking.pop(session_id, None)
        if not is_here:
            self._lacking[session_id] = self._now()
        return is_here

    async def label_of(self, session_id: str) -> str | None:
        """The label of a session; None if there is no such session."""
        try:
            return (await self._store.queries.session(session_id)).label
        except (NotFound, DamagedDocument):
            return None

    def check(self, view: SessionView) -> None:
        """Raise Elsewhere if the label of a session forbids to run it here."""
        label = view.session.label
        if not self.labels.runs(label):
            raise Elsewhere(why_not_here(view.session.id, label, self.labels))

    async def check_prompt(self, session_id: str) -> None:
        """Raise Elsewhere if a prompt that is to be run from here would wait for another host.

        Not if workers are asked to run it, or if another process runs the session now and takes the prompt up.
        """
        if self._delegates:
            return
        view = await self._store.journal.view(session_id)
        if view.owner is None or not is_alive(view.owner):
            self.check(view)

    def lacking(self) -> tuple[str, ...]:
        """The sessions whose directory was missed here lately, the newest of them."""
        since = self._now() - NOTED_S
        self._lacking = {one: at for one, at in self._lacking.items() if at > since}
        return tuple(self._lacking)[-NOTED_MAX:]
