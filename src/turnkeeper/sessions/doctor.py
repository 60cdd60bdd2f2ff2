"""Doctor: check the hash chain of every log, and compare all documents and blobs with the logs.

Only one session and the ids of the others are in memory at a time. A session that is written meanwhile is examined
again.
"""

from collections.abc import Callable

from turnkeeper.core.family import parent_cycles
from turnkeeper.model.session import Session
from turnkeeper.sessions import doctor_projects
from turnkeeper.sessions.copy_store import MARK as COPY_MARK
from turnkeeper.sessions.diagnosis import Diagnosis, Problem, problem
from turnkeeper.sessions.doctor_session import ADVICE_LOG, Examination
from turnkeeper.sessions.doctor_sweep import Sweep
from turnkeeper.sessions.listing import every_id
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

ADVICE_CYCLE = (
    "--fix leaves it, because no event changes a parent. `session list` shows these sessions with --all only. To part "
    "them: `session export` each, delete `parentID` of `info` in the file of {0}, `session delete` them, and `session "
    "import` the files"
)

ADVICE_COPY = "use the old store, and run the same `turnkeeper store copy` again, which continues it"


async def examine(store: Store, *, fix: bool = False, progress: Callable[[int, int], None] | None = None) -> Diagnosis:
    """Examine a store, and with ``fix`` write wrong documents again. Logs are never changed.

    ``progress`` is called with the number of examined sessions and of all.
    """
    round = _Round(store, fix=fix)
    await round.sessions(progress or (lambda done, total: None))
    return await round.diagnosis()


class _Round:
    """An examination of a store."""

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
        """Examine each session."""
        names = await every_id(self._engine)
        self._known.update(names)
        for done, name in enumerate(names, start=1):
            await self._session(name)
            progress(done, len(names))

    async def diagnosis(self) -> Diagnosis:
        """Examine the documents that no session owns, and return the result."""
        # Lists and parts are compared with the documents of a session, so these must be correct.
        unsound = {one.session_id for one in self._problems if one.kind in UNSOUND and not one.fixed}
        sweep = Sweep(self._engine, self._known, unsound, self._stray, fix=self._fix)
        await sweep.run(self._mentioned)
        projects = await doctor_projects.examine(self._engine, self._sessions, fix=self._fix)
        if self._fix:
            await self._mark_again()
        await self._unfinished_copy()
        facts = await self._engine.inspect()
        medium = facts.pop("problems", [])
        problems = [
            *(problem("medium", one, ADVICE_LOG) for one in (medium if isinstance(medium, list) else [])),
            *self._problems,
            *sweep.problems,
            *projects,
        ]
        problems.extend([*self._orphaned(), *self._cycles()])
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
            # A page of the file cannot be read. Other sessions may not need that page.
            self._problems.append(problem("medium", str(error), ADVICE_LOG, session_id=name))
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
        """Write the marker document of an adopted tree again if it is damaged. Only its existence has a meaning."""
        [mark] = await self._engine.get([keys.ADOPTED])
        if mark is not None and mark != keys.ADOPTED_MARK:
            await self._engine.put({keys.ADOPTED: keys.ADOPTED_MARK})

    async def _unfinished_copy(self) -> None:
        """Report that this store is the target of a copy that was cut off: what it has is sound, and not all."""
        [mark] = await self._engine.get([COPY_MARK])
        if mark is not None:
            said = f"this store is the beginning of a copy that was not finished: {mark.decode(errors='replace')}"
            self._problems.append(problem("unfinished copy", said, ADVICE_COPY))

    def _orphaned(self) -> list[Problem]:
        advice = "none needed: it is a Child Session whose parent was not imported"
        return [
            problem("dangling reference", f"its parent {parent} is not in this store", advice, session_id=name, seq=1)
            for name, parent in self._parents.items()
            if parent not in self._known
        ]

    def _cycles(self) -> list[Problem]:
        return [
            problem(
                "parent cycle",
                f"each is the parent of the one before it: {' -> '.join((*cycle, cycle[0]))}",
                ADVICE_CYCLE.format(cycle[0]),
                session_id=cycle[0],
                seq=1,
            )
            for cycle in parent_cycles(self._parents)
        ]
