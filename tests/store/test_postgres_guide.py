"""The guide to Postgres is true: its queries print what it says, and a back-up is restored as it says."""

import re
import subprocess
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import psycopg
import pytest
from cli_store import fill
from psycopg.errors import UndefinedTable
from stores import store_url

import turnkeeper
from turnkeeper.model import event as e
from turnkeeper.store.engines.postgres.address import parse
from turnkeeper.testing.builders import SOME_TOKENS
from turnkeeper.testing.postgres import installation

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 240
GUIDE = ROOT / "docs/guides/scale-out.md"
QUERY = re.compile(r"<!-- sql -->\n```sql\n(.*?)```\n\n<!-- prints -->\n```text\n(.*?)```", re.DOTALL)


def printed(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return str(value).lower()
        case _:
            return str(value)


async def test_the_queries_of_the_guide_print_what_it_says(tmp_path: Path) -> None:
    url = store_url("postgres", tmp_path)
    async with turnkeeper.open(url) as opened:
        family = await fill(opened)
        usage = e.UsageRecorded(
            purpose="turn", provider_id="anthropic", model_id="claude", tokens=SOME_TOKENS, cost=0.0123
        )
        await opened.store.journal.append(family.root.id, usage)
    address = parse(url)
    queries = QUERY.findall(GUIDE.read_text("utf-8"))
    assert len(queries) > 4
    options = f"-c search_path={address.schema}"
    with psycopg.connect(**address.parameters) as connection, pytest.raises(UndefinedTable):  # type: ignore[arg-type]
        connection.execute("SELECT 1 FROM session")
    with psycopg.connect(**{**address.parameters, "options": options}) as connection:  # type: ignore[arg-type]
        for statement, wanted in queries:
            rows = connection.execute(statement.encode()).fetchall()
            assert "\n".join(" | ".join(map(printed, row)) for row in rows) + "\n" == wanted


async def test_the_views_show_what_is_no_json_and_what_postgres_has_no_character_for(tmp_path: Path) -> None:
    url = store_url("postgres", tmp_path)
    async with turnkeeper.open(url) as opened:
        session = await opened.create(title="with a \x00 inside")
        await opened.store.engine.put({("session", "broken", "ses_x"): b"\xff{"})
    address = parse(url)
    with psycopg.connect(**address.parameters) as connection:  # type: ignore[arg-type]
        connection.execute(f'SET search_path TO "{address.schema}"'.encode())
        rows = connection.execute("SELECT id, title FROM session ORDER BY id NULLS LAST").fetchall()
    assert rows == [(session.id, session.title.replace("\x00", "\ufffd")), (None, None)]


async def test_a_back_up_is_restored_whole_into_another_database(tmp_path: Path) -> None:
    url = store_url("postgres", tmp_path)
    async with turnkeeper.open(url) as opened:
        await fill(opened)
        whole = await opened.store.engine.scan(())
    async with turnkeeper.open(restored(url, tmp_path)) as opened:
        diagnosis = await opened.doctor()
        assert (diagnosis.ok, diagnosis.sessions, diagnosis.problems) == (True, 3, ())
        assert await opened.store.engine.scan(()) == whole
        assert await opened.search("gust knots")
        session = await opened.create(title="Life goes on")
        assert (await opened.get(session.id)).title == "Life goes on"


async def test_a_back_up_that_is_taken_while_sessions_are_written_is_sound_and_has_what_was_acknowledged(
    tmp_path: Path,
) -> None:
    url = store_url("postgres", tmp_path)
    async with turnkeeper.open(url) as opened:
        sessions = [(await opened.create(title=f"Number {number}")).id for number in range(3)]
        written, is_over = dict.fromkeys(sessions, 0), False

        async def write(session_id: str) -> None:
            while not is_over:
                await opened.rename(session_id, f"Name {written[session_id]}")
                written[session_id] += 1

        async with anyio.create_task_group() as group:
            for session_id in sessions:
                group.start_soon(write, session_id)
            with anyio.fail_after(DEADLINE_S):
                while min(written.values()) < 5:
                    await anyio.sleep(0)
            before = dict(written)
            target = await anyio.to_thread.run_sync(restored, url, tmp_path)
            is_over = True
    async with turnkeeper.open(target) as opened:
        assert (await opened.doctor()).problems == ()
        for session_id in sessions:
            assert before[session_id] <= await opened.store.engine.length(session_id) <= written[session_id] + 1


def restored(url: str, tmp_path: Path) -> str:
    """Take a back-up as the guide says and restore it into a new database; the address of that."""
    schema = parse(url).schema
    [directory] = parse_qs(urlsplit(url).query)["host"]
    database = f"restored_{schema}"[:60]
    dump = tmp_path / "turns.dump"
    run(directory, "pg_dump", "--format=custom", f"--schema={schema}", f"--file={dump}", "postgres")
    run(directory, "createdb", database)
    run(directory, "pg_restore", f"--dbname={database}", str(dump))
    return url.replace("/postgres?", f"/{database}?")


def run(directory: str, program: str, *arguments: str) -> None:
    command = [str(installation() / "bin" / program), "-h", directory, "-U", "postgres", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
