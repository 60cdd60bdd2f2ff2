"""A new SQLite store that several open in the same moment: each gets it, none is told that it is locked."""

import threading
from pathlib import Path
from typing import Any

import apsw
import pytest

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.sqlite import wal
from turnkeeper.store.engines.sqlite.connection import BUSY_TIMEOUT_S, BusyWait, StoreFile
from turnkeeper.store.sqlite_layout import LAYOUT

ROUNDS = 60
"""One in thirty failed when SQLite's own patience was relied on."""
AT_ONCE = 4


def a_file(path: Path) -> StoreFile:
    return StoreFile(path, LAYOUT, busy_timeout_s=BUSY_TIMEOUT_S, vfs=None, crash=lambda point: None)


def opened_at_once(path: Path) -> list[StoreUnavailable]:
    """What went wrong where several opened a store that is not there yet."""
    together, failures = threading.Barrier(AT_ONCE), list[StoreUnavailable]()

    def open_it() -> None:
        file = a_file(path)
        together.wait()
        try:
            file.create()
            file.disconnect(file.connect())
        except StoreUnavailable as error:
            failures.append(error)

    threads = [threading.Thread(target=open_it) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return failures


def test_several_open_a_new_store_in_one_moment(tmp_path: Path) -> None:
    assert [failure for number in range(ROUNDS) for failure in opened_at_once(tmp_path / f"{number}.db")] == []


def test_a_lock_is_waited_for_until_the_time_is_over() -> None:
    patient, at_once = BusyWait(60), BusyWait(0)
    assert [patient.wait(tries) for tries in range(3)] == [True] * 3
    assert not at_once.wait(0)


def test_a_refusal_is_repeated_until_the_time_is_over() -> None:
    calls: list[int] = []

    def refused_twice() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise apsw.BusyError("database is locked")

    BusyWait(60).retry(refused_twice)
    assert len(calls) == 3
    calls.clear()
    with pytest.raises(apsw.BusyError):
        BusyWait(0).retry(refused_twice)


class EarlyConnection(apsw.Connection):
    """A connection that compares the write-ahead log while another process writes its beginning.

    At the first look the header is not there yet, and the first commit is not published.
    """

    header: bytes = b""
    log: Path

    def pragma(self, *arguments: Any, **named: Any) -> Any:
        with self.log.open("r+b") as file:
            self.header = file.read(wal.HEADER_BYTES)
            file.seek(0)
            file.write(bytes(wal.HEADER_BYTES))
        return super().pragma(*arguments, **named)

    def wal_checkpoint(self, *arguments: Any, **named: Any) -> tuple[int, int]:
        if not self.header:
            return super().wal_checkpoint(*arguments, **named)
        with self.log.open("r+b") as file:
            file.write(self.header)
        self.header = b""
        return 0, 0


def test_a_write_ahead_log_that_is_being_begun_is_not_reported_as_damaged(tmp_path: Path) -> None:
    file = a_file(tmp_path / "store")
    file.create()
    other = file.connect()
    other.execute("CREATE TABLE written (name)")
    connection = EarlyConnection(str(file.path))
    connection.log = wal.companion(file.path)
    wal.keep_lost(connection, file.path)
    connection.close()
    file.disconnect(other)
    assert list(wal.kept(file.path)) == []
