"""Golden stores: a SQLite store of every earlier schema, written by the program of its time, opens with its content."""

import gzip
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from turnkeeper.store.engine import Engine, Key
from turnkeeper.store.engines import open_engine
from turnkeeper.store.engines.sqlite import Layout, SqliteEngine
from turnkeeper.store.engines.sqlite.schema import SCHEMA, TABLES
from turnkeeper.store.sqlite_layout import SMALL_KINDS, VIEWS

STORES = Path(__file__).parent / "sqlite"
EVERY_SCHEMA = pytest.mark.parametrize("schema", range(1, SCHEMA))


def entry(number: int) -> bytes:
    return b'{"seq":%d,"prev":"","time":%d,"type":"noted","data":{"n":%d}}' % (number, number, number)


CONTENT = {
    "logs": {"ses_1": [entry(number) for number in range(1, 301)], "ses_2": [entry(1)]},
    "fences": {"ses_1": 7, "ses_2": 0},
    "documents": {
        "message/ses_1/msg_1": '{"id":"msg_1","role":"user","seq":1}',
        "message/ses_2/msg_2": '{"id":"msg_2"}',
        "order/ses_1/000000000001": '"msg_1"',
        "part/msg_1/prt_1": '{"id":"prt_1","text":"Grüße 🌍"}',
        "receipt/msg_1": '{"sessionID":"ses_1"}',
        "recent/store/-/listed/000000000000001/ses_1": '{"title":"root"}',
        "recent/store/-/unlisted/000000000000002/ses_2": '{"title":"child"}',
        "session/global/ses_1": '{"id":"ses_1","title":"root"}',
    },
    "apple": [("text", "ses_2", "2"), ("text", "ses_2", "1")]
    + [("text", "ses_1", f"{number:03d}") for number in range(99, 0, -1)],
}
"""What each store holds. One session was removed, and the text of part 000 was replaced."""


@pytest.fixture
def path(tmp_path: Path, schema: int) -> Path:
    path = tmp_path / "store"
    path.write_bytes(gzip.decompress((STORES / f"schema-{schema}.db.gz").read_bytes()))
    return path


async def content(engine: Engine) -> dict[str, Any]:
    logs = await engine.logs()
    return {
        "logs": {name: await engine.read(name) for name in logs},
        "fences": {name: await engine.fence(name) for name in logs},
        "documents": {"/".join(key): value.decode() for key, value in await engine.scan(())},
        "apple": await engine.search("apple", (), limit=1000),
    }


@EVERY_SCHEMA
async def test_a_store_of_an_earlier_schema_opens_with_all_of_its_content(path: Path) -> None:
    for _ in range(2):
        engine = await open_engine(f"sqlite:{path}")
        assert await content(engine) == CONTENT
        assert (await engine.inspect())["problems"] == []
        await engine.aclose()


@EVERY_SCHEMA
async def test_a_store_of_an_earlier_schema_can_be_written_to(path: Path) -> None:
    engine = await open_engine(f"sqlite:{path}")
    new: dict[Key, bytes | None] = {("order", "ses_1", "000000000002"): b'"msg_9"'}
    await engine.append("ses_1", 300, [b"next"], new, texts={("text", "ses_1", "099"): "cherry"}, last=entry(300))
    await engine.remove({"ses_2": 1}, [("text", "ses_2"), ("message", "ses_2")])
    await engine.aclose()
    engine = await open_engine(f"sqlite:{path}")
    assert (await engine.read("ses_1", after=299), await engine.read("ses_2")) == ([entry(300), b"next"], [])
    assert await engine.get([*new, ("message", "ses_2", "msg_2")]) == [b'"msg_9"', None]
    assert await engine.search("apple", (), limit=2) == [("text", "ses_1", "098"), ("text", "ses_1", "097")]
    await engine.aclose()


@pytest.mark.parametrize("schema", [2, 3])
async def test_documents_are_found_if_no_kind_is_named_as_small_any_more(path: Path) -> None:
    engine = await SqliteEngine.open(path, Layout())
    assert await content(engine) == CONTENT
    assert await engine.get([("receipt", "msg_1")]) == [b'{"sessionID":"ses_1"}']
    await engine.aclose()


def tables(connection: apsw.Connection) -> Iterator[tuple[object, ...]]:
    """The tables, indexes and views of a database, with the columns of each."""
    for kind, name in connection.execute("SELECT type, name FROM sqlite_schema ORDER BY name").fetchall():
        columns = connection.execute(f"PRAGMA table_xinfo({name})").fetchall() if kind == "table" else []
        yield kind, name, columns


@EVERY_SCHEMA
async def test_a_migrated_store_has_the_tables_of_a_new_one(path: Path) -> None:
    engine = await open_engine(f"sqlite:{path}")
    await engine.aclose()
    with closing(apsw.Connection(str(path))) as migrated, closing(apsw.Connection(":memory:")) as new:
        new.execute(TABLES + VIEWS)
        assert list(tables(migrated)) == list(tables(new))
        for view in ("session", "message", "part", "event_tail"):
            migrated.execute(f"SELECT * FROM {view}").fetchall()
        assert {name for (name,) in migrated.execute("SELECT name FROM small_kind")} == set(SMALL_KINDS)
        kinds = "SELECT DISTINCT substr(key, 1, instr(key, '/') - 1) FROM small_document"
        assert {name for (name,) in migrated.execute(kinds)} == {"order", "receipt", "recent"}
