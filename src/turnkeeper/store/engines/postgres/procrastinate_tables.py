"""Procrastinate in the schema of a store: its tables, and a connector over the store's connections.

This module imports Procrastinate, so it is loaded when a process first adds or takes a job.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import NoResult, UniqueViolation
from procrastinate.schema import SchemaManager
from psycopg import errors
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.postgres.connection import Connection, Cursor, Database
from turnkeeper.store.engines.postgres.schema import migrating

META: Final = "procrastinate"
"""The row of ``meta`` that names the newest of Procrastinate's own migrations that the tables have."""

T = TypeVar("T")
Read = Callable[[Callable[[Connection], T]], Awaitable[T]]


def prepare(database: Database, connection: Connection) -> None:
    """Create Procrastinate's tables in the schema of the store, or bring them to the installed version.

    Of several hosts that do so at once, one does it and the others wait, as with the tables of the store.
    """
    migrations = sorted(Path(SchemaManager.get_migrations_path()).glob("*.sql"))
    newest = migrations[-1].name
    if _done(connection) >= newest:
        return
    with migrating(database, connection):
        done = _done(connection)  # Read again: another host may have been first.
        if not done:
            connection.execute(SchemaManager.get_schema().encode())
        for step in migrations if done else ():
            if step.name > done:
                connection.execute(step.read_bytes())
        if done < newest:
            connection.execute(
                "INSERT INTO meta VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (META, newest),
            )


def _done(connection: Connection) -> str:
    row = connection.execute("SELECT value FROM meta WHERE name = %s", (META,)).fetchone()
    return "" if row is None else str(row[0])


class StoreConnector(BaseAsyncConnector):
    """Runs the statements of Procrastinate on the threads of the store.

    They connect again after a loss, and a statement may then run twice. None of those that are used here minds: an
    added job is not added again, a finished one is not found, and one that was taken unnoticed is returned.
    """

    def __init__(self, read: Read[Any]) -> None:
        self._read = read

    # The types of arguments and rows are those of Procrastinate's own statements.
    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        """Run a statement."""
        await self._run(query, arguments, lambda cursor: None)

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        """The first row of a statement."""
        row = await self._run(query, arguments, lambda cursor: cursor.fetchone())
        if row is None:
            raise NoResult
        return dict(row)

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        """The rows of a statement."""
        return list(await self._run(query, arguments, lambda cursor: cursor.fetchall()))

    async def _run(self, query: str, arguments: dict[str, Any], rows: Callable[[Cursor], Any]) -> Any:
        given = {name: _adapted(value) for name, value in arguments.items()}

        def work(connection: Connection) -> Any:
            with connection.cursor(row_factory=dict_row) as cursor:
                cursor.execute(query.encode(), given)
                return rows(cursor)  # type: ignore[arg-type] # Rows are dicts here.

        try:
            return await self._read(work)
        except StoreUnavailable as error:
            if isinstance(error.__cause__, errors.UniqueViolation):
                name = error.__cause__.diag.constraint_name
                raise UniqueViolation(constraint_name=name, queueing_lock=None) from error
            raise


def _adapted(value: Any) -> Any:
    """A value as the driver takes it: objects are JSON."""
    match value:
        case dict():
            return Jsonb(value)
        case list():
            return [_adapted(one) for one in value]
        case tuple():
            return tuple(_adapted(one) for one in value)
        case _:
            return value
