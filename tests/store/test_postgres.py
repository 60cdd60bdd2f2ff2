"""The Postgres engine: its addresses, its tables, its group commit, its news and its limits."""

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import psycopg
import pytest
from stores import store_url

from turnkeeper.mint import Mint
from turnkeeper.model.event import SessionTouched
from turnkeeper.store.engine import InvalidKey, Key, StoreDamaged, StoreUnavailable, Watched
from turnkeeper.store.engine_table import shown_store
from turnkeeper.store.engines import open_engine
from turnkeeper.store.engines.postgres import PostgresEngine
from turnkeeper.store.engines.postgres.address import DEFAULT_SCHEMA, parse
from turnkeeper.store.engines.postgres.documents import KEY_BYTES_MAX
from turnkeeper.store.engines.postgres.schema import Layout, lock_number
from turnkeeper.store.engines.postgres.words import PIECE_BYTES_MAX, WORD_BYTES_MAX
from turnkeeper.store.journal import Journal
from turnkeeper.testing.builders import a_session

DEADLINE_S = 120


@pytest.fixture
def url(tmp_path: Path) -> str:
    return store_url("postgres", tmp_path)


@pytest.fixture
async def engine(url: str) -> AsyncIterator[PostgresEngine]:
    opened = await PostgresEngine.open(url, Layout())
    yield opened
    await opened.aclose()


def schema_of(url: str) -> str:
    return parse(url).schema


def sql(url: str, *statements: str) -> list[tuple[object, ...]]:
    """Run statements as somebody with psql would; the rows of the last one."""
    address = parse(url)
    with psycopg.connect(**{"autocommit": True, **address.parameters}) as connection:  # type: ignore[arg-type]
        connection.execute(f'SET search_path TO "{address.schema}"'.encode())
        for statement in statements:
            done = connection.execute(statement.encode())
        return done.fetchall() if done.description else []


# Addresses.


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada@db/turns", "postgresql://ada@db/turns"),
        ("postgresql://ada:s3cret@db/turns", "postgresql://ada:***@db/turns"),
        ("postgres://ada:s3cret@db:5432,db2:5433/turns?sslmode=require", "postgres://ada:***@db:5432,db2:5433/turns?sslmode=require"),
        ("postgresql://ada:s3@cr/et@db/turns", "postgresql://ada:***@db/turns"),
        ("postgresql://db/turns?user=ada&password=s3cret", "postgresql://db/turns?user=ada&password=***"),
        ("postgresql://db/turns?PASSWORD=s3cret&x=1", "postgresql://db/turns?PASSWORD=***&x=1"),
        ("postgresql://db/turns?sslpassword=s3cret", "postgresql://db/turns?sslpassword=***"),
        ("sqlite:/a:b@c/store.db", "sqlite:/a:b@c/store.db"),
        ("memory:", "memory:"),
    ],
)  # fmt: skip
def test_the_name_of_a_store_is_shown_without_its_password(url: str, shown: str) -> None:
    assert shown_store(url) == shown


def test_an_address_says_where_the_driver_connects_and_in_which_schema_the_store_is() -> None:
    address = parse("postgres://ada:a%40b@db:5433/turns?schema=team_b&sslmode=require")
    given = {name: address.parameters[name] for name in ("host", "port", "user", "password", "dbname", "sslmode")}
    wanted = {"host": "db", "port": "5433", "user": "ada", "password": "a@b", "dbname": "turns", "sslmode": "require"}
    assert given == wanted
    assert (address.schema, parse("postgresql://db/turns").schema) == ("team_b", DEFAULT_SCHEMA)
    assert "schema" not in address.parameters


@pytest.mark.parametrize(
    "url",
    [
        "postgres:host",
        "postgresql:/host/db",
        "postgresql://ada:s3cr%zzet@db/turns",
        "postgresql://ada:s3cret@db/turns?nonsense=1",
        "postgresql://ada:s3cret@db/turns?schema=Team-B",
        "postgresql://ada:s3cret@db/turns?schema=pg_catalog",
        "postgresql://ada:s3cret@db/turns?schema=",
    ],
)
async def test_a_wrong_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValueError, match="postgres") as refusal:
        await open_engine(url)
    told = f"{refusal.value} {refusal.value.__cause__} {refusal.value.__context__}"
    assert "s3cr" not in str(refusal.value)
    assert refusal.value.__suppress_context__ or "s3cr" not in told


