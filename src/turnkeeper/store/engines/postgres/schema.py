"""The tables of a Postgres store, how they are created, and how an older store is brought to the newest schema.

Bodies and values are BYTEA, because an engine stores any bytes; the views of the application show them as JSON. Keys
and names are compared by their bytes (collation "C"), which is the order that engines promise.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Final, NamedTuple

import psycopg
from psycopg import errors, sql

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.postgres.connection import Connection, Database

TABLES: Final = b"""
CREATE TABLE meta (
    name text PRIMARY KEY,
    value text NOT NULL
);
CREATE TABLE log (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    length bigint NOT NULL DEFAULT 0,
    fence bigint NOT NULL DEFAULT 0,
    -- The SHA-256 of the newest entry: what the writer believes to be the newest is compared with it under the lock.
    last bytea
);
CREATE TABLE entry (
    log bigint NOT NULL,
    seq bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (log, seq)
);
CREATE TABLE document (
    key text COLLATE "C" PRIMARY KEY,
    value bytea NOT NULL
);
-- The words of each text. A text that is written again gets a new id, so the highest id is the newest text. A long
-- text has its words in several rows, numbered from 1; that of a short one is number 0.
CREATE SEQUENCE word_id;
CREATE TABLE word (
    key text COLLATE "C" NOT NULL,
    piece smallint NOT NULL,
    id bigint NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (key, piece)
);
CREATE INDEX word_by_words ON word USING gin (words);
CREATE INDEX word_of_long_text ON word (key) WHERE piece > 0;
-- One row for each process that writes. It is locked first in each transaction of that process and holds the token of
-- its last one: after a lost acknowledgement the row says whether that transaction was committed.
CREATE TABLE writer (
    id bytea PRIMARY KEY,
    count bigint NOT NULL,
    token bytea NOT NULL,
    seen timestamptz NOT NULL
);
"""

STEPS: Final[tuple[bytes, ...]] = ()
"""Migrations: the first step leads from schema 1 to schema 2. A released step is never changed."""
SCHEMA: Final = len(STEPS) + 1
MIGRATION_TIMEOUT: Final = "10min"


class Layout(NamedTuple):
    """The application's settings for its documents."""

    views: bytes = b""
    """CREATE VIEW and CREATE FUNCTION statements for people who read the store with SQL."""
    view_names: tuple[str, ...] = ()


def lock_number(schema: str, purpose: str) -> int:
    """The number of an advisory lock of a store. Such locks belong to the database, which may hold more stores."""
    digest = sha256(f"turnkeeper {purpose} {schema}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def migrate(database: Database, connection: Connection, layout: Layout) -> None:
    """Create the tables, or bring an older store to the newest schema, in one transaction.

    Of several hosts that open the store at once, one migrates and the others wait for it. Raises StoreUnavailable.
    """
    if _schema_of(database, connection) == SCHEMA:
        return
    _require_utf8(database, connection)
    with migrating(database, connection):
        schema = _schema_of(database, connection)  # Read again: another host may have migrated meanwhile.
        if schema < SCHEMA:
            _bring_up(database, connection, schema, layout)


@contextmanager
def migrating(database: Database, connection: Connection) -> Iterator[None]:
    """A transaction that changes tables. Of several hosts one at a time is in it; the others wait for it."""
    connection.execute("BEGIN")
    try:
        connection.execute(
            "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true)",
            (MIGRATION_TIMEOUT, MIGRATION_TIMEOUT),
        )
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (lock_number(database.address.schema, "migration"),))
        yield
        database.crash("postgres.before-migration")
        connection.execute("COMMIT")
        database.crash("postgres.after-migration")
    except psycopg.Error:
        if not connection.closed:
            connection.execute("ROLLBACK")
        raise


def _bring_up(database: Database, connection: Connection, schema: int, layout: Layout) -> None:
    if schema == 0:
        name = sql.Identifier(database.address.schema)
        found = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (database.address.schema,))
        if found.fetchone() is None:
            connection.execute(sql.SQL("CREATE SCHEMA {}").format(name))
        connection.execute(TABLES)
    for step in STEPS[max(schema, 1) - 1 :] if schema else ():
        connection.execute(step)
    for view in layout.view_names:
        connection.execute(sql.SQL("DROP VIEW IF EXISTS {} CASCADE").format(sql.Identifier(view)))
    connection.execute(layout.views)
    connection.execute(
        "INSERT INTO meta VALUES ('schema', %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value", (str(SCHEMA),)
    )


def _schema_of(database: Database, connection: Connection) -> int:
    """The schema of the store; 0 if there is none yet. Raises StoreUnavailable for tables of another program."""
    name, shown = f'"{database.address.schema}"', database.address.shown
    # Looked up before it is read: an error would end the transaction.
    [(has_meta, relations)] = connection.execute(
        "SELECT to_regclass(%s) IS NOT NULL, (SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace(%s))",
        (f"{name}.meta", name),
    ).fetchall()
    if not relations:
        return 0
    row = None
    if has_meta:
        with suppress(errors.UndefinedColumn):
            row = connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
    if row is None or not str(row[0]).isdigit():
        raise StoreUnavailable(
            f"the store {shown!r}: the schema {database.address.schema!r} holds another program's tables; name another "
            "one with '?schema=NAME'"
        )
    version = int(row[0])
    if version > SCHEMA:
        raise StoreUnavailable(
            f"the store {shown!r}: it has schema {version} and this Turnkeeper knows {SCHEMA}; upgrade it"
        )
    return version


def _require_utf8(database: Database, connection: Connection) -> None:
    encoding = connection.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raise StoreUnavailable(
            f"the store {database.address.shown!r}: the database has the encoding {encoding}, and keys are UTF-8; "
            "create one with `createdb --encoding UTF8 --template template0`"
        )
