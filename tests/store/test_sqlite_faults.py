"""What the SQLite engine keeps when the disk fails under it, when its files are cut, and when it dies on the way."""

import random
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path

import apsw
import pytest
from faulty_disk import FaultyDisk, faulty_disk

from turnkeeper.store.engine import Engine, StoreUnavailable
from turnkeeper.store.engines import open_engine
from turnkeeper.store.engines.sqlite.connection import PAGE_BYTES
from turnkeeper.store.sqlite_layout import open_sqlite
from turnkeeper.testing.engine_child import LOGS, entry, extend
from turnkeeper.testing.engine_contract.processes import check_streamed, read_acknowledged
from turnkeeper.testing.engine_contract.store import StoreUnderTest

ROUNDS = 6
CHECKPOINT_PAGES = 20
"""Few, so that checkpoints happen among the appends and fail too."""


@dataclass(frozen=True)
class Fault:
    """A way for the disk to fail."""

    kinds: tuple[str, ...]
    error: type[apsw.Error]
    count: int

    def __str__(self) -> str:
        return f"{self.count} {self.error.__name__} of {' or '.join(self.kinds)}"


FAULTS = [
    Fault(("write", "truncate"), apsw.FullError, 1),
    Fault(("write", "truncate"), apsw.FullError, 12),
    Fault(("write",), apsw.IOError, 1),
    Fault(("sync",), apsw.IOError, 1),
    Fault(("sync",), apsw.IOError, 4),
    Fault(("write", "sync", "truncate"), apsw.IOError, 7),
    Fault(("lock",), apsw.BusyError, 1),
    Fault(("lock",), apsw.IOError, 1),
]
FIRST_SAMPLES = (1, 4, 13, 40)


def store_at(path: Path) -> StoreUnderTest:
    """The store as the contract's checks want it, on the real disk."""
    return StoreUnderTest(open_engine, f"sqlite:{path}", is_durable=True)


async def stream_on(engine: Engine, disk: FaultyDisk) -> dict[str, int]:
    """Write to each log in turn; say after each failure whether the store was as before, and go on."""
    acknowledged = dict.fromkeys(LOGS, 0)
    for number in range(1, ROUNDS + 1):
        for log in LOGS:
            for _ in range(20):
                try:
                    await extend(engine, log, number)
                except StoreUnavailable:
                    continue
                break
            else:
                raise AssertionError("the store stayed unusable although the disk recovered")
            acknowledged[log] = number
    disk.heal()
    return acknowledged


async def survive(path: Path, fault: Fault, first: int) -> int:
    """Write through a fault, and look at what is left. Gives the number of calls that failed."""
    with faulty_disk(f"faulty-{threading.get_ident()}-{path.name}") as disk:
        engine = await open_sqlite(path, vfs=disk.name, busy_timeout_s=0.001, checkpoint_pages=CHECKPOINT_PAGES)
        disk.fail(fault.kinds, first, fault.count, fault.error)
        acknowledged = await stream_on(engine, disk)
        await engine.aclose()
    assert acknowledged == dict.fromkeys(LOGS, ROUNDS)
    await check_streamed(store_at(path), acknowledged)
    return disk.faults


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_what_was_acknowledged_survives_a_failing_disk(tmp_path: Path, fault: Fault) -> None:
    failed = [await survive(tmp_path / f"store{first}", fault, first) for first in FIRST_SAMPLES]
    assert sum(failed) > 0


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_what_was_acknowledged_survives_a_disk_failing_at_every_call(tmp_path: Path, fault: Fault) -> None:
    for first in range(1, 400):
        if await survive(tmp_path / f"store{first}", fault, first) == 0:
            break
        shutil.rmtree(tmp_path, ignore_errors=True)


@pytest.mark.parametrize("fault", FAULTS, ids=str)
async def test_a_store_whose_making_failed_can_be_made_again(tmp_path: Path, fault: Fault) -> None:
    refused = 0
    for first in (1, 5, 12, 20):
        path = tmp_path / f"store{first}"
        with faulty_disk(f"making-{threading.get_ident()}-{first}") as disk:
            disk.fail(fault.kinds, first, fault.count, fault.error)
            try:
                engine = await open_sqlite(path, vfs=disk.name, busy_timeout_s=0.001)
            except StoreUnavailable:
                refused += 1
                disk.heal()
                engine = await open_sqlite(path, vfs=disk.name)
            disk.heal()
            await engine.append("ses_1", 0, [b"{}"])
            await engine.aclose()
        reopened = await open_sqlite(path)
        assert await reopened.read("ses_1") == [b"{}"]
        assert (await reopened.inspect())["problems"] == []
        await reopened.aclose()
    assert refused > 0


