"""Servers and workers that are killed and paused, and a database that is: every prompt is answered once or visibly
stopped, and no tool call is run twice."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from many_hosts import (
    Trouble,
    fail_over,
    kill_database,
    kill_server,
    kill_worker,
    live,
    pause_server,
    pause_worker,
    restart_database,
)

from turnkeeper.testing.postgres import own_cluster

PROCESSES = (kill_worker, pause_worker, kill_server, pause_server)
ON_A_FILE = (kill_worker, pause_worker, kill_server)
"""Without a paused server: it may hold the lock of the file, and then nothing goes on until it does."""
DATABASE = (restart_database, kill_database)


async def test_processes_that_are_killed_and_paused_lose_nothing_and_do_nothing_twice(tmp_path: Path) -> None:
    troubles = (kill_worker, kill_server, pause_worker)
    await live(tmp_path, url="", seed=1, servers=2, workers=3, sessions=4, prompts=3, troubles=troubles)


async def test_three_servers_and_three_workers_lose_nothing_while_postgres_is_restarted_and_killed(
    tmp_path: Path,
) -> None:
    troubles = (kill_worker, restart_database, kill_server, pause_worker, kill_database, pause_server)
    with own_cluster() as database:
        await live(
            tmp_path,
            url=database.url(),
            seed=1,
            servers=3,
            workers=3,
            sessions=4,
            prompts=3,
            troubles=troubles,
            database=database,
        )


async def fail_over_life(tmp_path: Path, seed: int, troubles: Sequence[Trouble]) -> None:
    with own_cluster() as database, database.standby() as standby:
        await live(
            tmp_path,
            url=database.url_with(standby),
            seed=seed,
            servers=2,
            workers=2,
            sessions=3,
            prompts=2,
            troubles=troubles,
            database=database,
            standby=standby,
        )


async def test_servers_and_workers_go_on_with_the_standby_when_the_database_is_killed(tmp_path: Path) -> None:
    await fail_over_life(tmp_path, 1, (fail_over, kill_worker))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 4))
async def test_nothing_is_lost_in_many_failovers(tmp_path: Path, seed: int) -> None:
    chance = Random(seed)
    troubles = [*chance.choices(PROCESSES, k=2), fail_over, *chance.choices(PROCESSES + DATABASE, k=2)]
    await fail_over_life(tmp_path, seed, troubles)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 5))
async def test_processes_lose_nothing_in_many_lives(tmp_path: Path, seed: int) -> None:
    troubles = Random(seed).choices(ON_A_FILE, k=8)
    await live(tmp_path, url="", seed=seed, servers=3, workers=3, sessions=6, prompts=4, troubles=troubles)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 6))
async def test_processes_and_postgres_lose_nothing_in_many_lives(tmp_path: Path, seed: int) -> None:
    troubles = Random(seed).choices(PROCESSES + DATABASE, k=10)
    with own_cluster() as database:
        await live(
            tmp_path,
            url=database.url(),
            seed=seed,
            servers=3,
            workers=3,
            sessions=6,
            prompts=4,
            troubles=troubles,
            database=database,
        )
