"""Examine a session: the hash chain of its log, and whether its documents agree with the log."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from turnkeeper.core.entry import Damaged
from turnkeeper.core.restores import is_open
from turnkeeper.core.usage import COST_DIGITS
from turnkeeper.core.view import SessionView
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value, encode
from turnkeeper.sessions.diagnosis import Problem, ProblemKind, problem
from turnkeeper.sessions.doctor_index import IndexCheck
from turnkeeper.sessions.doctor_log import Damage, Fold
from turnkeeper.sessions.remove import indexed
from turnkeeper.store import documents, keys
from turnkeeper.store.damaged import UNREADABLE
from turnkeeper.store.engine import Engine, Key, LogConflict
from turnkeeper.workspace.owner import is_alive

ATTEMPTS_MAX = 100
MESSAGES_AT_ONCE = 200
NAMED_MAX = 5
"""How many documents one problem names."""

ADVICE_LOG = (
    "restore the store from a backup, or keep what its documents still show: export the session, remove it, import it"
)
ADVICE_FIX = "run `turnkeeper doctor --fix`; it writes the documents again from the log"

ADVICE_INDEX = "run `turnkeeper doctor --fix`; searches then find older calls by their inputs, such as a command, too"


class _Referring(Value):
    """The fields of a message that refer to another message."""

    seq: int = 0
    parent_id: str | None = None


class _Tail(Value):
    """The fields of a compaction part that refer to a message."""

    type: str
    seq: int = 0
    tail_start_id: str | None = msgspec.field(default=None, name="tail_start_id")


_referring = msgspec.json.Decoder(_Referring)
_tail = msgspec.json.Decoder(_Tail)


class Examination:
    """The examination of a session. ``run`` fills its public attributes. ``search`` also checks the search index."""

    def __init__(self, engine: Engine, session_id: str, *, fix: bool, search: bool = True) -> None:
        self._engine, self._fix, self._search = engine, fix, search
        self.session_id = session_id
        self.fold = Fold(engine, session_id)
        self.problems: list[Problem] = []
        self.messages = self.parts = self.events = 0
        self.stray: set[Key] = set()
        self.is_gone = False

    async def run(self) -> None:
        """Examine the session, and again if its log grew meanwhile: then the documents may be newer than the log."""
        before = 0
        for _ in range(ATTEMPTS_MAX):
            self.problems.clear()
            await self.fold.read_on()
            before, self.events = self.events, await self._engine.length(self.session_id)
            if self.events == 0:
                self.is_gone = True
                return
            if self.fold.damage is None and self.events != self.fold.seq:
                if self.events == before:  # The log did not grow while it was read, so entries are missing.
                    reason = f"it cannot be read; the store counts {self.events} events"
                    self.fold.damage = Damage("truncated log", self.fold.seq + 1, reason)
                else:
                    continue
            try:
                await self._examine(self.events)
            except LogConflict:
                continue
            if await self._engine.length(self.session_id) == self.events:
                return
        self._report("medium", "its log never rested long enough to be examined", advice="run doctor again later")

    async def _examine(self, length: int) -> None:
        [stored] = await self._engine.get([keys.state(self.session_id)])
        damage = self.fold.damage or _cut_or_altered(self.fold, documents.state_or_none(stored))
        expected = self.fold.documents()
        self.messages = sum(key[0] == "message" for key in expected)
        self.parts = sum(key[0] == "part" and len(key) == 3 for key in expected)
        if damage is not None:
            self._report(damage.kind, f"event {damage.seq}: {damage.reason}", seq=damage.seq, advice=ADVICE_LOG)
            if self._fix:
                await self._make_readable(damage, length)
            return
        await self._compare(expected)
        await self._compare_views()
        self._refer(expected)
        self._finished()

    def _finished(self) -> None:
        """Report a revert that a dead process left half done."""
        view = self.fold.view
        if view is not None and is_open(view) and (view.owner is None or not is_alive(view.owner)):
            assert view.restore is not None, "an open restore is one"
            count = sum(one.writes for one in view.restore.files)
            said = f"a revert was cut off while it wrote {count} files of {view.restore.root!r}"
            self._report("unfinished revert", said, advice="the next prompt finishes it, as does `session recover`")

    async def _compare(self, expected: dict[Key, bytes]) -> None:
        stored = await self._stored(expected)
        wrong: dict[ProblemKind, list[Key]] = {
            "missing document": [key for key in expected if key not in stored],
            "stale document": [key for key in expected if key in stored and not _same(key, expected[key], stored[key])],
            "surplus document": [key for key in stored if key not in expected],
        }
        index = IndexCheck(self._engine, self.session_id, self.fold.texts(), expected)
        if self._search:
            await index.run()
        is_reindexed = bool(index.missing or index.outdated)
        is_fixed = self._fix and (any(wrong.values()) or is_reindexed)
        if is_fixed:
            changes = {key: expected.get(key) for found in wrong.values() for key in found}
            texts = await index.plain(self.fold.texts()) if is_reindexed else {}
            await self._engine.append(self.session_id, self.fold.seq, [], changes, texts=texts)
        for kind, found in wrong.items():
            if found:
                self._report(kind, named(found), fixed=is_fixed, advice=ADVICE_FIX)
        if index.missing:
            self._report("missing text", named(index.missing), fixed=is_fixed, advice=ADVICE_FIX)
        if index.outdated:
            self._report("outdated text", named(index.outdated), fixed=is_fixed, advice=ADVICE_INDEX)

    async def _compare_views(self) -> None:
        """Compare the view that the journal loads from the documents with the view of the log."""
        if any(one.is_damage and not one.fixed for one in self.problems):
            return  # The documents are known to be wrong.
        try:
            loaded = await documents.load(self._engine, self.session_id)
        except Damaged as error:
            # Something nested very deeply can be read or not, depending on the depth of the calls around its reader.
            self._report("unreadable entry", str(error), seq=error.seq, advice=ADVICE_LOG)
            return
        if loaded is not None and loaded[0].seq == self.fold.seq and self.fold.view is not None:
            lost = differing(loaded[0], self.fold.view)
            if lost:
                self._report("different view", ", ".join(lost), advice="report this: documents lose these fields")

    async def _make_readable(self, damage: Damage, length: int) -> None:
        """Write the documents that are needed to list, read, export and continue a session with a damaged log.

        The existing documents are better than a damaged log. Their unreadable fields are left out. A missing session
        document is derived from the undamaged beginning of the log.
        """
        [stored] = await self._engine.get([keys.state(self.session_id)])
        state = documents.state_or_none(stored)
        place = keys.session(state.project_id, self.session_id) if state is not None else None
        [body] = await self._engine.get([place]) if place is not None else [None]
        session = _session_or_none(body)
        if state is not None and place is not None and session is not None:
            # The log cannot be folded, so the state document is used, even of an older version.
            sound = {place: encode(session), keys.state(self.session_id): encode(state.but(shape=documents.SHAPE))}
            if body is not None and documents.is_whole_session(body):
                del sound[place]
            if state.is_current():
                del sound[keys.state(self.session_id)]
            await self._write(sound, length, "stale document")
        elif damage.seq > 1:
            await self._write(await self._beginning(damage.seq - 1), length, "missing document")
        else:
            listed = await indexed(self._engine, self.session_id)
            await self._write({key: None for key in listed if key[0] != "session"}, length, "surplus document")

    async def _beginning(self, seq: int) -> dict[Key, bytes | None]:
        """The missing and unreadable documents, derived from the first ``seq`` events of the log."""
        sound = Fold(self._engine, self.session_id)
        await sound.read_on(until=seq)
        expected = sound.documents()
        present = await self._engine.get(list(expected))
        missing: dict[Key, bytes | None] = {
            key: expected[key]
            for key, body in zip(expected, present, strict=True)
            if body is None or (key[0] == "session" and _session_or_none(body) is None)
        }
        missing[keys.state(self.session_id)] = expected[keys.state(self.session_id)]
        return missing

    async def _write(self, changes: Mapping[Key, bytes | None], length: int, kind: ProblemKind) -> None:
        if changes:
            await self._engine.append(self.session_id, length, [], changes)
            self._report(kind, named(list(changes)), fixed=True, advice=ADVICE_FIX)

    async def _stored(self, expected: dict[Key, bytes]) -> dict[Key, bytes]:
        """The stored documents of this session, expected or not."""
        own = self.session_id
        single: set[Key] = {(kind, own) for kind in keys.ONE_EACH}
        single.update(key for key in expected if key[0] not in (*keys.MANY_EACH, "part"))
        wanted = sorted(single)
        found = await self._engine.get(wanted)
        stored = {key: body for key, body in zip(wanted, found, strict=True) if body is not None}
        for group in await self._engine.gather([(kind, own) for kind in keys.MANY_EACH]):
            stored.update(group)
        names = {key[2] for key in [*stored, *expected] if key[0] == "message"}
        names.update(key[1] for key in expected if key[0] == "part")
        for some in _chunks(sorted(names)):
            for group in await self._engine.gather([("part", name) for name in some]):
                stored.update(group)
        return stored

    def _refer(self, expected: dict[Key, bytes]) -> None:
        """Report references to messages that do not exist, and parts without a message."""
        names = {key[2] for key in expected if key[0] == "message"}
        self.stray = {key for key in expected if key[0] == "part" and key[1] not in names}
        if self.stray:
            advice = "nobody can see it; remove the part, or record its message"
            self._report("stray part", named(sorted(self.stray)), advice=advice)
        for seq, what, target in _references(self.fold, expected):
            if target not in names:
                self._report(
                    "dangling reference",
                    f"{what} points to {target}, which is not in the history",
                    seq=seq,
                    advice="none needed: readers cope with it",
                )

    def _report(
        self, kind: ProblemKind, message: str, *, advice: str, seq: int | None = None, fixed: bool = False
    ) -> None:
        self.problems.append(problem(kind, message, advice, session_id=self.session_id, seq=seq, fixed=fixed))


async def contradictions(engine: Engine, session_id: str) -> list[str]:
    """The damage of a session: errors in its log, and documents that its log contradicts."""
    one = Examination(engine, session_id, fix=False, search=False)
    await one.run()
    return [f"{found.kind} in session {session_id}: {found.message}" for found in one.problems if found.is_damage]


def named(found: Sequence[Key]) -> str:
    """The first of these keys, and the number of the others."""
    listed = ", ".join("/".join(key) for key in found[:NAMED_MAX])
    return listed if len(found) <= NAMED_MAX else f"{listed} and {len(found) - NAMED_MAX} more"


def differing(one: SessionView, other: SessionView) -> list[str]:
    """The names of the fields in which two views differ."""
    return [name for name in SessionView.__struct_fields__ if getattr(one, name) != getattr(other, name)]


def _cut_or_altered(fold: Fold, state: documents.State | None) -> Damage | None:
    """Damage of a readable log that the state document shows: the log was longer, or its last entry was another."""
    if state is None or state.seq < fold.seq:
        return None
    if state.seq > fold.seq:
        return Damage("truncated log", fold.seq + 1, f"it is missing; the log once had {state.seq} events")
    if state.head != fold.head:
        return Damage("altered entry", fold.seq, "it is the last one, and the state document carries another hash")
    return None


def _references(fold: Fold, expected: dict[Key, bytes]) -> Iterator[tuple[int | None, str, str]]:
    """All references to messages in a session: the event, a description and the id of the message."""
    for key, body in expected.items():
        if key[0] == "message":
            message = _referring.decode(body)
            if message.parent_id is not None:
                yield message.seq, f"the parent of {key[2]}", message.parent_id
        elif key[0] == "part" and len(key) == 3 and b'"compaction"' in body:
            part = _tail.decode(body)
            if part.type == "compaction" and part.tail_start_id is not None:
                yield part.seq, f"the tail of the compaction {key[2]}", part.tail_start_id
    if fold.view is not None and fold.view.session.revert is not None:
        yield None, "the pending revert", fold.view.session.revert.message_id


_loosely = msgspec.json.Decoder(float_hook=lambda number: round(float(number), COST_DIGITS))


def _session_or_none(stored: bytes | None) -> Session | None:
    """The session of a document without its unreadable fields; None if it cannot be read."""
    try:
        return documents.read_session(stored) if stored is not None else None
    except UNREADABLE:
        return None


def _same(key: Key, expected: bytes, stored: bytes) -> bool:
    if expected == stored:
        return True
    try:  # Older versions wrote fields in another order and costs with rounding errors.
        ours, theirs = _loosely.decode(expected), _loosely.decode(stored)
    except UNREADABLE:
        return False
    state = documents.state_or_none(stored) if key[0] == "state" else None
    if state is not None and not state.is_current():  # Readers fold the log for fields of newer versions.
        return bool(ours.items() >= theirs.items())
    return bool(ours == theirs)


def _chunks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[start : start + MESSAGES_AT_ONCE] for start in range(0, len(names), MESSAGES_AT_ONCE))