async def test_a_failing_disk_fails_only_what_was_to_be_written(tmp_path: Path) -> None:
    with faulty_disk("failing") as disk:
        engine = await open_sqlite(tmp_path / "store", vfs=disk.name)
        await engine.append("ses_1", 0, [b"one"], {("a", "b"): b"old"})
        disk.fail(("sync",), 1, 1000, apsw.IOError)
        with pytest.raises(StoreUnavailable, match="disk reported an error"):
            await engine.append("ses_1", 1, [b"two"], {("a", "b"): b"new"})
        assert await engine.read("ses_1") == [b"one"]
        assert await engine.get([("a", "b")]) == [b"old"]
        disk.fail(("write",), 1, 1000, apsw.FullError)
        with pytest.raises(StoreUnavailable, match="disk is full"):
            await engine.append("ses_1", 1, [b"two"])
        disk.heal()
        await engine.append("ses_1", 1, [b"three"])
        assert await engine.read("ses_1") == [b"one", b"three"]
        await engine.aclose()


async def test_a_disk_that_fails_while_a_store_is_closed_loses_nothing(tmp_path: Path) -> None:
    with faulty_disk("closing") as disk:
        engine = await open_sqlite(tmp_path / "store", vfs=disk.name)
        await extend(engine, LOGS[0], 1)
        disk.fail(("write", "sync", "truncate"), 1, 1000, apsw.IOError)
        await engine.aclose()
        assert disk.faults > 0
    await check_streamed(store_at(tmp_path / "store"), {LOGS[0]: 1})


async def copies_of_a_store_in_use(path: Path) -> tuple[bytes, bytes]:
    """The file and the write-ahead log of a store into which LOGS were written in turn, without a checkpoint."""
    engine = await open_sqlite(path)
    for number in range(1, ROUNDS + 1):
        for log in LOGS:
            await extend(engine, log, number)
    copies = path.read_bytes(), path.with_name(path.name + "-wal").read_bytes()
    await engine.aclose()
    return copies


