"""Export many sessions: a folder of files, one file of lines, or a folder for each session (seed 003's tree)."""

import shutil
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal, TypeAlias

import msgspec

from turnkeeper.interop import export
from turnkeeper.interop.report import Progress
from turnkeeper.model.parts import Part, SnapshotPart, StepFinishPart, StepStartPart
from turnkeeper.model.refusal import Invalid
from turnkeeper.store.queries import MessageWithParts
from turnkeeper.store.store import Store
from turnkeeper.workspace.files import PRIVATE, replacing

Layout: TypeAlias = Literal["json", "tree"]

LINES_SUFFIX = ".jsonl"


async def export_all(
    store: Store,
    target: Path,
    session_ids: Iterable[str] | None = None,
    *,
    layout: Layout = "json",
    sanitise: bool = False,
    progress: Progress | None = None,
) -> int:
    """Write these sessions (by default all) and say how many. Files and folders of the same name are replaced.

    ``json`` writes ``<target>/<id>.json``, or with a target that ends in ``.jsonl`` one session on each line;
    ``tree`` writes ``<target>/<id>/``.
    """
    names = await _every(store) if session_ids is None else list(session_ids)
    for name in names:
        await store.queries.state(name)  # An unknown one is refused before anything is written.
    if layout == "tree" and target.suffix == LINES_SUFFIX:
        raise Invalid(f"{target} names a file of lines, and a tree needs a folder; give another name")
    if target.suffix == LINES_SUFFIX:
        await _lines(store, target, names, sanitise, progress)
        return len(names)
    _folder(target)
    for done, name in enumerate(names):
        _tell(progress, done, len(names), name)
        if layout == "tree":
            await export_tree(store, name, target, sanitise=sanitise)
        else:
            await _write(export.chunks(store, name, sanitise=sanitise), target / f"{name}.json")
    _tell(progress, len(names), len(names), "")
    return len(names)


async def export_tree(store: Store, session_id: str, target: Path, *, sanitise: bool = False) -> Path:
    """Write ``<target>/<id>/``: ``meta.json``, ``message/<id>.json`` with its parts, ``snapshot/``, ``todo.json``.

    The folder is made under another name and takes its place when it is whole.
    """
    session = await store.queries.session(session_id)
    draft = Path(mkdtemp(dir=target, prefix=f".{session_id}."))
    try:
        tree = _Tree(draft, sanitise)
        async for message in store.queries.stream(session_id, reverse=False):
            tree.message(message)
        tree.write("meta", {**export.session_json(session, sanitise=sanitise), "messages": tree.order})
        if not sanitise:
            tree.write("todo", await store.queries.todos(session_id))
            if diffs := await store.queries.diffs(session_id):
                tree.write("diff", diffs)
        _replace(draft, target / session_id)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return target / session_id


class _Tree:
    """The files of one session."""

    def __init__(self, folder: Path, sanitise: bool) -> None:
        self._folder, self._sanitise = folder, sanitise
        self._snapshots: set[str] = set()
        self.order: list[str] = []
        """The ids of the messages; names of files have no order of their own."""
        for name in ("message", "snapshot"):
            (folder / name).mkdir()

    def message(self, message: MessageWithParts) -> None:
        """A message with its parts, and a file for each snapshot that they name."""
        json = export.message_json(message, sanitise=self._sanitise)
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
        """One JSON file."""
        body = msgspec.json.format(msgspec.json.encode(content), indent=2)
        (self._folder / f"{name}.json").write_bytes(body + b"\n")


async def _every(store: Store) -> list[str]:
    names: list[str] = []
    while page := await store.engine.logs(after=names[-1] if names else "", limit=1000):
        names.extend(page)
    return names


async def _lines(store: Store, target: Path, names: list[str], sanitise: bool, progress: Progress | None) -> None:
    _folder(target.parent)

    async def pieces() -> AsyncIterator[bytes]:
        for done, name in enumerate(names):
            _tell(progress, done, len(names), name)
            async for piece in export.line(store, name, sanitise=sanitise):
                yield piece
        _tell(progress, len(names), len(names), "")

    await _write(pieces(), target)


async def _write(pieces: AsyncIterator[bytes], target: Path) -> None:
    with replacing(target, mode=PRIVATE) as file:
        async for piece in pieces:
            file.write(piece)


def _folder(target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise Invalid(f"{target} is a file, and a folder is needed there; give another name") from error


def _replace(draft: Path, target: Path) -> None:
    """Put a folder in another's place. Two renames: no system lets one folder replace another that is not empty."""
    old = draft.with_name(f"{draft.name}.old")
    if target.exists():
        target.rename(old)
    draft.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _tell(progress: Progress | None, done: int, total: int, what: str) -> None:
    if progress is not None:
        progress(done, total, what)
