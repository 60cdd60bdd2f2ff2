"""The two migrations of opencode's JSON tree. The text file ``migration`` in the tree has the number of those done.

They read and write documents through the files engine. A step can run again after a failure or a kill, and in two
processes at a time: existing documents are not replaced, and ids are derived from the migrated data. Old project trees
are only read. A session with a log is skipped, because its documents are derived from the log.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from anyio import to_thread

from turnkeeper.interop.opencode_v0.projects import (
    GLOBAL,
    ProjectTree,
    RootCommits,
    Unresolved,
    git_root_commits,
    project_trees,
)
from turnkeeper.interop.raw import RawObject
from turnkeeper.store.engine import EngineError, Key
from turnkeeper.store.engines.files import FilesEngine, open_files


@dataclass
class MigrationReport:
    """The result of a run of the migrations."""

    before: int
    after: int
    written: dict[str, int] = field(default_factory=dict)
    """The number of written documents by the first segment of their keys."""
    dropped_parts: int = 0
    """The number of old parts that the newer format cannot have."""
    skipped: list[str] = field(default_factory=list)
    """The documents that were not migrated, each with the reason."""
    failures: list[str] = field(default_factory=list)
    """Why a step failed. It runs again when the store is opened next."""


async def migrate(
    directory: Path,
    *,
    project_dir: Path | None = None,
    root_commits: RootCommits = git_root_commits,
    keep_unresolved: bool = False,
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
) -> MigrationReport:
    """Run the steps that were not yet done in a tree, with the old project trees in ``project_dir``.

    The default of ``project_dir`` is ``project`` next to a directory called ``storage``. Sessions of a project whose
    worktree or commits do not exist are skipped, or with ``keep_unresolved`` moved to the project ``global``.
    """
    engine = await open_files(directory)
    done = engine.tree.form() or 0
    beside = directory.parent / "project" if directory.name == "storage" else None
    report = MigrationReport(done, done)
    migration = Migration(engine, report, project_dir or beside, root_commits, keep_unresolved, now_ms)
    try:
        for number, step in enumerate(STEPS[done:], done + 1):
            await step(migration)
            await to_thread.run_sync(engine.tree.set_form, number)
            report.after = number
    except Exception as error:  # The store must open after any error. The marker shows which step has to run again.
        await to_thread.run_sync(engine.tree.set_form, report.after)
        report.failures.append(f"migration {report.after + 1} stopped, and runs again at the next opening: {error}")
    finally:
        await engine.aclose()
    return report


@dataclass
class Migration:
    """A run of the steps, with the options of ``migrate``."""

    engine: FilesEngine
    report: MigrationReport
    project_dir: Path | None
    root_commits: RootCommits
    keep_unresolved: bool
    now_ms: Callable[[], int]

    def skip(self, what: str) -> None:
        """Report a document that is not migrated."""
        self.report.skipped.append(what)

    async def add(self, documents: dict[Key, bytes]) -> None:
        """Write documents in one transaction, except those that exist."""
        held = dict(zip(documents, await self.engine.get(list(documents)), strict=True))
        for key, body in held.items():
            if body not in (None, documents[key]):
                self.skip(f"{'/'.join(key)} is already there with another content, which is kept")
        await self.replace({key: body for key, body in documents.items() if held[key] is None})

    async def replace(self, documents: dict[Key, bytes]) -> None:
        """Write documents in one transaction, replacing those that exist."""
        for kind, *_ in documents:
            self.report.written[kind] = self.report.written.get(kind, 0) + 1
        if documents:
            await self.engine.put(documents)


async def restructure(migration: Migration) -> None:
    """Step 1: copy the sessions of each project tree into the common tree, under the id of the project."""
    if migration.project_dir is None:
        return
    for project in await to_thread.run_sync(project_trees, migration.project_dir, migration.skip):
        try:
            project_id, worktree = await to_thread.run_sync(project.identity, migration.root_commits)
        except Unresolved as reason:
            if not migration.keep_unresolved:
                migration.skip(f"{project.directory} is left as it is: {reason}")
                continue
            project_id, worktree = GLOBAL, "/"
        await _add_project(migration, project_id, worktree)
        await _add_sessions(migration, project, project_id)


async def _add_project(migration: Migration, project_id: str, worktree: str) -> None:
    key = ("project", project_id)
    if await migration.engine.get([key]) == [None]:
        now = migration.now_ms()
        vcs = {} if project_id == GLOBAL else {"vcs": "git"}
        value = {"id": project_id, **vcs, "worktree": worktree, "time": {"created": now, "initialized": now}}
        await migration.add({key: msgspec.json.encode(value)})


async def _add_sessions(migration: Migration, project: ProjectTree, project_id: str) -> None:
    for name in await to_thread.run_sync(project.names):
        if await migration.engine.length(name):
            continue
        documents, dropped = await to_thread.run_sync(project.session, name, project_id)
        await migration.add(documents)
        migration.report.dropped_parts += dropped


async def extract_diffs(migration: Migration) -> None:
    """Step 2: move the file diffs of a session from its summary to a separate document."""
    for key in await migration.engine.keys(("session",)):
        if await migration.engine.length(key[-1]):
            continue
        try:
            [body] = await migration.engine.get([key])
            session = msgspec.json.decode(b"null" if body is None else body)
        except (EngineError, msgspec.DecodeError) as error:
            migration.skip(f"{'/'.join(key)} is left as it is: {error}")
            continue
        match session:
            case {"id": str(session_id), "projectID": str(), "summary": {"diffs": list(diffs)}} if len(key) == 3:
                await _extract(migration, key, session, ("session_diff", session_id), diffs)


async def _extract(migration: Migration, key: Key, session: RawObject, place: Key, diffs: list[RawObject]) -> None:
    if not all(isinstance(diff, dict) and _is_counted(diff) for diff in diffs):
        migration.skip(f"{'/'.join(key)} keeps its diffs: one of them does not say how many lines it adds and deletes")
        return
    body = msgspec.json.encode(diffs)
    [held] = await migration.engine.get([place])
    if held is not None and held != body:
        migration.skip(f"{'/'.join(key)} keeps its diffs: {'/'.join(place)} is already there with others")
        return
    summary = {key: value for key, value in session["summary"].items() if key != "diffs"}
    summary["additions"] = sum(diff["additions"] for diff in diffs)
    summary["deletions"] = sum(diff["deletions"] for diff in diffs)
    summary.setdefault("files", len(diffs))
    await migration.replace({place: body, key: msgspec.json.encode({**session, "summary": summary})})


def _is_counted(diff: RawObject) -> bool:
    return all(isinstance(diff.get(key), int | float) for key in ("additions", "deletions"))


STEPS: Final[tuple[Callable[[Migration], Awaitable[None]], ...]] = (restructure, extract_diffs)
