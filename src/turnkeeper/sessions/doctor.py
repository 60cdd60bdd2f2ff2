"""Doctor: is this store what its logs say? Every log's chain, every document, every blob.

Nothing is held but one session at a time and the names of the rest. A session that is being written to is looked at
again, never reported for it.
"""

from collections.abc import Callable

from turnkeeper.model.session import Session
from turnkeeper.sessions import doctor_projects
from turnkeeper.sessions.diagnosis import Diagnosis, Problem
from turnkeeper.sessions.doctor_session import ADVICE_LOG, Examination
from turnkeeper.sessions.doctor_sweep import Sweep
from turnkeeper.store import keys
from turnkeeper.store.engine import Key, StoreDamaged
from turnkeeper.store.store import Store

UNSOUND = (
    "altered entry",
    "unreadable entry",
    "impossible event",
    "truncated log",
    "missing document",
    "stale document",
    "medium",
)
NAMES_AT_ONCE = 1000


async def examine(store: Store, *, fix: bool = False, progress: Callable[[int, int], None] | None = None) -> Diagnosis:
    """Examine a store, and with ``fix`` write derived documents again. Logs are never changed.

    ``progress`` is told how many sessions of how many were examined.
    """
    round = _Round(store, fix=fix)
    await round.sessions(progress or (lambda done, total: None))
    return await round.diagnosis()


class _Round:
    """One examination of a whole store."""

    def __init__(self, store: Store, *, fix: bool) -> None:
        self._engine, self._fix = store.engine, fix
        self._problems: list[Problem] = []
        self._parents: dict[str, str] = {}
        self._sessions: dict[str, Session] = {}
        self._mentioned: dict[str, tuple[str, int]] = {}
        self._stray: set[Key] = set()
        self._known: set[str] = set()
        self._messages = self._parts = self._events = 0

    async def sessions(self, progress: Callable[[int, int], None]) -> None:
        """Examine each session by itself."""
        names = await self._names()
        self._known.update(names)
        for done, name in enumerate(names, start=1):
            await self._session(name)
            progress(done, len(names))

    async def diagnosis(self) -> Diagnosis:
        """Examine the rest, and sum up."""
        # Lists and parts are judged by a session's documents, so these must be sound themselves.
        unsound = {one.session_id for one in self._problems if one.kind in UNSOUND and not one.fixed}
        sweep = Sweep(self._engine, self._known, unsound, self._stray, fix=self._fix)
        await sweep.run(self._mentioned)
        projects = await doctor_projects.examine(self._engine, self._sessions, fix=self._fix)
        if self._fix:
            await self._mark_again()
        facts = await self._engine.inspect()
        medium = facts.pop("problems", [])
        problems = [
            *map(_medium, medium if isinstance(medium, list) else []),
            *self._problems,
            *sweep.problems,
            *projects,
        ]
        problems.extend(self._orphaned())
        size = facts.pop("bytes", 0)
        return Diagnosis(
            ok=not any(one.is_damage and not one.fixed for one in problems),
            sessions=len(self._known),
            messages=self._messages,
            parts=self._parts,
            events=self._events,
            bytes=size if isinstance(size, int) else 0,
            problems=tuple(problems),
            engine={name: tuple(fact) if isinstance(fact, list) else fact for name, fact in facts.items()},
        )

    async def _session(self, name: str) -> None:
        one = Examination(self._engine, name, fix=self._fix)
        try:
            await one.run()
        except StoreDamaged as error:
            # A page of the file cannot be read. The other sessions may not need it.
            self._problems.append(_medium(str(error), name))
            return
        if one.is_gone:
            self._known.discard(name)
            return
        self._problems.extend(one.problems)
        self._messages += one.messages
        self._parts += one.parts
        self._events += one.events
        self._stray |= one.stray
        for blob, seq in one.fold.blobs.items():
            self._mentioned.setdefault(blob, (name, seq))
        if one.fold.view is not None:
            self._sessions[name] = one.fold.view.session
            if one.fold.view.session.parent_id is not None:
                self._parents[name] = one.fold.view.session.parent_id

    async def _mark_again(self) -> None:
        """Write the mark of an adopted tree again if it is damaged: only that it is there says anything."""
        [mark] = await self._engine.get([keys.ADOPTED])
        if mark is not None and mark != keys.ADOPTED_MARK:
            await self._engine.put({keys.ADOPTED: keys.ADOPTED_MARK})

    async def _names(self) -> list[str]:
        names: list[str] = []
        while page := await self._engine.logs(after=names[-1] if names else "", limit=NAMES_AT_ONCE):
            names.extend(page)
        return names

    def _orphaned(self) -> list[Problem]:
        return [
            Problem(
                kind="dangling reference",
                session_id=name,
                seq=1,
                message=f"its parent {parent} is not in this store",
                fixed=False,
                advice="none needed: it is a Child Session whose parent was not imported",
            )
            for name, parent in self._parents.items()
            if parent not in self._known
        ]


def _medium(message: str, session_id: str | None = None) -> Problem:
    return Problem(kind="medium", session_id=session_id, seq=None, message=message, fixed=False, advice=ADVICE_LOG)
