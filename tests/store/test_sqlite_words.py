"""The index of words and the queue before it: together they always say what the texts say, worked off or not."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.store.engines.sqlite.schema import TABLES
from turnkeeper.store.engines.sqlite.words import (
    CHANGES_PER_PIECE,
    QUEUE_MIN,
    enqueue,
    enqueue_removal,
    search,
    work_off,
)


def opened() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(TABLES)
    return connection


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    with closing(opened()) as connection:
        yield connection


def found(connection: apsw.Connection, *wanted: str, limit: int = 9999) -> list[str]:
    return search(connection, wanted, "", limit)


def worked_off(connection: apsw.Connection) -> int:
    """Work off everything; how often that had to be begun."""
    times = 0
    while connection.execute("SELECT count(*) FROM word_queue").get:
        work_off(connection)
        times += 1
    return times


PATHS = st.sampled_from(["a", "a/1", "a/10", "a/1/x", "b/1", "b"])
PLACES = st.lists(st.sampled_from(["a", "a/1", "b", "b/1", "c", ""]), max_size=2)
SAID = st.dictionaries(PATHS, st.sampled_from(["tide", "ebb tide", "ebb", None]), max_size=3)
STEPS = st.lists(st.tuples(SAID, PLACES, st.booleans()), max_size=12)


def is_at_or_below(path: str, place: str) -> bool:
    return place == "" or path == place or path.startswith(place + "/")


@given(STEPS)
def test_a_search_finds_what_is_said_whatever_was_worked_off(
    steps: Sequence[tuple[dict[str, str | None], list[str], bool]],
) -> None:
    with closing(opened()) as connection:
        said: dict[str, str] = {}
        for texts, places, is_worked_off in steps:
            enqueue(connection, texts.items())
            for path, text in texts.items():
                said.pop(path, None)
                if text is not None:
                    said[path] = text
            enqueue_removal(connection, places)
            said = {path: text for path, text in said.items() if not any(is_at_or_below(path, at) for at in places)}
            if is_worked_off:
                work_off(connection)
            newest_first = list(reversed(said.items()))
            assert found(connection, "tide") == [path for path, text in newest_first if "tide" in text]
            for place in ("a", "a/1", "b"):
                below = [path for path, text in newest_first if "tide" in text and path.startswith(place + "/")]
                assert search(connection, ["tide"], place, 9999) == below
            assert found(connection, "ebb", "tid", limit=1) == [p for p, text in newest_first if text == "ebb tide"][:1]
        worked_off(connection)
        assert connection.execute("SELECT count(*) FROM word_docsize").get == len(said)
        assert {path for (path,) in connection.execute("SELECT key FROM text")} == said.keys()


def test_a_search_below_a_path_reads_nothing_else_of_the_queue(connection: apsw.Connection) -> None:
    enqueue(connection, [(f"session-{number}/title", "tide") for number in range(100)])
    rows: list[tuple[object, ...]] = []

    def read(_: apsw.Cursor, row: tuple[object, ...]) -> tuple[object, ...]:
        rows.append(row)
        return row

    connection.row_trace = read
    assert search(connection, ["tide"], "session-7", 10) == ["session-7/title"]
    assert len(rows) == 1


def test_much_is_worked_off_a_little_at_a_time(connection: apsw.Connection) -> None:
    enqueue(connection, {f"t/{number:04d}": "tide" for number in range(3 * CHANGES_PER_PIECE)}.items())
    assert worked_off(connection) == 3
    enqueue_removal(connection, ["t"])
    assert found(connection, "tide") == []
    assert worked_off(connection) == 4  # The fourth finds that nothing is left.
    assert connection.execute("SELECT count(*) FROM text").get == 0


def test_what_is_gone_does_not_wait_for_more(connection: apsw.Connection) -> None:
    enqueue(connection, {"t/1": "tide"}.items())
    assert work_off(connection) == 0
    enqueue(connection, {"t/2": "tide"}.items())
    enqueue_removal(connection, ["t/1"])
    assert work_off(connection) >= QUEUE_MIN


def test_a_place_where_nothing_is_said_is_not_noted(connection: apsw.Connection) -> None:
    enqueue(connection, {"t/1": "tide"}.items())
    worked_off(connection)
    enqueue_removal(connection, ["t/10", "u", "t/1/2"])
    assert connection.execute("SELECT count(*) FROM word_queue").get == 0


def test_bounds_hold_for_the_queue_and_for_the_index(connection: apsw.Connection) -> None:
    enqueue(connection, {"a/1": "tide", "b/1": "tide"}.items())
    assert search(connection, ["tide"], "a", 9) == ["a/1"]
    worked_off(connection)
    assert search(connection, ["tide"], "a", 9) == ["a/1"]
