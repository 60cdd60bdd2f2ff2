"""A damaged store: every command says what is wrong and goes on with what is left, and none ends with a traceback."""

import asyncio
import random
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from cli_store import Answer, tk

from turnkeeper.app import open_store
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.store.sqlite_layout import open_sqlite
from turnkeeper.testing.builders import a_session, a_turn

TABLES = (
    "log",
    "entry",
    "document",
    "small_document",
    "text",
    "word_queue",
    "packed",
    "word_data",
    "word_docsize",
    "sqlite_schema",
)
LONG, OTHER = "ses_long", "ses_other"
FLIPS = 4


async def fill(path: Path) -> None:
    """Two sessions, one of them with packed entries and a blob; some of their words are indexed, some wait."""
    engine = await open_sqlite(path, tidy_share=1.0)
    async with open_store(engine) as opened:
        create = opened.store.journal.create
        long = [event for turn in range(1, 20) for event in a_turn(LONG, turn, answer=f"tide {turn} " * 5)]
        await create(a_session(LONG, title="Long tide"), *long, *a_turn(LONG, 30, answer="blob " * BLOB_CHARS_MIN))
        with anyio.fail_after(60):
            while not await asyncio.to_thread(rows, path, "packed"):
                await asyncio.sleep(0)
        await create(a_session(OTHER, title="Other tide", parent_id=LONG), *a_turn(OTHER, 1))


def rows(path: Path, table: str) -> int:
    with closing(apsw.Connection(str(path))) as reader:
        return int(reader.execute(f"SELECT count(*) FROM {table}").get)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that nobody has damaged yet."""
    path = tmp_path_factory.mktemp("sound") / "turnkeeper.db"
    asyncio.run(fill(path))
    return path


def changed(sound: Path, data: Path, sql: str) -> None:
    """A copy of the store in which a statement has changed something behind everybody's back."""
    shutil.copy(sound, data / "turnkeeper.db")
    with closing(apsw.Connection(str(data / "turnkeeper.db"))) as connection:
        connection.pragma("writable_schema", True)
        connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE type = 'table'")
    with closing(apsw.Connection(str(data / "turnkeeper.db"))) as connection:
        connection.execute(sql)
        assert connection.changes()


def flipped(sound: Path, data: Path, table: str, chance: random.Random) -> None:
    """A copy of the store with one bit flipped in a page of a table."""
    with closing(apsw.Connection(str(sound))) as reader:
        pages = reader.execute("SELECT pgoffset, pgsize FROM dbstat WHERE name = ? ORDER BY 1", (table,)).fetchall()
    place: Any = chance.choice(pages)
    begin, size = place
    whole = bytearray(sound.read_bytes())
    whole[begin + chance.randrange(size)] ^= 1 << chance.randrange(8)
    (data / "turnkeeper.db").write_bytes(whole)


def problems(answer: Answer) -> list[tuple[str, str | None, int | None]]:
    return [(one["kind"], one.get("sessionID"), one.get("seq")) for one in answer.json["problems"]]


def use(data: Path, target: Path) -> Iterator[Answer]:
    """Every command that must cope with damage, the one that repairs it among them."""
    for words in (
        ("doctor", "--json"),
        ("session", "list", "--all", "--json"),
        ("session", "messages", LONG, "--json"),
        ("session", "search", "tide", "--json"),
        ("session", "export", LONG, "--json", "--output", str(target / "one.json")),
        ("session", "export", "--all", "--json", "--output", str(target / "all.jsonl")),
        ("doctor", "--fix", "--json"),
        ("session", "show", OTHER, "--json"),
        ("session", "delete", OTHER, "--yes", "--json"),
        ("session", "delete", LONG, "--yes", "--json"),
        ("doctor", "--json"),
    ):
        answer = tk(data, *words)  # An exception that is no finding is raised here.
        assert "Traceback" not in answer.err, words
        assert answer.code in (0, 1), words
        yield answer


def test_damage_in_packed_entries_is_named_by_its_first_event(sound: Path, data: Path) -> None:
    half = "length(bodies) / 2"
    changed(sound, data, f"UPDATE packed SET bodies = CAST(substr(bodies, 1, {half}) || zeroblob({half}) AS BLOB)")
    answer = tk(data, "doctor", "--json")
    [(kind, session_id, seq)] = problems(answer)
    assert (answer.code, kind, session_id) == (1, "unreadable entry", LONG)
    assert seq is not None
    assert 1 < seq < 128


def test_a_run_of_packed_entries_that_is_lost_is_named_by_its_first_event(sound: Path, data: Path) -> None:
    changed(sound, data, "UPDATE packed SET bodies = NULL")
    assert problems(tk(data, "doctor", "--json")) == [("unreadable entry", LONG, 1)]


