"""The tables of a SQLite store, and the application's additions to them.

Bodies and values are bytes to the engine but stored as TEXT, so that a person who opens the store sees JSON. They are
written with ``CAST(? AS TEXT)`` and read with ``CAST(... AS BLOB)``, which changes no byte.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import apsw

from turnkeeper.store.engines.sqlite.migrations import STEPS
from turnkeeper.store.engines.sqlite.rows import rows

APPLICATION_ID = 0x544B6570
"""``TKep`` in the header of the file marks a Turnkeeper store."""
SCHEMA = len(STEPS) + 1

TABLES = """
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    fence INTEGER NOT NULL DEFAULT 0
);
-- An entry's id is log.id << 32 | seq: the table needs no other index, and an append to one log touches one page.
-- The length of a log is the seq of its last entry, which is stored nowhere else.
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
-- Older entries, many in one row: one per line, deflated, under the id of the last. "size" is that of the lines.
CREATE TABLE packed (
    id INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    bodies BLOB NOT NULL
);
CREATE TABLE document (
    key TEXT NOT NULL UNIQUE,
    value TEXT NOT NULL
);
-- Documents of the kinds in small_kind. The table is its own index, so each key is stored once.
CREATE TABLE small_document (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE small_kind (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;
-- A text that is written again gets a new id, so the highest id is the newest text.
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
);
-- Words arrive separated and folded (engines/words.py), so the simplest tokenizer suffices; positions are not used.
CREATE VIRTUAL TABLE word USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
-- Changes to the word index that wait, oldest first. The content replaces what the key had before; NULL removes it.
-- A key that ends with a slash removes everything at and below it.
CREATE TABLE word_queue (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    content TEXT
);
"""


class Layout(NamedTuple):
    """The application's settings for its documents."""

    small_kinds: tuple[str, ...] = ()
    """Kinds (first segments of keys) with many small documents, for a table that is its own index. The store records
    them. A kind that is added later is moved when the store is next opened."""
    views: str = ""
    """CREATE VIEW statements for people who read the store with SQL."""
    upgrades: Mapping[int, str] = MappingProxyType({})
    """SQL that changes documents written under a schema to what the next schema expects."""


class ForeignStore(Exception):
    """The file is a database that this program must not write to."""


def schema_of(connection: apsw.Connection) -> int:
    """The schema of the store; 0 if the file is empty. Raises ForeignStore."""
    version = int(connection.pragma("user_version"))
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if connection.pragma("application_id") != APPLICATION_ID and not (is_empty and version == 0):
        raise ForeignStore("it is another program's database; name another place for the store")
    if version < 0:
        raise ForeignStore(f"its user_version is {version}, which no Turnkeeper writes; restore a copy")
    if version > SCHEMA:
        raise ForeignStore(f"it has schema {version} and this Turnkeeper knows {SCHEMA}; upgrade it")
    return version


def small_kinds(connection: apsw.Connection) -> frozenset[str]:
    """The kinds of documents in the table ``small_document``."""
    return frozenset(name for (name,) in rows(tuple[str], connection.execute("SELECT name FROM small_kind")))


def migrate(connection: apsw.Connection, layout: Layout, crash: Callable[[str], None]) -> None:
    """Create the tables, or bring an older store to the newest schema and layout, in one transaction.

    Of several processes that open the store at once, one migrates. If it fails, closing the connection rolls back.
    """
    wanted = set(layout.small_kinds)
    if schema_of(connection) == SCHEMA and wanted <= small_kinds(connection):
        return
    connection.execute("BEGIN IMMEDIATE")
    schema = schema_of(connection)  # Read again: another process may have migrated while this one waited.
    try:
        _bring_up(connection, schema, layout)
    except apsw.SQLError as error:
        raise ForeignStore(
            f"its user_version says that it has schema {schema}, and it has another one ({error}); restore a copy, or "
            f"set the user_version that it had, which is {SCHEMA} if this version of Turnkeeper wrote it"
        ) from error
    for kind in wanted - small_kinds(connection):
        _make_small(connection, kind)
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", SCHEMA)
    crash("sqlite.before-migration")
    connection.execute("COMMIT")
    crash("sqlite.after-migration")


def _bring_up(connection: apsw.Connection, schema: int, layout: Layout) -> None:
    """Create the tables, or run the steps from an earlier schema."""
    if schema == 0:
        connection.execute(TABLES)
    for step in range(schema or SCHEMA, SCHEMA):
        _drop_views(connection)
        connection.execute(STEPS[step - 1])
        connection.execute(layout.upgrades.get(step, ""))
    if schema < SCHEMA:
        connection.execute(layout.views)


def _drop_views(connection: apsw.Connection) -> None:
    """Drop the views, which refer to tables that a step replaces; they are created again at the end."""
    views = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'view'").fetchall()
    for (name,) in rows(tuple[str], views):
        connection.execute(f'DROP VIEW "{name}"')


def _make_small(connection: apsw.Connection, kind: str) -> None:
    place = "WHERE key = :kind OR (key > :kind || '/' AND key < :kind || '0')"
    connection.execute(
        f"INSERT INTO small_document SELECT key, value FROM document {place};"
        f" DELETE FROM document {place}; INSERT INTO small_kind VALUES (:kind)",
        {"kind": kind},
    )
