"""Export many sessions: as a folder of files, as one file of lines, or as a folder for each session."""

import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from tempfile import SpooledTemporaryFile, mkdtemp
from typing import IO, Literal, TypeAlias, get_args

import msgspec

from turnkeeper.core.redaction import Redactor
from turnkeeper.interop import export, redacted
from turnkeeper.interop.raw import plain
from turnkeeper.interop.report import ProgressReport
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, SnapshotPart, StepFinishPart, StepStartPart
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.sessions.listing import every_id
from turnkeeper.store import keys
from turnkeeper.store.damaged import DamagedDocument, DamagedNames, skipping
from turnkeeper.store.engine import StoreDamaged
from turnkeeper.store.store import Store
from turnkeeper.workspace.files import PRIVATE, replacing

ExportLayout: TypeAlias = Literal["json", "tree"]

RedactorOf: TypeAlias = Callable[[str], Awaitable[Redactor | None]]
"""Gives the redactor of a session, which masks its secrets; None leaves them."""

PRIVATE_FOLDER = 0o700
LINES_SUFFIX = ".jsonl"
LINE_BYTES_IN_MEMORY = 16 * 1024 * 1024
"""A longer line is buffered on disk until its session was read completely."""


async def export_all(
    store: Store,
    target: Path,
    session_ids: Iterable[str] | None = None,
    *,
    layout: ExportLayout = "json",
    sanitise: bool = False,
    redactor: RedactorOf | None = None,
    progress: ProgressReport | None = None,
    damaged: DamagedNames | None = None,
) -> int:
    """Write these sessions, by default all, and return how many. Existing files and folders are replaced.

    ``json`` writes ``<target>/<id>.json``, or one session per line if the target ends in ``.jsonl``; ``tree`` writes
    ``<target>/<id>/``. Unreadable documents raise DamagedDocument. With a ``damaged`` list they are left out and named.
    """
    if layout not in get_args(ExportLayout):
        raise Invalid(f"there is no layout {layout!r:.80}; the layouts are: {', '.join(get_args(ExportLayout))}")
    masking = redactor or _leaving
    names = await every_id(store.engine) if session_ids is None else list(session_ids)
    for name in names if session_ids is not None else ():
        await store.queries.state(name)  # An unknown id is refused before anything is written.
    if target.suffix == LINES_SUFFIX:
        if layout == "tree":
            raise Invalid(f"{target} names a file of lines, and a tree needs a folder; give another name")
        _folder(target.parent)
        with replacing(target, mode=PRIVATE) as file:
            count = await _each(
                names,
                lambda name: _line(store, name, file, sanitise, masking, damaged),
                progress,
                damaged,
            )
            if not count and target.exists():
                why = "could be read" if names else "is in the store"
                raise NotFound(f"no session {why}, so {str(target)!r} is not replaced by a file that holds no session")
            return count
    _folder(target)

    async def write(name: str) -> None:
        mask = await masking(name)
        if layout == "tree":
            await export_tree(store, name, target, sanitise=sanitise, redactor=mask, damaged=damaged)
        else:
            pieces = export.chunks(store, name, sanitise=sanitise, redactor=mask, damaged=damaged)
            await write_file(pieces, target / f"{name}.json")

    return await _each(names, write, progress, damaged)


async def export_tree(
    store: Store,
    session_id: str,
    target: Path,
    *,
    sanitise: bool = False,
    redactor: Redactor | None = None,
    damaged: DamagedNames | None = None,
) -> Path:
    """Write ``<target>/<id>/``: ``meta.json``, ``message/<id>.json`` with its parts, ``snapshot/``, ``todo.json``.

    The folder is written under a temporary name and renamed when it is complete.
    """
    session = await export.verified(store, session_id, damaged)
    draft = Path(mkdtemp(dir=target, prefix=f".{session_id}."))
    try:
        tree = _Tree(draft, sanitise, redactor)
        async for message in store.queries.stream(session_id, reverse=False, damaged=damaged):
            tree.message(message)
        tree.write("meta", {**export.session_json(session, sanitise=sanitise), "messages": tree.order})
        if not sanitise:
            with skipping(keys.todo(session_id), damaged):
                tree.write("todo", await store.queries.todos(session_id))
            with skipping(keys.diff(session_id), damaged):
                if diffs := await store.queries.diffs(session_id):
                    tree.write("diff", diffs)
        _replace(draft, target / session_id)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target / session_id


