"""Find and import the history of an opencode installation: its databases first, then sessions only its trees have."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from anyio import to_thread

from turnkeeper.interop.importer import Importer
from turnkeeper.interop.opencode_db import Moved, open_database
from turnkeeper.interop.opencode_tree import OpencodeTree
from turnkeeper.interop.report import ImportReport, ProgressReport
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.store.store import Store
from turnkeeper.workspace import paths


async def import_opencode(store: Store, path: Path, *, progress: ProgressReport | None = None) -> ImportReport:
    """Import a database, a ``storage`` tree, or the data directory with both. The source is not changed."""
    importer = Importer(store, progress)
    if not path.exists():
        raise NotFound(f"there is nothing at {path}; name opencode's data directory or its database")
    if path.is_file():
        await _database(importer, path)
        return importer.tally.report(str(path))
    databases = sorted(path.glob("opencode*.db"))
    data = path.parent if path.name == "storage" and not databases else path
    if not databases and not any((data / name).is_dir() for name in ("storage/session", "project")):
        raise Invalid(f"{path} holds no history of opencode: neither opencode.db nor storage/session nor project")
    for database in databases:
        await _database(importer, database)
    await importer.take(OpencodeTree(data))
    return importer.tally.report(str(path))


def default_path(environ: Mapping[str, str]) -> Path:
    """The database or data directory of opencode on this machine."""
    database = paths.opencode_database(environ)
    if environ.get("OPENCODE_DB") and database is not None:
        return database
    return paths.data(environ, paths.OPENCODE)


async def _database(importer: Importer, path: Path) -> None:
    try:
        await _take(importer, path, is_written=False)
    except Moved:
        # Another process began to write. The importer skips the sessions that it has already imported.
        await _take(importer, path, is_written=True)


async def _take(importer: Importer, path: Path, *, is_written: bool) -> None:
    source = await to_thread.run_sync(partial(open_database, path, is_written=is_written))
    try:
        await importer.take(source)
    finally:
        source.close()
