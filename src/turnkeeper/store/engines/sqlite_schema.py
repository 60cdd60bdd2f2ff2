"""The tables of a SQLite store, its numbered migrations, and the views for people with the sqlite3 shell.

Bodies are kept as TEXT although they are bytes to us: a person who opens the store sees JSON, and the views
can look into it. They are written with ``CAST(? AS TEXT)`` and read with ``CAST(... AS BLOB)``, which changes
no byte.
"""

from collections.abc import Callable

import apsw

APPLICATION_ID = 0x544B6570
"""``TKep`` in the header of the file: this is a Turnkeeper store and nobody else's database."""

_TABLES = """
CREATE TABLE log (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    fence INTEGER NOT NULL DEFAULT 0
);
-- Rows lie in the order of arrival, whatever their log: a group of appends then fills few pages, where
-- clustering by log would touch one page for each. The length of a log is its highest seq, kept nowhere else.
CREATE TABLE entry (
    log INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE UNIQUE INDEX entry_by_log ON entry (log, seq);
CREATE TABLE document (
    key TEXT NOT NULL UNIQUE,
    value TEXT NOT NULL
);
-- A text that is written again gets a new id, so the highest id is the newest text.
CREATE TABLE text (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
);
-- The words arrive cut and folded (words.py), so the plainest tokenizer does; positions are never asked for.
CREATE VIRTUAL TABLE word USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
"""

_VIEWS = """
CREATE VIEW session AS SELECT
    json_extract(value, '$.id') AS id,
    json_extract(value, '$.projectID') AS project_id,
    json_extract(value, '$.parentID') AS parent_id,
    json_extract(value, '$.slug') AS slug,
    json_extract(value, '$.title') AS title,
    json_extract(value, '$.directory') AS directory,
    json_extract(value, '$.time.created') AS time_created,
    json_extract(value, '$.time.updated') AS time_updated,
    json_extract(value, '$.time.archived') AS time_archived,
    value AS document
FROM document WHERE key > 'session/' AND key < 'session0';

CREATE VIEW message AS SELECT
    json_extract(value, '$.id') AS id,
    json_extract(value, '$.sessionID') AS session_id,
    json_extract(value, '$.seq') AS seq,
    json_extract(value, '$.role') AS role,
    json_extract(value, '$.agent') AS agent,
    coalesce(json_extract(value, '$.providerID'), json_extract(value, '$.model.providerID')) AS provider_id,
    coalesce(json_extract(value, '$.modelID'), json_extract(value, '$.model.modelID')) AS model_id,
    json_extract(value, '$.cost') AS cost,
    json_extract(value, '$.tokens.input') AS tokens_input,
    json_extract(value, '$.tokens.output') AS tokens_output,
    json_extract(value, '$.error.name') AS error,
    json_extract(value, '$.time.created') AS time_created,
    json_extract(value, '$.time.completed') AS time_completed,
    value AS document
FROM document WHERE key > 'message/' AND key < 'message0';

CREATE VIEW part AS SELECT
    json_extract(value, '$.id') AS id,
    json_extract(value, '$.sessionID') AS session_id,
    json_extract(value, '$.messageID') AS message_id,
    json_extract(value, '$.seq') AS seq,
    json_extract(value, '$.type') AS type,
    json_extract(value, '$.text') AS text,
    json_extract(value, '$.tool') AS tool,
    json_extract(value, '$.callID') AS call_id,
    json_extract(value, '$.state.status') AS status,
    json_extract(value, '$.cost') AS cost,
    value AS document
FROM document WHERE key > 'part/' AND key < 'part0';

CREATE VIEW event AS SELECT
    log.name AS session_id,
    entry.seq AS seq,
    json_extract(entry.body, '$.time') AS time,
    json_extract(entry.body, '$.type') AS type,
    json_extract(entry.body, '$.data') AS data,
    json_extract(entry.body, '$.prev') AS prev,
    entry.body AS document
FROM log JOIN entry ON entry.log = log.id;
"""

