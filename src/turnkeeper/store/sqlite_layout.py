"""The SQLite layout of sessions: kinds of small documents, SQL views, and upgrades of older stores."""

from functools import partial

from turnkeeper.store.engines.sqlite import Layout, SqliteEngine

SMALL_KINDS = ("blobused", "blobuser", "busy", "fork", "ledger", "order", "receipt", "recent")

VIEWS = """
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

-- The newest events of each session: those that are not packed.
CREATE VIEW event_tail AS SELECT
    log.name AS session_id,
    entry.id & 4294967295 AS seq,
    json_extract(entry.body, '$.time') AS time,
    json_extract(entry.body, '$.type') AS type,
    json_extract(entry.body, '$.data') AS data,
    json_extract(entry.body, '$.prev') AS prev,
    entry.body AS document
FROM log JOIN entry ON entry.id BETWEEN log.id << 32 AND log.id << 32 | 4294967295;

-- All events. The function sqlar_uncompress belongs to the sqlite3 shell; other programs have event_tail.
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

_FROM_SCHEMA_1 = """
DELETE FROM document WHERE key > 'receipted/' AND key < 'receipted0';
-- A session is in one list of each scope (listed or unlisted), no longer in "all" and in "listed".
DELETE FROM document WHERE key > 'recent/' AND key < 'recent0' AND key LIKE '%/all/%'
    AND EXISTS (SELECT 1 FROM document AS twin WHERE twin.key = replace(document.key, '/all/', '/listed/'));
UPDATE document SET key = replace(key, '/all/', '/unlisted/')
    WHERE key > 'recent/' AND key < 'recent0' AND key LIKE '%/all/%';
"""

LAYOUT = Layout(small_kinds=SMALL_KINDS, views=VIEWS, upgrades={1: _FROM_SCHEMA_1})

open_sqlite = partial(SqliteEngine.open, layout=LAYOUT)
"""Open the store of sessions in a file, or create it. The options are those of ``SqliteEngine.open``."""
