"""Migrations from each earlier schema of a SQLite store to the next. A released step is never changed."""

_PACKED_ENTRIES_AND_SMALL_DOCUMENTS = """
CREATE TABLE small (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE fresh (
    id INTEGER PRIMARY KEY,
    said TEXT NOT NULL
);
CREATE TABLE packed (
    log INTEGER NOT NULL,
    last INTEGER NOT NULL,
    size INTEGER NOT NULL,
    bodies BLOB NOT NULL
);
CREATE UNIQUE INDEX packed_by_log ON packed (log, last);
"""

_ENTRIES_CLUSTERED_BY_LOG = """
ALTER TABLE entry RENAME TO entry_2;
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
INSERT INTO entry SELECT log << 32 | seq, body FROM entry_2 ORDER BY 1;
DROP TABLE entry_2;
ALTER TABLE packed RENAME TO packed_2;
CREATE TABLE packed (
    id INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    bodies BLOB NOT NULL
);
INSERT INTO packed SELECT log << 32 | last, size, bodies FROM packed_2 ORDER BY 1;
DROP TABLE packed_2;
ALTER TABLE fresh RENAME TO fresh_2;
CREATE TABLE fresh (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL,
    said TEXT
);
INSERT INTO fresh (key, said) SELECT key, said FROM fresh_2 JOIN text USING (id) ORDER BY id;
DELETE FROM text WHERE id IN (SELECT id FROM fresh_2);
DROP TABLE fresh_2;
"""

_SMALL_KINDS_RECORDED = """
ALTER TABLE small RENAME TO small_document;
ALTER TABLE fresh RENAME TO word_queue;
ALTER TABLE word_queue RENAME COLUMN said TO content;
CREATE TABLE small_kind (
    name TEXT PRIMARY KEY
) WITHOUT ROWID;
INSERT INTO small_kind SELECT DISTINCT substr(key, 1, instr(key || '/', '/') - 1) FROM small_document;
"""

STEPS: tuple[str, ...] = (
    _PACKED_ENTRIES_AND_SMALL_DOCUMENTS,
    _ENTRIES_CLUSTERED_BY_LOG,
    _SMALL_KINDS_RECORDED,
)
"""The first step leads from schema 1 to schema 2."""