SMALL = ("blobused", "blobuser", "busy", "fork", "ledger", "order", "receipt", "recent")
"""Kinds of documents (the first segment of their keys) that are many and small. Their table is its own index, so that
a key is stored once. Which they are is part of the schema: to move a kind is a migration."""
_SMALL = frozenset(SMALL)

_COMPACT = f"""
CREATE TABLE small (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
-- Texts whose words are not in the index yet: they are put there many at a time.
CREATE TABLE fresh (
    id INTEGER PRIMARY KEY,
    said TEXT NOT NULL
);
-- Older entries of a log, a run of them in one row: a line each, deflated.
CREATE TABLE packed (
    log INTEGER NOT NULL,
    last INTEGER NOT NULL,
    size INTEGER NOT NULL,
    bodies BLOB NOT NULL
);
CREATE UNIQUE INDEX packed_by_log ON packed (log, last);

DELETE FROM document WHERE key > 'receipted/' AND key < 'receipted0';
-- A session stands in one list of each scope, not in one for all and in another for most.
DELETE FROM document WHERE key > 'recent/' AND key < 'recent0' AND key LIKE '%/all/%'
    AND EXISTS (SELECT 1 FROM document AS twin WHERE twin.key = replace(document.key, '/all/', '/listed/'));
UPDATE document SET key = replace(key, '/all/', '/unlisted/')
    WHERE key > 'recent/' AND key < 'recent0' AND key LIKE '%/all/%';
INSERT INTO small SELECT key, value FROM document WHERE substr(key, 1, instr(key, '/') - 1) IN {SMALL};
DELETE FROM document WHERE substr(key, 1, instr(key, '/') - 1) IN {SMALL};

DROP VIEW event;
CREATE VIEW event_tail AS SELECT
    log.name AS session_id,
    entry.seq AS seq,
    json_extract(entry.body, '$.time') AS time,
    json_extract(entry.body, '$.type') AS type,
    json_extract(entry.body, '$.data') AS data,
    json_extract(entry.body, '$.prev') AS prev,
    entry.body AS document
FROM log JOIN entry ON entry.log = log.id;
-- The function is one of the sqlite3 shell's; elsewhere event_tail shows what is not packed.
CREATE VIEW event AS SELECT
    log.name AS session_id,
    json_extract(one.value, '$.seq') AS seq,
    json_extract(one.value, '$.time') AS time,
    json_extract(one.value, '$.type') AS type,
    json_extract(one.value, '$.data') AS data,
    json_extract(one.value, '$.prev') AS prev,
    one.value AS document
FROM log JOIN packed ON packed.log = log.id
JOIN json_each('[' || replace(CAST(sqlar_uncompress(packed.bodies, packed.size) AS TEXT), char(10), ',') || ']') AS one
UNION ALL SELECT * FROM event_tail;
"""

