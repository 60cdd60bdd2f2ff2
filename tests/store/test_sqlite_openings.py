"""A new SQLite store that several open in the same moment: each gets it, none is told that it is locked."""

import threading
from pathlib import Path

from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.engines.sqlite.connection import BUSY_TIMEOUT_S, BusyWait, StoreFile
from turnkeeper.store.sqlite_layout import LAYOUT

ROUNDS = 60
"""One in thirty failed when SQLite's own patience was relied on."""
AT_ONCE = 4


def opened_at_once(path: Path) -> list[StoreUnavailable]:
    """What went wrong where several opened a store that is not there yet."""
    together, failures = threading.Barrier(AT_ONCE), list[StoreUnavailable]()

    def open_it() -> None:
        file = StoreFile(path, LAYOUT, busy_timeout_s=BUSY_TIMEOUT_S, vfs=None, crash=lambda point: None)
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
