"""The command that runs sessions for others, and the one that shows it: a process that is seen, and goes when told."""

import asyncio
import json
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from cli_store import api, command, environment, process, said, tk
from stores import store_url

from turnkeeper.app import look
from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.value import encode
from turnkeeper.run.wakes import StoredWakes
from turnkeeper.store import keys
from turnkeeper.workspace.owner import this_process

DEADLINE_S = 60


def hosts(place: Path | str) -> list[dict[str, Any]]:
    """The processes of a store, once there is one: it is listed from its first heartbeat on."""
    end = time.monotonic() + DEADLINE_S
    named = ("--store", place) if isinstance(place, str) else ("--data", str(place))
    while not (found := said("cluster", "status", "--json", *named).json["hosts"]):
        assert time.monotonic() < end, "no process is listed"
    return list(found)


def test_a_worker_says_that_it_is_ready_is_listed_and_goes_when_told(tmp_path: Path) -> None:
    words = command("worker", "--concurrency", "3", "--label", "gpu", "--label", "eu", "--only-labels", "--json")
    with subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE, text=True) as started:
        try:
            assert started.stdout is not None
            assert json.loads(started.stdout.readline()) == {
                "pid": started.pid,
                "concurrency": 3,
                "labels": ["eu", "gpu"],
            }
            [host] = hosts(tmp_path)
            assert (host["owner"]["pid"], host["role"], host["process"]) == (started.pid, "worker", "runs")
            assert (host["sessions"], host["concurrency"]) == (0, 3)
            assert (host["labels"], host["onlyLabels"]) == (["eu", "gpu"], True)
            assert "eu, gpu only" in tk(tmp_path, "cluster", "status").out
            assert "heartbeatAgeMs" in host
            assert str(started.pid) in tk(tmp_path, "cluster", "status").out
            started.send_signal(signal.SIGTERM)
            assert started.wait(DEADLINE_S) == 0
        finally:
            started.kill()


def test_a_server_that_runs_no_sessions_is_listed_from_its_start(tmp_path: Path) -> None:
    words = command("serve", "--no-run", "--port", "0")
    with subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE) as started:
        try:
            [host] = hosts(tmp_path)
            assert (host["owner"]["pid"], host["role"], host["process"]) == (started.pid, "server", "runs")
            assert re.search(r"server +serves ", tk(tmp_path, "cluster", "status").out)
        finally:
            started.kill()


def test_a_server_that_runs_sessions_is_listed_from_its_start_if_machines_share_its_store(tmp_path: Path) -> None:
    store = store_url("postgres", tmp_path)
    words = command("serve", "--port", "0", "--store", store)
    with subprocess.Popen(words, cwd=tmp_path, env=environment(tmp_path), stdout=subprocess.PIPE) as started:
        try:
            [host] = hosts(store)
            assert (host["owner"]["pid"], host["role"], host["sessions"]) == (started.pid, "server", 0)
        finally:
            started.kill()


def test_a_process_that_rests_is_not_said_to_run_what_its_last_heartbeat_names(tmp_path: Path) -> None:
    async def beat() -> None:
        async with look(f"sqlite:{tmp_path}/turnkeeper.db") as here:
            server = Heartbeat(owner=this_process(), beat=1, at=here.store.mint.now(), sessions=1)
            await here.store.engine.put({keys.heartbeat("server"): encode(server)})

    asyncio.run(beat())
    assert hosts(tmp_path)[0]["sessions"] == 0


def test_a_worker_that_finishes_its_sessions_is_shown_as_draining(tmp_path: Path) -> None:
    async def beat() -> None:
        async with look(f"sqlite:{tmp_path}/turnkeeper.db") as here:
            worker = Heartbeat(owner=this_process(), beat=1, at=here.store.mint.now(), role="worker", draining=True)
            await here.store.engine.put({keys.heartbeat("worker"): encode(worker)})

    asyncio.run(beat())
    assert re.search(r"worker +draining ", tk(tmp_path, "cluster", "status").out)
    assert hosts(tmp_path)[0]["draining"] is True


def test_the_status_of_a_store_that_nobody_uses_has_every_field(tmp_path: Path) -> None:
    queue = {"sessions": 0, "wakes": 0, "oldestMs": 0, "waiting": []}
    assert tk(tmp_path, "cluster", "status", "--json").json == {"hosts": [], "leases": [], "queue": queue}


def test_the_status_says_which_label_a_session_waits_for_and_a_move_changes_it(tmp_path: Path) -> None:
    place = "/srv/models"
    made = tk(tmp_path, "session", "create", "--label", "gpu", "--directory", place, "--json").json
    assert (made["label"], made["directory"]) == ("gpu", place)
    asyncio.run(_wake(tmp_path, made["id"]))
    [wait] = tk(tmp_path, "cluster", "status", "--json").json["queue"]["waiting"]
    assert (wait["sessionID"], wait["label"], wait["reason"]) == (made["id"], "gpu", "no worker")
    assert "no worker" in tk(tmp_path, "cluster", "status").out
    assert tk(tmp_path, "session", "move", made["id"], "--label", "eu", "--json").json["label"] == "eu"
    assert "label" not in tk(tmp_path, "session", "move", made["id"], "--no-label", "--json").json
    for wrong in ([], ["--label", "eu", "--no-label"]):
        assert tk(tmp_path, "session", "move", made["id"], *wrong).code == 2
    assert tk(tmp_path, "worker", "--only-labels").code != 0


def test_run_refuses_a_session_of_another_label_before_the_prompt_is_admitted(tmp_path: Path) -> None:
    session = tk(tmp_path, "session", "create", "--label", "gpu", "--json").json["id"]
    for words in (["hello"], ["/init"]):
        done = process(tmp_path, "run", "-m", "offline/tk-1", "-s", session, *words, stdin=subprocess.DEVNULL)
        assert done.returncode == 1
        assert "`turnkeeper worker --label gpu`" in done.stderr
    view = api(tmp_path, lambda opened: opened.store.journal.view(session))
    assert (view.inbox, view.messages) == ((), 0)


async def _wake(data: Path, session_id: str) -> None:
    async with look(f"sqlite:{data}/turnkeeper.db") as opened:
        await StoredWakes(opened.store.engine, opened.store.mint).post(session_id)
