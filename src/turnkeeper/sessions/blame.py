"""Blame a file: walk through the turns of a project's sessions that changed it, and let git compare its versions."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.core.blame import Blame, LineOrigin, WritingTurn, blamed, in_order, origin, writing_turns
from turnkeeper.core.history_trees import KnownTree
from turnkeeper.core.limits import BLAME_BYTES_MAX, BLAME_TURNS_MAX, SNAPSHOT_DIFFED_BYTES_MAX
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import Session
from turnkeeper.sessions.changes import SnapshotReader
from turnkeeper.sessions.listing import SessionFilter, sessions
from turnkeeper.store.store import Store
from turnkeeper.workspace import files
from turnkeeper.workspace.file_versions import FileVersion, file_versions, line_origins
from turnkeeper.workspace.git_work import GitFailed, GitStopped
from turnkeeper.workspace.project import identify

_BINARY_HEAD: Final = 8000
"""Bytes that git looks at to tell whether a file is binary."""


class _Step(NamedTuple):
    """The change of one turn to the file. A version without a blob: there was no file."""

    turn: WritingTurn
    before: FileVersion
    after: FileVersion
    file: str
    """The absolute path of the file after the turn."""


async def blame(store: Store, reader: SnapshotReader, file: Path, environ: Mapping[str, str]) -> Blame:
    """Which turn last wrote each line of a file. Raises Invalid for a file that cannot be read or has no lines."""
    path = files.real(file)
    content = _content(path)
    place = await identify(path.parent, environ=environ)
    turns = in_order([turn async for turn in _turns(store, place.id, path)])
    steps, left_out = await _Walk(reader).steps(turns, str(path))
    origins = await _origins(reader, steps, content, environ)
    return blamed(str(path), content, origins, left_out)


def _content(path: Path) -> bytes:
    try:
        content = files.read_bytes(path, SNAPSHOT_DIFFED_BYTES_MAX)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotFound(f"there is no file {str(path)!r}") from error
    except OSError as error:  # Such as a name that is too long, or a file that we may not read.
        raise Invalid(f"{str(path)!r:.200} cannot be read: {error.strerror}") from error
    if b"\0" in content[:_BINARY_HEAD]:
        raise Invalid(f"{str(path)!r} is binary; it has no lines that a turn could have written")
    return content


async def _turns(store: Store, project_id: str, file: Path) -> AsyncIterator[WritingTurn]:
    """Every turn that changed files, of sessions of the project and of those that work in a folder above the file.

    These may be of another project, because a directory becomes another one by its first commit.
    """
    places = [SessionFilter(project_id=project_id), *(SessionFilter(directory=str(one)) for one in file.parents)]
    seen = set[str]()
    for place in places:
        wanted: SessionFilter | None = place._replace(roots=False, archived=True)
        while wanted is not None:
            page = await sessions(store, wanted)
            for session in page.items:
                if session.id not in seen:
                    seen.add(session.id)
                    for turn in await _turns_of(store, session):
                        yield turn
            wanted = wanted._replace(after=page.older) if page.older is not None else None


async def _turns_of(store: Store, session: Session) -> list[WritingTurn]:
    try:
        if (await store.queries.state(session.id)).first_patch is None:
            return []
        history: list[MessageWithParts] = []
        async for some in store.queries.walk(session.id, with_marks=True):
            history += some
    except NotFound:  # Removed since it was listed.
        return []
    return list(writing_turns(session, history))


class _Walk:
    """Goes back through the turns that changed a file, also under the names it had before."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader

    async def steps(self, turns: list[WritingTurn], file: str) -> tuple[list[_Step], int]:
        """The changes of turns to the file, the oldest first, and how many turns are left out."""
        found: list[_Step] = []
        left_out, total = 0, 0
        known = await self._versions(turns, file)
        for place in range(len(turns) - 1, -1, -1):
            turn = turns[place]
            if file not in turn.patch.files:
                continue
            before, after = known.get(turn.patch.before), known.get(turn.patch.after)
            if before is None or after is None or len(found) >= BLAME_TURNS_MAX or total > BLAME_BYTES_MAX:
                left_out += 1
                continue
            step = _Step(turn, before, after, file)
            if before.blob is None and after.blob is not None and (old := await self._renamed_from(turn, file)):
                # From here on back, the file has its old name.
                file, known = old, await self._versions(turns[: place + 1], old)
                step = step._replace(before=known.get(turn.patch.before, before))
            found.append(step)
            total += step.before.bytes + step.after.bytes
        return found[::-1], left_out

    async def _versions(self, turns: list[WritingTurn], file: str) -> dict[KnownTree, FileVersion]:
        """The versions of a file in the snapshots of the turns that changed it."""
        wanted: dict[str, list[str]] = {}
        for turn in turns:
            if file in turn.patch.files:
                for known in (turn.patch.before, turn.patch.after):
                    wanted.setdefault(known.directory, []).append(known.tree)
        found: dict[KnownTree, FileVersion] = {}
        for directory, trees in wanted.items():
            repository = await self._reader.repository(directory)
            if not file.startswith(f"{repository.root}/"):
                continue
            versions = await file_versions(repository, file.removeprefix(f"{repository.root}/"), trees)
            found |= {KnownTree(tree=tree, directory=directory): one for tree, one in versions.items()}
        return found

    async def _renamed_from(self, turn: WritingTurn, file: str) -> str | None:
        changes = await self._reader.changes(turn.patch.before, turn.patch.after, turn.patch.files)
        root = (await self._reader.repository(turn.patch.after.directory)).root
        old = next((one.renamed_from for one in changes if str(root / one.file) == file), None)
        return str(root / old) if old is not None else None


async def _origins(
    reader: SnapshotReader, steps: list[_Step], content: bytes, environ: Mapping[str, str]
) -> list[LineOrigin | None]:
    """The origin of each line of the content, which is the last version of the file."""
    if not content:
        return []
    contents = await _contents(reader, steps)
    versions: list[bytes | None] = []
    writers: list[LineOrigin | None] = []
    ended = 0
    for step in steps:
        # A turn that began before another one ended does not go back to what was before the other one.
        if not versions or step.turn.began >= ended:
            versions.append(contents.get(step.before.blob))
            writers.append(None)
        versions.append(contents.get(step.after.blob))
        writers.append(origin(step.turn, step.file))
        ended = step.turn.ended
    try:
        numbers = await line_origins([*versions, content], environ)
    except (GitFailed, GitStopped) as error:
        raise NotFound(f"the versions of the file cannot be compared: {error}") from error
    return [[*writers, None][number] for number in numbers]


async def _contents(reader: SnapshotReader, steps: list[_Step]) -> dict[str | None, bytes]:
    wanted: dict[str, dict[str, None]] = {}
    for step in steps:
        for version in (step.before, step.after):
            if version.blob is not None:
                wanted.setdefault(step.turn.patch.after.directory, {})[version.blob] = None
    found: dict[str | None, bytes] = {}
    for directory, blobs in wanted.items():
        found.update(await (await reader.repository(directory)).read(list(blobs)))
    return found
