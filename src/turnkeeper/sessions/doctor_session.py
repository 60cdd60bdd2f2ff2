"""Examine one session: its log's chain, and whether its documents are what the log says."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from turnkeeper.core import blobs
from turnkeeper.core.usage import COST_DIGITS
from turnkeeper.model.value import Value
from turnkeeper.sessions.diagnosis import Kind, Problem
from turnkeeper.sessions.doctor_log import Damage, Fold
from turnkeeper.store import documents, keys
from turnkeeper.store.damaged import UNREADABLE
from turnkeeper.store.engine import Engine, Key, LogConflict
from turnkeeper.store.engines.words import words

ATTEMPTS_MAX = 100
MESSAGES_AT_ONCE = 200
NAMED_MAX = 5
"""How many documents one problem names."""

TEXTS_CHECKED_MAX = 16
"""How many texts of a session are looked up in the search index, besides its title: each one is a search."""

WORDS_ASKED_MAX = 6
ADVICE_LOG = (
    "restore the store from a backup, or keep what its documents still show: export the session, remove it, import it"
)
ADVICE_FIX = "run `turnkeeper doctor --fix`; it writes the documents again from the log"


class _Referring(Value):
    """What of a message can point to another."""

    seq: int = 0
    parent_id: str | None = None


class _Tail(Value):
    """What of a compaction part can point to a message."""

    type: str
    seq: int = 0
    tail_start_id: str | None = msgspec.field(default=None, name="tail_start_id")


_referring = msgspec.json.Decoder(_Referring)
_tail = msgspec.json.Decoder(_Tail)


class Examination:
    """One session under examination. The findings are complete once ``run`` has returned."""

    def __init__(self, engine: Engine, session_id: str, *, fix: bool, search: bool = True) -> None:
        """``search`` also asks the search index for the texts of the session."""
        self._engine, self._fix, self._search = engine, fix, search
        self.session_id = session_id
        self.fold = Fold(engine, session_id)
        self.problems: list[Problem] = []
        self.messages = self.parts = self.events = 0
        self.stray: set[Key] = set()
        self.is_gone = False

    async def run(self) -> None:
        """Examine, and again if the log grew meanwhile: what was read of the documents may then be newer than it."""
        before = 0
        for _ in range(ATTEMPTS_MAX):
            self.problems.clear()
            await self.fold.read_on()
            before, self.events = self.events, await self._engine.length(self.session_id)
            if self.events == 0:
                self.is_gone = True
                return
            if self.fold.damage is None and self.events != self.fold.seq:
                if self.events == before:  # It did not grow while it was read, so some of it is not there.
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
        self._refer(expected)

    async def _compare(self, expected: dict[Key, bytes]) -> None:
        stored = await self._stored(expected)
        wrong: dict[Kind, list[Key]] = {
            "missing document": [key for key in expected if key not in stored],
            "stale document": [key for key in expected if key in stored and not _same(expected[key], stored[key])],
            "surplus document": [key for key in stored if key not in expected],
        }
        unfound = await self._unfound() if self._search else []
        is_fixed = self._fix and (any(wrong.values()) or bool(unfound))
        if is_fixed:
            changes = {key: expected.get(key) for found in wrong.values() for key in found}
            texts = await self._plain(self.fold.texts()) if unfound else {}
            await self._engine.append(self.session_id, self.fold.seq, [], changes, texts=texts)
        for kind, found in wrong.items():
            if found:
                self._report(kind, named(found), fixed=is_fixed, advice=ADVICE_FIX)
        if unfound:
            self._report("missing text", named(unfound), fixed=is_fixed, advice=ADVICE_FIX)

    async def _make_readable(self, damage: Damage, length: int) -> None:
        """Write what the sound beginning of the log says, but only if the documents cannot be read without it.

        Behind a damaged log the documents are the better copy, so nothing of them is overwritten or removed.
        """
        [stored] = await self._engine.get([keys.state(self.session_id)])
        state = documents.state_or_none(stored)
        if damage.seq == 1 or (state is not None and await self._has_session(state.project_id)):
            return
        sound = Fold(self._engine, self.session_id)
        await sound.read_on(until=damage.seq - 1)
        expected = sound.documents()
        present = await self._engine.get(list(expected))
        missing = {key: expected[key] for key, body in zip(expected, present, strict=True) if body is None}
        for key in expected:
            if key[0] in ("state", "session"):
                missing[key] = expected[key]
        await self._engine.append(self.session_id, length, [], missing)
        self._report("missing document", named(list(missing)), fixed=True, advice=ADVICE_FIX)

    async def _has_session(self, project_id: str) -> bool:
        """Whether the session document is there and can be read."""
        [stored] = await self._engine.get([keys.session(project_id, self.session_id)])
        try:
            return stored is not None and bool(documents.read_session(stored))
        except UNREADABLE:
            return False

    async def _stored(self, expected: dict[Key, bytes]) -> dict[Key, bytes]:
        """What stands where this session's documents belong, expected or not."""
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

    async def _unfound(self) -> list[Key]:
        """Texts that search does not find, of the title and a sample spread over the rest."""
        texts = self.fold.texts()
        title = keys.text(self.session_id, "title")
        rest = [key for key in texts if key != title]
        sample = [title, *rest[:: max(1, -(-len(rest) // TEXTS_CHECKED_MAX))]]
        plain = await self._plain({key: texts[key] for key in sample if key in texts})
        return [key for key, text in plain.items() if not await self._is_found(key, text)]

    async def _is_found(self, key: Key, text: str) -> bool:
        # The longest words are the rarest, and the search index answers quickest for those.
        asked = sorted(set(words(text[:2000])), key=lambda word: (-len(word), word))[:WORDS_ASKED_MAX]
        if not asked:
            return True
        return key in await self._engine.search(" ".join(asked), key[:-1], limit=10_000)

    async def _plain(self, texts: dict[Key, str]) -> dict[Key, str]:
        """The texts with their blobs spelt out."""
        names = sorted({name for text in texts.values() for name in blobs.mentioned(text)})
        found = await self._engine.get([keys.blob(name) for name in names]) if names else []
        known = {name: body for name, body in zip(names, found, strict=True) if body is not None}
        return {key: blobs.spell_out(text, known) for key, text in texts.items()}

    def _refer(self, expected: dict[Key, bytes]) -> None:
        """Report references to messages that are not there, and parts without a message."""
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

    def _report(self, kind: Kind, message: str, *, advice: str, seq: int | None = None, fixed: bool = False) -> None:
        self.problems.append(
            Problem(kind=kind, session_id=self.session_id, seq=seq, message=message, fixed=fixed, advice=advice)
        )


async def contradictions(engine: Engine, session_id: str) -> list[str]:
    """What is wrong with the data of one session: damage in its log, and documents that its log contradicts."""
    one = Examination(engine, session_id, fix=False, search=False)
    await one.run()
    return [f"{found.kind} in session {session_id}: {found.message}" for found in one.problems if found.is_damage]


def named(found: Sequence[Key]) -> str:
    """Some documents by name, and how many more there are."""
    listed = ", ".join("/".join(key) for key in found[:NAMED_MAX])
    return listed if len(found) <= NAMED_MAX else f"{listed} and {len(found) - NAMED_MAX} more"


def _cut_or_altered(fold: Fold, state: documents.State | None) -> Damage | None:
    """What the state document knows of a log that is sound in itself: it was longer, or its last entry was another."""
    if state is None or state.seq < fold.seq:
        return None
    if state.seq > fold.seq:
        return Damage("truncated log", fold.seq + 1, f"it is missing; the log once had {state.seq} events")
    if state.head != fold.head:
        return Damage("altered entry", fold.seq, "it is the last one, and the state document carries another hash")
    return None


def _references(fold: Fold, expected: dict[Key, bytes]) -> Iterator[tuple[int | None, str, str]]:
    """Everything in a session that points to one of its messages."""
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


def _same(expected: bytes, stored: bytes) -> bool:
    if expected == stored:
        return True
    try:  # An older version may have written the same fields in another order, and added dollars as binary numbers.
        return bool(_loosely.decode(expected) == _loosely.decode(stored))
    except UNREADABLE:
        return False


def _chunks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[start : start + MESSAGES_AT_ONCE] for start in range(0, len(names), MESSAGES_AT_ONCE))