_CLUSTERED = """
DROP VIEW event;
DROP VIEW event_tail;
-- The number of a row says whose it is and where: log << 32 | seq. So the table is its own index, and an append to one
-- log touches one page of it.
ALTER TABLE entry RENAME TO entry_2;
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
INSERT INTO entry SELECT log << 32 | seq, body FROM entry_2 ORDER BY 1;
DROP TABLE entry_2;
-- The same for runs, each under the number of its last entry.
ALTER TABLE packed RENAME TO packed_2;
CREATE TABLE packed (
    id INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    bodies BLOB NOT NULL
);
INSERT INTO packed SELECT log << 32 | last, size, bodies FROM packed_2 ORDER BY 1;
DROP TABLE packed_2;
-- What is to happen to the index of words, in order: a text takes the place of what its key said before; without one,
-- what the key said is gone; and if the key ends with a slash, so is all at and below it.
ALTER TABLE fresh RENAME TO fresh_2;
CREATE TABLE fresh (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    said TEXT
);
INSERT INTO fresh (key, said) SELECT key, said FROM fresh_2 JOIN text USING (id) ORDER BY id;
DELETE FROM text WHERE id IN (SELECT id FROM fresh_2);
DROP TABLE fresh_2;

CREATE VIEW event_tail AS SELECT
    log.name AS session_id,
    entry.id & 4294967295 AS seq,
    json_extract(entry.body, '$.time') AS time,
    json_extract(entry.body, '$.type') AS type,
    json_extract(entry.body, '$.data') AS data,
    json_extract(entry.body, '$.prev') AS prev,
    entry.body AS document
FROM log JOIN entry ON entry.id BETWEEN log.id << 32 AND log.id << 32 | 4294967295;
-- The function is one of the sqlite3 shell's; elsewhere event_tail shows what is not packed.
CREATE VIEW event AS SELECT
    log.name AS session_id,
    json_extract(one.value, '$.seq') AS seq,
    json_extract(one.value, '$.time') AS time,
    json_extract(one.value, '$.type') AS type,
    json_extract(one.value, '$.data') AS data,
    json_extract(one.value, '$.prev') AS prev,
    one.value AS document
FROM log JOIN packed ON packed.id BETWEEN log.id << 32 AND log.id << 32 | 4294967295
JOIN json_each('[' || replace(CAST(sqlar_uncompress(packed.bodies, packed.size) AS TEXT), char(10), ',') || ']') AS one
UNION ALL SELECT * FROM event_tail;
"""

MIGRATIONS: tuple[str, ...] = (_TABLES + _VIEWS, _COMPACT, _CLUSTERED)
"""Step ``n`` leads from schema ``n`` to ``n + 1``. A released step is never edited, only followed."""


_SEQ_BITS = 32
SEQ_MAX = (1 << _SEQ_BITS) - 1
"""The last entry that a log may have."""


def row(log: int, seq: int) -> int:
    """The number of the row that holds an entry of a log, or the run that ends with it."""
    return log << _SEQ_BITS | seq


def behind(log: int, seq: int) -> tuple[int, int]:
    """The numbers of the rows of a log behind an entry: above the first of these two, up to the second."""
    return row(log, min(seq, SEQ_MAX)), row(log, SEQ_MAX)


def seq_of(number: int | None) -> int:
    """The place in its log of a row; 0 if there is none."""
    return number & SEQ_MAX if number is not None else 0


def table_of(place: str) -> str:
    """The table that holds the document under a path, and all below it."""
    return "small" if place.partition("/")[0] in _SMALL else "document"


class ForeignStore(Exception):
    """The file is a database, but not one this program may write to."""


def migrate(connection: apsw.Connection, crash: Callable[[str], None]) -> None:
    """Bring the store to the newest schema. Of several processes that open it at once, one does the work.

    If it fails, closing the connection takes back what was begun.
    """
    if schema(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    # Asked again: another process may have migrated while this one waited for the lock.
    version = schema(connection)
    try:
        for step in MIGRATIONS[version:]:
            connection.execute(step)
    except apsw.SQLError as error:
        raise ForeignStore(
            f"its user_version says that it has schema {version}, and it has another one ({error}); restore a copy, "
            f"or set the user_version that it had, which is {len(MIGRATIONS)} if this version of Turnkeeper wrote it"
        ) from error
    connection.pragma("application_id", APPLICATION_ID)
    connection.pragma("user_version", len(MIGRATIONS))
    crash("sqlite.before-migration")
    connection.execute("COMMIT")
    crash("sqlite.after-migration")


def schema(connection: apsw.Connection) -> int:
    """The schema the store has, after making sure that it is ours."""
    version = int(connection.pragma("user_version"))
    is_empty = connection.execute("SELECT count(*) FROM sqlite_schema").get == 0
    if connection.pragma("application_id") != APPLICATION_ID and not (is_empty and version == 0):
        raise ForeignStore("it is another program's database; name another place for the store")
    if version < 0:
        raise ForeignStore(f"its user_version is {version}, which no Turnkeeper writes; restore a copy")
    if version > len(MIGRATIONS):
        raise ForeignStore(f"it has schema {version} and this Turnkeeper knows {len(MIGRATIONS)}; upgrade it")
    return version