async def test_a_server_that_refuses_or_is_not_there_is_told_without_the_password(url: str, tmp_path: Path) -> None:
    sql(
        url,
        "DO $$ BEGIN IF to_regrole('needs_password') IS NULL THEN"
        " CREATE ROLE needs_password LOGIN PASSWORD 'the right one'; END IF; END $$",
    )
    wrong = url.replace("postgres@", "needs_password:s3cret@")
    nowhere = url.replace(f"host={parse_qs(urlsplit(url).query)['host'][0]}".replace("/", "%2F"), f"host={tmp_path}")
    for address, word in ((wrong, "password"), (nowhere, "cannot be reached")):
        with pytest.raises(StoreUnavailable, match=word) as refusal:
            await open_engine(address)
        assert "s3cret" not in f"{refusal.value!r} {refusal.value.__cause__!r}"


def test_without_the_driver_the_extra_is_named() -> None:
    code = (
        "import asyncio, sys; sys.modules['psycopg'] = None; from turnkeeper.store.engines import open_engine;"
        "asyncio.run(open_engine('postgresql://ada:s3cret@db/turns'))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=60)
    assert "pip install 'turnkeeper[postgres]'" in ended.stderr.splitlines()[-1]
    assert "s3cret" not in ended.stderr.splitlines()[-1]


# Tables.


async def test_tables_of_another_program_are_left_alone(url: str) -> None:
    for own in ("CREATE TABLE theirs (id int)", "CREATE TABLE meta (id int)"):
        address = url.replace(schema_of(url), f"other_{abs(hash(own)) % 1000}_{os.getpid()}")
        schema = schema_of(address)
        sql(address, f'CREATE SCHEMA "{schema}"', own)
        with pytest.raises(StoreUnavailable, match="another program's tables"):
            await open_engine(address)
        assert len(sql(address, f"SELECT 1 FROM pg_class WHERE relnamespace = '{schema}'::regnamespace")) == 1


async def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    await (await open_engine(url)).aclose()
    sql(url, "UPDATE meta SET value = '999' WHERE name = 'schema'")
    with pytest.raises(StoreUnavailable, match="schema 999 and this Turnkeeper knows 1; upgrade"):
        await open_engine(url)


async def test_a_database_without_utf8_is_refused(url: str) -> None:
    name = f"latin_{os.getpid()}"
    sql(url, f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    with pytest.raises(StoreUnavailable, match=r"has the encoding LATIN1.*createdb"):
        await open_engine(url.replace("/postgres?", f"/{name}?"))


async def test_two_stores_of_one_database_know_nothing_of_each_other(tmp_path: Path) -> None:
    one, two = [await open_engine(store_url("postgres", tmp_path)) for _ in range(2)]
    await one.append("ses_1", 0, [b"x"], {("a",): b"x"}, texts={("a",): "apple"})
    assert (await two.logs(), await two.scan(()), await two.search("apple", ()), await two.version()) == ([], [], [], 0)
    await one.aclose()
    await two.aclose()


async def test_a_lost_table_and_a_lost_entry_are_damage(engine: PostgresEngine, url: str) -> None:
    await engine.append("ses_1", 0, [b"one", b"two", b"three"])
    sql(url, "DELETE FROM entry WHERE seq = 2")
    assert await engine.read("ses_1") == [b"one", b"", b"three"]
    problem = "log 'ses_1' should have 3 entries; it has 2, the last of which is number 3"
    assert (await engine.inspect())["problems"] == [problem]
    sql(url, "DROP TABLE document CASCADE")
    with pytest.raises(StoreDamaged, match="restore a back-up"):
        await engine.get([("a",)])


# Writing.


async def test_appends_that_wait_together_are_committed_together(engine: PostgresEngine) -> None:
    before = await engine.version()
    await asyncio.gather(*[engine.append(f"ses_{number}", 0, [b"x"]) for number in range(100)])
    assert await engine.version() - before < 50  # The version counts transactions.


async def test_a_job_that_the_server_refuses_does_not_hurt_those_beside_it(engine: PostgresEngine, url: str) -> None:
    sql(url, "ALTER TABLE document ADD CHECK (value <> '\\x626164')")  # A server may refuse for reasons of its own.
    answers = await asyncio.gather(
        *[engine.append(f"ses_{n}", 0, [b"x"], {("d", str(n)): b"bad" if n == 7 else b"good"}) for n in range(20)],
        return_exceptions=True,
    )
    assert [n for n, answer in enumerate(answers) if answer is not None] == [7]
    assert isinstance(answers[7], StoreUnavailable)
    assert [await engine.length(f"ses_{n}") for n in (6, 7, 8)] == [1, 0, 1]


async def test_a_key_that_is_too_long_for_an_index_is_refused_and_nothing_is_written(engine: PostgresEngine) -> None:
    longest: Key = ("k" * KEY_BYTES_MAX,)
    await engine.put({longest: b"x"})
    assert await engine.get([longest]) == [b"x"]
    for bad in (("k" * (KEY_BYTES_MAX + 1),), ("é" * (KEY_BYTES_MAX // 2 + 1),)):
        with pytest.raises(InvalidKey, match="too long"):
            await engine.append("ses_1", 0, [b"x"], {("a",): b"x", bad: b"x"})
    assert await engine.length("ses_1") == 0


async def test_a_read_that_takes_too_long_is_ended_and_the_next_one_works(url: str) -> None:
    engine = await PostgresEngine.open(url, Layout(), statement_timeout_s=0.2)
    address = parse(url)
    with psycopg.connect(**address.parameters) as other:  # type: ignore[arg-type]
        other.execute(f'LOCK TABLE "{address.schema}".document'.encode())
        with pytest.raises(StoreUnavailable, match="took too long"):
            await engine.get([("a",)])
        other.rollback()
    assert await engine.get([("a",)]) == [None]
    await engine.aclose()


async def test_a_reader_does_not_wait_for_a_writer_of_the_same_rows(engine: PostgresEngine, url: str) -> None:
    await engine.append("ses_1", 0, [b"x"], {("a",): b"old"})
    address = parse(url)
    with psycopg.connect(**address.parameters) as other:  # type: ignore[arg-type]
        other.execute(f'UPDATE "{address.schema}".document SET value = %s'.encode(), (b"new",))
        other.execute(f'SELECT 1 FROM "{address.schema}".log FOR UPDATE'.encode())
        assert await engine.get([("a",)]) == [b"old"]
        assert await engine.read("ses_1") == [b"x"]
        other.rollback()


# Words.


async def test_a_text_with_more_words_than_a_row_can_hold_is_found_by_any_of_them(engine: PostgresEngine) -> None:
    many = [f"word{number:08}" for number in range(3 * PIECE_BYTES_MAX // 12)]
    texts: dict[Key, str | None] = {
        ("t", "long"): " ".join(many),
        ("t", "short"): f"{many[0]} alone",
        ("t", "none"): "",
    }
    await engine.append("ses_1", 0, [b"x"], texts=texts)
    assert await engine.search(f"{many[0]} {many[-1]}", ("t",)) == [("t", "long")]
    assert await engine.search(many[0], ("t",)) == [("t", "short"), ("t", "long")]
    assert await engine.search(f"{many[0]} nothing", ("t",)) == []
    await engine.append("ses_1", 1, [b"x"], texts={("t", "long"): "now short"})
    assert await engine.search(many[-1], ("t",)) == []
    await engine.remove({}, [("t",)])
    assert await engine.search("now", ()) == []


async def test_a_word_that_is_too_long_for_the_server_is_found_by_its_beginning(engine: PostgresEngine) -> None:
    await engine.append("ses_1", 0, [b"x"], texts={("t", "1"): "é" * WORD_BYTES_MAX})
    assert await engine.search("é" * 100, ()) == [("t", "1")]
    assert await engine.search("é" * WORD_BYTES_MAX, ()) == [("t", "1")]


# News.


async def test_the_writes_of_other_processes_are_told_and_those_of_this_one_are_not(url: str) -> None:
    one, two = await open_engine(url), await open_engine(url)
    assert isinstance(one, Watched)
    told: asyncio.Queue[Collection[str] | None] = asyncio.Queue()
    end = one.watch(told.put_nowait)
    with anyio.fail_after(DEADLINE_S):
        assert await told.get() is None  # What was written before may be anything.
        await one.append("ses_own", 0, [b"x"])
        await two.append("ses_1", 0, [b"x"], {("a",): b"x"})
        assert await told.get() == ["ses_1"]
        await two.remove({"ses_1": 1}, [])
        assert await told.get() == ["ses_1"]
    end()
    await two.append("ses_1", 0, [b"x"])
    await one.aclose()
    assert told.empty()
    await two.aclose()


async def test_a_listener_whose_connection_is_lost_listens_again_and_says_to_look_at_all(url: str) -> None:
    mine = f"listener{os.getpid()}"  # Other tests use the same server.
    one, two = await open_engine(f"{url}&application_name={mine}"), await open_engine(url)
    assert isinstance(one, Watched)
    told: asyncio.Queue[Collection[str] | None] = asyncio.Queue()
    one.watch(told.put_nowait)
    with anyio.fail_after(DEADLINE_S):
        assert await told.get() is None
        sql(url, f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{mine}'")
        assert await told.get() is None
        await two.append("ses_1", 0, [b"x"])
        assert await told.get() == ["ses_1"]
    await one.aclose()
    await two.aclose()


async def test_the_writes_of_other_processes_are_told_also_to_a_process_with_many_open_files(url: str) -> None:
    one, two = await open_engine(url), await open_engine(url)
    assert isinstance(one, Watched)
    told: asyncio.Queue[Collection[str] | None] = asyncio.Queue()
    # Sockets that are opened behind these have numbers that ``select`` does not take.
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 4096), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    one.watch(told.put_nowait)
    with anyio.fail_after(DEADLINE_S):
        assert await told.get() is None
        await two.append("ses_1", 0, [b"x"])
        assert await told.get() == ["ses_1"]
    for handle in opened:
        os.close(handle)
    await one.aclose()
    await two.aclose()


async def test_many_logs_written_at_once_are_told_in_pieces_that_the_server_accepts(url: str) -> None:
    one, two = await open_engine(url), await open_engine(url)
    assert isinstance(one, Watched)
    told: asyncio.Queue[Collection[str] | None] = asyncio.Queue()
    one.watch(told.put_nowait)
    names = {f"ses_{number:04}_{'x' * 200}" for number in range(200)}
    with anyio.fail_after(DEADLINE_S):
        assert await told.get() is None
        await asyncio.gather(*[two.append(name, 0, [b"x"]) for name in names])
        while names:
            names -= set(await told.get() or ())
    await one.aclose()
    await two.aclose()


async def test_a_tail_hears_of_other_processes_without_looking(url: str) -> None:
    one, two = await open_engine(url), await open_engine(url)
    writer = Journal(two, Mint.fixed(), lambda _: None)
    await writer.create(a_session("ses_1"))
    tail = Journal(one, Mint.fixed(), lambda _: None).tail("ses_1", poll_s=3600)
    with anyio.fail_after(DEADLINE_S):
        assert (await anext(tail)).seq == 1
        async with anyio.create_task_group() as group:
            group.start_soon(writer.append, "ses_1", SessionTouched())
            assert (await anext(tail)).seq == 2
    await tail.aclose()
    await one.aclose()
    await two.aclose()


# Removing.


async def test_a_removal_waits_for_an_append_that_may_use_what_it_would_remove(
    engine: PostgresEngine, url: str
) -> None:
    await engine.put({("blob", "x"): b"content", ("use", "x", "ses_1"): b""})
    address = parse(url)
    with psycopg.connect(**address.parameters) as other:  # type: ignore[arg-type]
        # What a writer on another host does, stopped in the middle.
        other.execute("SELECT pg_advisory_xact_lock_shared(%s)", (lock_number(address.schema, "removal"),))
        other.execute(f"INSERT INTO \"{address.schema}\".document VALUES ('use/x/ses_2', '')".encode())
        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(remove_use, engine)
                while not sql(url, WAITING):
                    await anyio.sleep(0)
                other.commit()
    assert await engine.get([("blob", "x"), ("use", "x", "ses_1")]) == [b"content", None]


WAITING = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%advisory_xact_lock(%'"


async def remove_use(engine: PostgresEngine) -> None:
    await engine.remove({}, [("use", "x", "ses_1")], orphans={("blob", "x"): ("use", "x")})
