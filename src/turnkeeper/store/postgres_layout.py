"""The Postgres layout of sessions: SQL views for people's own queries, and how such a store is opened."""

from typing import TYPE_CHECKING, Final

from turnkeeper.store.engine_table import shown_store

if TYPE_CHECKING:
    from turnkeeper.store.engines.postgres import PostgresEngine

VIEW_NAMES: Final = ("session", "message", "part", "usage", "event")

VIEWS: Final = b"""
-- A document as JSON, or NULL if it is none. Postgres has no place for the character NUL, so it is shown as U+FFFD.
CREATE OR REPLACE FUNCTION as_json(document bytea) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN convert_from(document, 'UTF8')::jsonb;
EXCEPTION
    WHEN untranslatable_character THEN
        RETURN replace(convert_from(document, 'UTF8'), '\\u0000', '\\ufffd')::jsonb;
    WHEN OTHERS THEN
        RETURN NULL;
END
$$;

-- Milliseconds since 1970 as a time.
CREATE OR REPLACE FUNCTION as_time(milliseconds jsonb) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$ SELECT to_timestamp(milliseconds::double precision / 1000) $$;

CREATE VIEW session AS SELECT
    value ->> 'id' AS id,
    value ->> 'projectID' AS project_id,
    value ->> 'parentID' AS parent_id,
    value ->> 'slug' AS slug,
    value ->> 'title' AS title,
    value ->> 'directory' AS directory,
    as_time(value #> '{time,created}') AS time_created,
    as_time(value #> '{time,updated}') AS time_updated,
    as_time(value #> '{time,archived}') AS time_archived,
    value AS document
FROM (SELECT as_json(value) AS value FROM document WHERE key > 'session/' AND key < 'session0') AS one;

CREATE VIEW message AS SELECT
    value ->> 'id' AS id,
    value ->> 'sessionID' AS session_id,
    (value ->> 'seq')::bigint AS seq,
    value ->> 'role' AS role,
    value ->> 'agent' AS agent,
    coalesce(value ->> 'providerID', value #>> '{model,providerID}') AS provider_id,
    coalesce(value ->> 'modelID', value #>> '{model,modelID}') AS model_id,
    (value ->> 'cost')::numeric AS cost,
    (value #>> '{tokens,input}')::bigint AS tokens_input,
    (value #>> '{tokens,output}')::bigint AS tokens_output,
    value #>> '{error,name}' AS error,
    as_time(value #> '{time,created}') AS time_created,
    as_time(value #> '{time,completed}') AS time_completed,
    value AS document
FROM (SELECT as_json(value) AS value FROM document WHERE key > 'message/' AND key < 'message0') AS one;

-- Text that is still being streamed into a part stands below it, under keys of its own.
CREATE VIEW part AS SELECT
    value ->> 'id' AS id,
    value ->> 'sessionID' AS session_id,
    value ->> 'messageID' AS message_id,
    (value ->> 'seq')::bigint AS seq,
    value ->> 'type' AS type,
    value ->> 'text' AS text,
    value ->> 'tool' AS tool,
    value ->> 'callID' AS call_id,
    value #>> '{state,status}' AS status,
    value AS document
FROM (
    SELECT as_json(value) AS value FROM document
    WHERE key > 'part/' AND key < 'part0' AND split_part(key, '/', 4) = ''
) AS one;

-- What each attempt at a request used and cost, also a failed one.
CREATE VIEW usage AS SELECT
    value ->> 'sessionID' AS session_id,
    value ->> 'messageID' AS message_id,
    as_time(value -> 'time') AS time,
    value ->> 'purpose' AS purpose,
    value ->> 'providerID' AS provider_id,
    value ->> 'modelID' AS model_id,
    coalesce((value ->> 'attempt')::bigint, 1) AS attempt,
    (value #>> '{tokens,input}')::bigint AS tokens_input,
    (value #>> '{tokens,output}')::bigint AS tokens_output,
    (value #>> '{tokens,reasoning}')::bigint AS tokens_reasoning,
    (value #>> '{tokens,cache,read}')::bigint AS tokens_cache_read,
    (value #>> '{tokens,cache,write}')::bigint AS tokens_cache_write,
    (value ->> 'cost')::numeric AS cost,
    value AS document
FROM (SELECT as_json(value) AS value FROM document WHERE key > 'ledger/' AND key < 'ledger0') AS one;

CREATE VIEW event AS SELECT
    session_id,
    seq,
    as_time(value -> 'time') AS time,
    value ->> 'type' AS type,
    value -> 'data' AS data,
    value ->> 'prev' AS prev
FROM (
    SELECT log.name AS session_id, entry.seq, as_json(entry.body) AS value FROM log JOIN entry ON entry.log = log.id
) AS one;
"""


async def open_postgres(url: str) -> "PostgresEngine":
    """Open the store of sessions at an address, or create it. Raises ValueError if the address is wrong."""
    try:
        from turnkeeper.store.engines.postgres import Layout, PostgresEngine
    except ImportError as error:
        raise ValueError(
            f"the store {shown_store(url)!r} needs psycopg, which is not installed or does not find libpq; "
            "run `pip install 'turnkeeper[postgres]'`"
        ) from error
    return await PostgresEngine.open(url, Layout(views=VIEWS, view_names=VIEW_NAMES))
