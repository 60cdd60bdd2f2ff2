"""The tree of the files engine, without waiting for anything but the disk: reading, committing, repairing.

A write has three steps. *Stage*: bodies and lines are written where no reader looks. *Commit*: one record in the
journal is flushed; from here on the write will be there, whatever happens. *Place*: while no reader is in, what was
staged is renamed into place, which is quick because nothing is flushed. Flushing the files themselves waits for the
*checkpoint*, which does many at once and then empties the journal. Until then the journal can make every change again.

A process that dies while placing leaves a mark in ``state``; whoever comes next, reader or writer, places again first.
On open the journal is always placed again, because after a power cut nothing but the journal can be trusted.
"""

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import EngineError, StoreUnavailable
from turnkeeper.store.engines import file_disk
from turnkeeper.store.engines.file_disk import Disk
from turnkeeper.store.engines.file_documents import Documents, StagedDocument
from turnkeeper.store.engines.file_journal import Change, Intent, fold, record, records
from turnkeeper.store.engines.file_lock import FileLock
from turnkeeper.store.engines.file_logs import Logs, StagedLog
from turnkeeper.store.engines.file_names import OWN_DIRECTORY
from turnkeeper.store.engines.file_words import Line, Words

CHECKPOINT_RECORDS = 64
CHECKPOINT_BYTES = 4 << 20

_STATE = struct.Struct("<4sQQQB")
_MAGIC = b"TKS1"


@dataclass(frozen=True)
class State:
    """How far the files follow the journal. Written often and flushed never: it only speaks to living processes."""

    version: int = 0
    placed: int = 0
    """The length of the journal up to which its changes are in the files."""
    checkpointed: int = 0
    is_placing: bool = False


Known = dict[str, tuple[int, int]]
"""Lengths and fences of logs after the writes that are planned and not yet done."""


@dataclass(eq=False)
class Plan:
    """A write that somebody waits for: decided while no other writer is in, or refused with an error."""

    decide: Callable[[Known], Intent]
    is_alone: bool = False
    """It looks at documents, so what was planned before must be done first."""
    done: "Future[None]" = field(default_factory=Future, init=False)


