"""Numbered migrations of a JSON tree, each run once; the text file ``migration`` holds how many are done.

Migrations work on JSON as it lies on disk. A step that fails leaves the number as it was and is run again at the next
opening; so is one that was killed. Nothing is ever overwritten with something else, and old project trees stay.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import anyio.to_thread
import msgspec

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.file_epoch0 import JsonObject
from turnkeeper.store.engines.file_journal import Intent
from turnkeeper.store.engines.file_names import MARKER
from turnkeeper.store.engines.file_projects import RootCommits, Unresolved, git_root_commits, project_trees
from turnkeeper.store.engines.file_tree import Tree

BATCH_INTENTS: Final = 64
BATCH_BYTES: Final = 4 << 20

Say = Callable[[str], None]


@dataclass
class MigrationReport:
    """What a run of the migrations did, did not do, and could not do."""

    before: int
    after: int
    written: dict[str, int] = field(default_factory=dict)
    """Documents by the first segment of their keys."""
    dropped_parts: int = 0
    """Parts of first-generation messages that have no place in the shape that came after."""
    skipped: list[str] = field(default_factory=list)
    """What was left where it is, and why."""
    failures: list[str] = field(default_factory=list)
    """Why a step did not come to its end. It runs again at the next opening."""


async def migrate(
    storage_dir: Path,
    *,
    project_dir: Path | None = None,
    report: Say | None = None,
    root_commits: RootCommits = git_root_commits,
    keep_unresolved: bool = False,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> MigrationReport:
    """Bring the tree in ``storage_dir`` to the newest shape, with the sessions of the old trees in ``project_dir``.

    ``project_dir`` is the directory beside one that is called ``storage``, unless given. ``report`` is told what is
    skipped and what fails, as it happens. Sessions of a project whose worktree or commits are gone are skipped, or kept
    under the project ``global``.
    """
    tree = Tree(str(storage_dir.absolute()))
    options = Options(project_dir, report, root_commits, keep_unresolved, now_ms)

    def run() -> MigrationReport:
        tree.open()
        done = migrate_tree(tree, options)
        tree.checkpoint()
        return done

    return await anyio.to_thread.run_sync(run)


@dataclass(frozen=True)
class Options:
    """How to migrate; see ``migrate``."""

    project_dir: Path | None = None
    report: Say | None = None
    root_commits: RootCommits = git_root_commits
    keep_unresolved: bool = False
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000


def migrate_tree(tree: Tree, options: Options | None = None) -> MigrationReport:
    """Run the steps an open tree has not seen yet, once even if several processes come at the same time."""
    done = _marker(tree)
    if done >= len(STEPS):
        return MigrationReport(done, done)
    with tree.writing():
        done = _marker(tree)
        migration = Migration(tree, options or Options(), MigrationReport(done, done))
        for number, step in enumerate(STEPS[done:], done + 1):
            try:
                crash_point("files.migration-begun")
                step(migration)
                migration.flush()
                crash_point("files.migration-written")
                tree.disk.replace(f"{tree.directory}/{MARKER}", f"{tree.own}/{MARKER}", b"%d" % number)
                crash_point("files.migration-marked")
            except Exception as error:  # Whatever it was, the store must open, and doctor must say so.
                migration.fail(f"migration {number} stopped, and runs again at the next opening: {error}")
                break
            migration.report.after = number
        return migration.report


class Migration:
    """One run of the steps: collects documents and writes them in batches."""

    def __init__(self, tree: Tree, options: Options, report: MigrationReport) -> None:
        self.tree, self.options, self.report = tree, options, report
        directory = Path(tree.directory)
        beside = directory.parent / "project" if directory.name == "storage" else None
        self.project_dir = options.project_dir or beside
        self._intents: list[Intent] = []
        self._bytes = 0

    def skip(self, what: str) -> None:
        """Say that something stays where it is."""
        self.report.skipped.append(what)
        self._say(what)

    def fail(self, what: str) -> None:
        """Say that a step did not come to its end."""
        self.report.failures.append(what)
        self._say(what)

    def add(self, documents: dict[str, bytes]) -> None:
        """Write documents together, except those that are already there."""
        new: list[tuple[str, bytes | None]] = []
        for place, body in documents.items():
            held = self.tree.documents.read(place)
            if held is None:
                new.append((place, body))
            elif held != body:
                self.skip(f"{place} is already there with another content, which is kept")
        self.replace(new)

    def replace(self, documents: list[tuple[str, bytes | None]]) -> None:
        """Write documents together, over what is there."""
        for place, body in documents:
            kind = place.partition("/")[0]
            self.report.written[kind] = self.report.written.get(kind, 0) + 1
            self._bytes += len(body or b"")
        if documents:
            self._intents.append(Intent(documents=documents))
        if len(self._intents) >= BATCH_INTENTS or self._bytes > BATCH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Commit what was collected."""
        if self._intents:
            self.tree.write(self._intents)
            crash_point("files.migration-batch")
        self._intents, self._bytes = [], 0

    def _say(self, what: str) -> None:
        if self.options.report is not None:
            self.options.report(what)