async def check_prefix(path: Path) -> int:
    """The store opens, and what it holds is a beginning of what was written. Gives the number of appends."""
    engine = await open_sqlite(path)
    lengths = [await engine.length(log) for log in LOGS]
    total = sum(lengths)
    assert lengths == [(total + 2) // 3, (total + 1) // 3, total // 3]
    await engine.aclose()
    return total


def has_commit_behind(wal: bytes, place: int) -> bool:
    """Whether a commit ends behind the frame of a byte. If not, damage looks like a write that was cut off."""
    header, frame = 32, 24 + PAGE_BYTES
    behind = range(header + ((place - header) // frame + 1) * frame, len(wal), frame)
    return any(int.from_bytes(wal[start + 4 : start + 8]) for start in behind)


async def cut_and_check(tmp_path: Path, moments: random.Random, rounds: int) -> set[int]:
    file, wal = await copies_of_a_store_in_use(tmp_path / "whole")
    found = set()
    for number in range(rounds):
        path = tmp_path / f"cut{number}"
        damaged = bytearray(wal)
        place = moments.randrange(len(wal))
        if number % 2:
            damaged[place] ^= 1 << moments.randrange(8)
        else:
            del damaged[place:]
        path.write_bytes(file)
        path.with_name(path.name + "-wal").write_bytes(damaged)
        total = await check_prefix(path)
        found.add(total)
        kept = copies_of_damaged_logs(path)
        assert len(kept) == (number % 2 and has_commit_behind(wal, place))
        for copy in kept:
            copy.unlink()
        await check_streamed(store_at(path), {})
    return found


def copies_of_damaged_logs(path: Path) -> list[Path]:
    return list(path.parent.glob(f"{path.name}-wal.*.damaged"))


async def test_a_cut_or_flipped_write_ahead_log_gives_a_beginning_of_what_was_written(tmp_path: Path) -> None:
    found = await cut_and_check(tmp_path, random.Random(1), 20)
    assert len(found) > 5


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
async def test_a_write_ahead_log_cut_anywhere_gives_a_beginning_of_what_was_written(tmp_path: Path, seed: int) -> None:
    await cut_and_check(tmp_path, random.Random(seed), 200)


@pytest.mark.parametrize("place", [0, 17, 40, 60, 32 + (24 + PAGE_BYTES) * 3 + 100], ids=lambda place: f"byte {place}")
async def test_commits_behind_damage_in_the_write_ahead_log_are_reported(
    tmp_path: Path, place: int, caplog: pytest.LogCaptureFixture
) -> None:
    file, wal = await copies_of_a_store_in_use(tmp_path / "whole")
    path = tmp_path / "store"
    path.write_bytes(file)
    damaged = bytearray(wal)
    damaged[place] ^= 4
    path.with_name("store-wal").write_bytes(damaged)
    engine = await open_sqlite(path)
    assert "commits behind the damage are lost" in caplog.text
    [copy] = copies_of_damaged_logs(path)
    assert copy.read_bytes() == damaged
    problems = (await engine.inspect())["problems"]
    assert isinstance(problems, list)
    [problem] = problems
    assert str(copy) in problem
    await engine.aclose()
    copy.unlink()
    assert await check_prefix(path) < ROUNDS * len(LOGS)
    assert copies_of_damaged_logs(path) == []


async def test_commits_behind_damage_are_reported_also_if_the_store_is_named_by_a_link(tmp_path: Path) -> None:
    file, wal = await copies_of_a_store_in_use(tmp_path / "whole")
    path, link = tmp_path / "store", tmp_path / "elsewhere/link"
    path.write_bytes(file)
    damaged = bytearray(wal)
    damaged[60] ^= 4
    path.with_name("store-wal").write_bytes(damaged)
    link.parent.mkdir()
    link.symlink_to(path)
    engine = await open_sqlite(link)
    await engine.put({("a",): b"1"})
    [copy] = copies_of_damaged_logs(path)
    facts = await engine.inspect()
    assert isinstance(facts["problems"], list)
    assert [str(copy) in problem for problem in facts["problems"]] == [True]
    assert facts["bytes"] == sum(path.with_name(f"store{end}").stat().st_size for end in ("", "-wal", "-shm"))
    assert set(engine.places) >= {path, path.with_name("store-wal")}
    await engine.aclose()


@pytest.mark.parametrize("left", [20, 24, 500], ids=lambda left: f"{left} bytes")
async def test_a_commit_whose_writing_was_cut_off_is_not_reported(tmp_path: Path, left: int) -> None:
    file, wal = await copies_of_a_store_in_use(tmp_path / "whole")
    path = tmp_path / "store"
    path.write_bytes(file)
    # The rest of the frame has what stood there before: the file of a log is used again.
    last = len(wal) - 24 - PAGE_BYTES
    path.with_name("store-wal").write_bytes(wal[: last + left] + wal[32 + left : 32 + 24 + PAGE_BYTES])
    assert await check_prefix(path) == ROUNDS * len(LOGS) - 1
    assert copies_of_damaged_logs(path) == []


async def test_the_whole_write_ahead_log_gives_everything_that_was_acknowledged(tmp_path: Path) -> None:
    file, wal = await copies_of_a_store_in_use(tmp_path / "whole")
    (tmp_path / "copy").write_bytes(file)
    (tmp_path / "copy-wal").write_bytes(wal)
    assert await check_prefix(tmp_path / "copy") == ROUNDS * len(LOGS)


@pytest.mark.parametrize("point", ["sqlite.before-checkpoint", "sqlite.after-checkpoint"])
async def test_killed_beside_a_checkpoint_a_store_keeps_what_was_acknowledged(tmp_path: Path, point: str) -> None:
    store = store_at(tmp_path / "store")
    with store.child("stream", "2000", crash=point) as child:
        acknowledged = read_acknowledged(child)
    assert child.returncode == 137
    assert acknowledged
    await check_streamed(store, acknowledged)


@pytest.mark.parametrize("point", ["sqlite.before-migration", "sqlite.after-migration"])
async def test_killed_beside_a_migration_a_store_can_be_opened(tmp_path: Path, point: str) -> None:
    store = store_at(tmp_path / "store")
    with store.child("stream", "1", crash=point) as child:
        assert read_acknowledged(child) == {}
    assert child.returncode == 137
    await check_streamed(store, {})
    engine = await store.open()
    assert await engine.read(LOGS[0]) == [entry(LOGS[0], 1)]
    await engine.aclose()