def test_a_session_with_damaged_packed_entries_is_exported_and_deleted(sound: Path, data: Path, tmp_path: Path) -> None:
    truth = tk_export(sound, tmp_path / "truth")
    changed(sound, data, "UPDATE packed SET bodies = x'00'")
    answer = tk(data, "session", "export", "--all", "--output", str(tmp_path / "all.jsonl"))
    assert answer.code == 1
    assert f"unreadable entry in session {LONG}: event 1" in answer.err
    assert (tmp_path / "all.jsonl").read_bytes() == truth  # Its documents are whole.
    assert tk(data, "session", "delete", LONG, "--yes").code == 0
    after = tk(data, "doctor", "--json")
    assert (after.code, after.json["sessions"], rows(data / "turnkeeper.db", "packed")) == (0, 0, 0)


@pytest.mark.parametrize("value", ["NULL", "CAST(x'7bff22' AS TEXT)"])
@pytest.mark.parametrize("kind", ["session", "state", "message", "part", "order", "recent", "blob"])
def test_a_document_that_cannot_be_read_is_named_and_written_again(
    sound: Path, data: Path, tmp_path: Path, kind: str, value: str
) -> None:
    table = "small_document" if kind in ("order", "recent") else "document"
    place = f"rowid = (SELECT min(rowid) FROM document WHERE key GLOB '{kind}/*')"
    if table == "small_document":
        place = f"key = (SELECT min(key) FROM small_document WHERE key GLOB '{kind}/*')"
    changed(sound, data, f"UPDATE {table} SET value = {value} WHERE {place}")
    answers = list(use(data, tmp_path))
    assert answers[0].code == 1
    assert answers[5].code == 1
    if kind != "blob":  # A blob is in no log.
        assert answers[6].code == 0
    assert [one.code for one in answers[8:]] == [0, 0, 0]
    assert answers[-1].json["sessions"] == 0


def test_a_damaged_message_leaves_the_others_to_be_read(sound: Path, data: Path) -> None:
    changed(
        sound,
        data,
        "UPDATE document SET value = '{'"
        " WHERE rowid = (SELECT max(rowid) FROM document WHERE key GLOB 'message/ses_other/*')",
    )
    whole = tk(sound.parent, "session", "messages", OTHER, "--json").json["items"]
    answer = tk(data, "session", "messages", OTHER, "--json")
    [name] = answer.json["damaged"]
    left = [one for one in whole if one["info"]["id"] != name.rpartition("/")[2]]
    assert (answer.code, answer.json["items"]) == (1, left)
    assert f"Damaged: {name}" in answer.err


def test_a_damaged_session_leaves_the_others_in_the_list(sound: Path, data: Path) -> None:
    changed(sound, data, "UPDATE document SET value = '{' WHERE key GLOB 'session/*/ses_other'")
    answer = tk(data, "session", "list", "--all", "--json")
    assert (answer.code, [one["id"] for one in answer.json["items"]]) == (1, [LONG])
    assert answer.json["damaged"] == ["session/ses_other"]


def test_a_text_that_was_altered_is_not_exported_in_silence(sound: Path, data: Path, tmp_path: Path) -> None:
    changed(sound, data, "UPDATE document SET value = replace(value, 'tide', 'ride') WHERE key GLOB 'part/*'")
    answer = tk(data, "session", "export", LONG, "--output", str(tmp_path / "one.json"))
    assert answer.code == 1
    assert f"stale document in session {LONG}" in answer.err
    assert tk(data, "doctor", "--fix").code == 0
    assert tk(data, "session", "export", LONG, "--output", str(tmp_path / "one.json")).code == 0


@pytest.mark.parametrize("table", TABLES)
def test_a_flipped_bit_is_met_without_a_traceback(sound: Path, data: Path, tmp_path: Path, table: str) -> None:
    check_flips(sound, data, tmp_path, table, random.Random(table), FLIPS)


@pytest.mark.soak
@pytest.mark.parametrize("table", TABLES)
def test_many_flipped_bits_are_met_without_a_traceback(sound: Path, data: Path, tmp_path: Path, table: str) -> None:
    check_flips(sound, data, tmp_path, table, random.Random(f"many {table}"), 10)


def check_flips(sound: Path, data: Path, tmp_path: Path, table: str, chance: random.Random, count: int) -> None:
    truth = tk_export(sound, tmp_path / "truth")
    for _ in range(count):
        clear(data)
        flipped(sound, data, table, chance)
        target = tmp_path / "target"
        target.mkdir(exist_ok=True)
        answers = list(use(data, target))
        exported = answers[5]
        if exported.code == 0:  # What is not named is not altered.
            assert (target / "all.jsonl").read_bytes() == truth
        clear(target)


def tk_export(store: Path, target: Path) -> bytes:
    target.mkdir()
    assert tk(store.parent, "session", "export", "--all", "--output", str(target / "all.jsonl")).code == 0
    return (target / "all.jsonl").read_bytes()


def clear(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


def test_a_search_leaves_out_what_cannot_be_read_and_shows_the_rest(sound: Path, data: Path) -> None:
    one = "SELECT key FROM document WHERE key GLOB 'part/*' AND value LIKE '%tide 19%' LIMIT 1"
    changed(sound, data, f"UPDATE document SET value = '{{' WHERE key = ({one})")
    found = tk(data, "session", "search", "tide")
    assert (found.code, "Damaged: part/" in found.err, "tide 18" in found.out) == (1, True, True)