class Tree:
    """The directory of one store."""

    def __init__(self, directory: str, disk: Disk | None = None) -> None:
        self.directory = directory
        self.disk = disk or Disk()
        self.own = f"{directory}/{OWN_DIRECTORY}"
        self.documents = Documents(directory, self.disk)
        self.logs = Logs(directory, self.disk)
        self.words = Words(f"{self.own}/words", self.disk)
        self._journal, self._state = f"{self.own}/journal", f"{self.own}/state"
        self._staging = f"{self.own}/staging"
        self._is_behind = False
        """We committed something and could not even begin to place it; others see it with the next write."""
        self._log_names: tuple[int, list[str]] = (-1, [])
        self._writers = FileLock(f"{self.own}/lock", "writers")
        self._readers = FileLock(f"{self.own}/lock", "readers")

    def open(self) -> None:
        """Make the store if it is not there, and put right what a dead process or a power cut has left."""
        for folder in (f"{self.own}/lock", self._staging, self.logs.indexes, self.logs.directory):
            self.disk.make_directory(folder)
        with self._writers.exclusive():
            if file_disk.size(self._journal) is None:
                self.disk.create(self._journal, b"")
                self.disk.flush([self._journal, self.own, self.directory, os.path.dirname(self.directory)])
            self._settle(is_opening=True)
            for left in os.listdir(self._staging):
                self.disk.unlink(f"{self._staging}/{left}")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Hold off placing, so that what is read is of one moment. Repairs first if a writer died while placing."""
        while True:
            with self._readers.shared():
                state = self._load()
                if not state.is_placing and not self._is_behind:
                    self.documents.listings.expect(state.version)
                    yield
                    return
            with self.writing():
                pass

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other writers out, with everything done that was ever committed."""
        with self._writers.exclusive():
            self.documents.listings.expect(self._settle().version)
            yield

    def version(self) -> int:
        """A number that grows with each write."""
        return self._load().version

    def log_names(self) -> list[str]:
        """The logs that have entries, in order. Only inside ``reading`` or ``writing``."""
        version = self.version()
        listed, names = self._log_names
        if listed != version:
            names = self.logs.names()
            self._log_names = version, names
        return names

    def commit(self, plans: Sequence[Plan]) -> None:
        """Do all these writes and flush once, if they let us; each says afterwards whether it was refused."""
        with self.writing():
            group: list[Plan] = []
            for plan in plans:
                if plan.is_alone:
                    self._write(group)
                    self._write([plan])
                    group = []
                else:
                    group.append(plan)
            self._write(group)

    def checkpoint(self) -> None:
        """Flush every file that changed since the last time, and empty the journal."""
        with self.writing():
            self._checkpoint(self._load())

    def write(self, intents: Sequence[Intent]) -> None:
        """Commit and place. Only inside ``writing``. Raises OSError or EngineError with nothing written."""
        state = self._settle()
        offset = state.placed
        data = b"".join(record(state.version + number, intent) for number, intent in enumerate(intents, 1))
        staged = self._stage(fold(intents))
        crash_point("files.staged")
        try:
            self.disk.extend(self._journal, offset, data)
            crash_point("files.intent-written")
            self.disk.flush([self._journal])
        except OSError:
            # If even this fails, the write may turn out to be there later; whoever is told so reads the log again.
            with suppress(OSError):
                self.disk.truncate(self._journal, offset)
            raise
        crash_point("files.intent-synced")
        state = replace(state, version=state.version + len(intents), placed=offset + len(data))
        try:
            self._place(staged, state)
        except (OSError, EngineError):
            # It is committed, so it is not refused: the next to come places it again.
            self._is_behind = True
            return
        if state.version - state.checkpointed >= CHECKPOINT_RECORDS or state.placed > CHECKPOINT_BYTES:
            self._checkpoint(state)

    def _write(self, plans: list[Plan]) -> None:
        known: Known = {}
        decided: list[tuple[Plan, Intent]] = []
        for plan in plans:
            try:
                decided.append((plan, plan.decide(known)))
            except Exception as error:  # Whatever a caller's own function raises is the caller's answer.
                plan.done.set_exception(unavailable(error) if isinstance(error, OSError) else error)
        try:
            if decided:
                self.write([intent for _, intent in decided])
        except (OSError, EngineError) as error:
            if len(decided) == 1:
                decided[0][0].done.set_exception(unavailable(error))
                return
            # One of them does not fit on the disk; it must not take the others with it.
            for plan, _ in decided:
                self._write([plan])
            return
        for plan, _ in decided:
            plan.done.set_result(None)

    def _stage(self, change: Change) -> "_Staged":
        staged = _Staged(self.documents.stage(change.documents, self._staging), words=change.words)
        for number, (log, log_change) in enumerate(change.logs.items()):
            staged.logs.append(self.logs.stage(log, log_change, f"{self._staging}/log-{number}"))
        return staged

    def _place(self, staged: "_Staged", state: State) -> None:
        """Show staged changes to readers, all at once, and say how far the files now are."""
        before = self._load()
        with self._readers.exclusive():
            try:
                self._save(replace(before, is_placing=True))
                crash_point("files.place-begun")
                self.documents.place(staged.documents)
                for log in staged.logs:
                    self.logs.place(log)
                    crash_point("files.log-placed")
                if staged.words:
                    self.words.add(staged.words)
                self.documents.listings.follow(before.version, state.version)
                self._save(state)
            except BaseException:
                self.documents.listings.expect(-1)
                raise
        self._is_behind = False
        crash_point("files.placed")

    def _settle(self, *, is_opening: bool = False) -> State:
        """Place again what was committed, if the files do not show all of it, and say how far they are."""
        state, size = self._load(), file_disk.size(self._journal) or 0
        if state.placed == size and not state.is_placing and not (is_opening and size):
            return state
        found = list(records(file_disk.read(self._journal) or b""))
        if not found:
            self.disk.truncate(self._journal, 0)
            state = replace(state, placed=0, is_placing=False)
            self._save(state)
            return state
        state = replace(state, version=max(state.version, found[-1][0]), placed=found[-1][1], is_placing=False)
        self._place(self._stage(fold(intent for _, _, intent in found)), state)
        return self._checkpoint(state)

    def _checkpoint(self, state: State) -> State:
        try:
            self._flush_files()
            if self.words.is_due():
                self._rewrite_words()
        except OSError:
            # What failed to be flushed may be lost although the next flush succeeds: the files must be written again.
            with suppress(OSError):
                self._save(replace(state, is_placing=True))
            return state
        crash_point("files.checkpoint-synced")
        state = replace(state, placed=0, checkpointed=state.version)
        self.disk.truncate(self._journal, 0)
        crash_point("files.checkpoint-emptied")
        self._save(state)
        crash_point("files.checkpoint-done")
        return state

    def _flush_files(self) -> None:
        change = fold(intent for _, _, intent in records(file_disk.read(self._journal) or b""))
        targets = {file for place in change.documents for file in self.documents.files(place)}
        for log in change.logs:
            targets.update(self.logs.files(log))
        targets.update((self.words.file, self.logs.directory, self.logs.indexes, self.own))
        self.disk.flush(targets)

    def _rewrite_words(self) -> None:
        temporary = f"{self._staging}/words"
        self.disk.create(temporary, self.words.rewritten())
        self.disk.flush([temporary])
        with self._readers.exclusive():
            self.disk.rename(temporary, self.words.file)
        self.disk.flush([self.own])

    def _load(self) -> State:
        held = file_disk.read(self._state)
        if held is None or len(held) != _STATE.size or not held.startswith(_MAGIC):
            return State()
        _, version, placed, checkpointed, is_placing = _STATE.unpack(held)
        return State(version, placed, checkpointed, bool(is_placing))

    def _save(self, state: State) -> None:
        packed = _STATE.pack(_MAGIC, state.version, state.placed, state.checkpointed, state.is_placing)
        self.disk.overwrite(self._state, packed)


@dataclass
class _Staged:
    documents: list[StagedDocument]
    logs: list[StagedLog] = field(default_factory=list)
    words: list[Line] = field(default_factory=list)


def unavailable(error: OSError | EngineError) -> EngineError:
    """What a caller is told about the disk's no."""
    if isinstance(error, EngineError):
        return error
    said = StoreUnavailable(f"the disk said no: {error}")
    said.__cause__ = error
    return said