def restructure(migration: Migration) -> None:
    """Step 1: the sessions of each project's own tree move under the project's id, into one tree."""
    if migration.project_dir is None:
        return
    for project in project_trees(migration.project_dir, migration.skip):
        try:
            project_id, worktree = project.identity(migration.options.root_commits)
        except Unresolved as reason:
            if not migration.options.keep_unresolved:
                migration.skip(f"{project.directory} is left as it is: {reason}")
                continue
            project_id, worktree = "global", "/"
        now = migration.options.now_ms()
        place = f"project/{project_id}"
        if migration.tree.documents.read(place) is None:
            vcs = {} if project_id == "global" else {"vcs": "git"}
            times = {"created": now, "initialized": now}
            value = {"id": project_id, **vcs, "worktree": worktree, "time": times}
            migration.add({place: msgspec.json.encode(value)})
            migration.flush()
        for documents, dropped in project.sessions(project_id):
            migration.add(documents)
            migration.report.dropped_parts += dropped


def extract_diffs(migration: Migration) -> None:
    """Step 2: the file diffs of a session move from its summary into a document of their own."""
    for place in list(migration.tree.documents.listings.walk("session", None, None, reverse=False)):
        if place.count("/") != 2:
            continue
        try:
            session = msgspec.json.decode(migration.tree.documents.read(place) or b"null")
        except (msgspec.DecodeError, StoreUnavailable) as error:
            migration.skip(f"{place} is left as it is: {error}")
            continue
        match session:
            case {"id": str(session_id), "projectID": str(), "summary": {"diffs": list(diffs)}}:
                _extract(migration, place, session, f"session_diff/{session_id}", diffs)


def _extract(migration: Migration, place: str, session: JsonObject, diff_place: str, diffs: list[JsonObject]) -> None:
    if not all(isinstance(diff, dict) and _is_counted(diff) for diff in diffs):
        migration.skip(f"{place} keeps its diffs: one of them does not say how many lines it adds and deletes")
        return
    body = msgspec.json.encode(diffs)
    held = migration.tree.documents.read(diff_place)
    if held is not None and held != body:
        migration.skip(f"{place} keeps its diffs: {diff_place} is already there with others")
        return
    summary = {key: value for key, value in session["summary"].items() if key != "diffs"}
    summary["additions"] = sum(diff["additions"] for diff in diffs)
    summary["deletions"] = sum(diff["deletions"] for diff in diffs)
    summary.setdefault("files", len(diffs))
    changed = msgspec.json.encode({**session, "summary": summary})
    migration.replace([(diff_place, body), (place, changed)])


def _is_counted(diff: JsonObject) -> bool:
    return all(isinstance(diff.get(key), int | float) for key in ("additions", "deletions"))


def _marker(tree: Tree) -> int:
    try:
        text = Path(tree.directory, MARKER).read_text("utf-8", "replace")
    except FileNotFoundError:
        return 0
    number = re.match(r"\s*(\d+)", text)
    return int(number[1]) if number else 0


STEPS: Final[tuple[Callable[[Migration], None], ...]] = (restructure, extract_diffs)