class _Tree:
    """Writes the files of a session."""

    def __init__(self, folder: Path, sanitise: bool, redactor: Redactor | None) -> None:
        self._folder, self._sanitise, self._redactor = folder, sanitise, redactor
        self._snapshots: set[str] = set()
        self.order: list[str] = []
        """The ids of the messages in order, which file names do not give."""
        for name in ("message", "snapshot"):
            (folder / name).mkdir(PRIVATE_FOLDER)

    def message(self, message: MessageWithParts) -> None:
        """Write a message with its parts, and a file for each snapshot of the parts."""
        json = export.message_json(message, sanitise=self._sanitise)
        if self._redactor is not None:
            json = redacted.message(self._redactor, json, f"message {len(self.order) + 1}")
        self.write(f"message/{message.info.id}", {**json["info"], "parts": json["parts"]})
        self.order.append(message.info.id)
        if not self._sanitise:
            for part in message.parts:
                self._snapshot(part, message)

    def _snapshot(self, part: Part, message: MessageWithParts) -> None:
        if not isinstance(part, StepStartPart | StepFinishPart | SnapshotPart) or not part.snapshot:
            return
        tree = part.snapshot
        if tree.isalnum() and tree not in self._snapshots:
            self._snapshots.add(tree)
            place = {"sessionID": part.session_id, "messageID": part.message_id}
            self.write(f"snapshot/{tree}", {"id": tree, **place, "time": {"created": message.info.time.created}})

    def write(self, name: str, content: object) -> None:
        """Write a JSON file."""
        if self._redactor is not None:
            content = self._redactor.json(plain(content), name.partition("/")[0])
        body = msgspec.json.format(msgspec.json.encode(content), indent=2)
        with open(self._folder / f"{name}.json", "xb", opener=_private) as file:
            file.write(body + b"\n")


async def _each(
    names: Sequence[str],
    write: Callable[[str], Awaitable[None]],
    progress: ProgressReport | None,
    damaged: DamagedNames | None,
) -> int:
    """Write each session; the number of written ones. With a ``damaged`` list, unreadable sessions are named there."""
    report = progress or (lambda *_: None)
    written = 0
    for done, name in enumerate(names):
        report(done, len(names), name)
        try:
            await write(name)
            written += 1
        except (DamagedDocument, StoreDamaged, NotFound) as error:
            if damaged is None:
                raise
            damaged.append(f"session {name}: {error}")
    report(len(names), len(names), "")
    return written


async def _leaving(_: str) -> Redactor | None:
    return None


async def _line(
    store: Store,
    session_id: str,
    file: IO[bytes],
    sanitise: bool,
    masking: RedactorOf,
    damaged: DamagedNames | None,
) -> None:
    """Append a session to a file of lines after it was read completely."""
    mask = await masking(session_id)
    with SpooledTemporaryFile(LINE_BYTES_IN_MEMORY) as whole:
        async for piece in export.line(store, session_id, sanitise=sanitise, redactor=mask, damaged=damaged):
            whole.write(piece)
        whole.seek(0)
        shutil.copyfileobj(whole, file)


async def write_file(pieces: AsyncIterator[bytes], target: Path) -> None:
    """Write pieces to a private file, which replaces an existing one when it is complete."""
    with replacing(target, mode=PRIVATE) as file:
        async for piece in pieces:
            file.write(piece)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE)


def _folder(target: Path) -> None:
    try:
        target.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    except FileExistsError as error:
        raise Invalid(f"{target} is a file, and a folder is needed there; give another name") from error


def _replace(draft: Path, target: Path) -> None:
    """Replace a folder by two renames, because a rename cannot replace a folder that is not empty."""
    old = draft.with_name(f"{draft.name}.old")
    if target.exists():
        target.rename(old)
    draft.rename(target)
    shutil.rmtree(old, ignore_errors=True)
