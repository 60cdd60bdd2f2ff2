"""Sessions at work: what they do, who runs them, how they are closed and run on."""

import json
import os
import signal
import socket
from contextlib import closing

import anyio
import apsw
import pytest
from cli_store import api, tk
from steps import busy_here, left_open, retrying_here
from workshop import Shop

import turnkeeper
from turnkeeper.model.event import RestoreBegun
from turnkeeper.model.restore import FileRestore


def abandoned(shop: Shop) -> str:
    return api(shop.data, lambda opened: left_open(opened, str(shop.project)))


def test_an_idle_store_says_so(shop: Shop) -> None:
    said = tk(shop.data, "session", "status")
    assert (said.code, said.out, said.err) == (0, "", "All sessions are idle.\n")
    assert tk(shop.data, "session", "status", "--json").json["items"] == []


def test_an_idle_session_has_no_owner(shop: Shop) -> None:
    shop.run("read tides.py")
    [session] = shop.sessions()
    assert tk(shop.data, "session", "status", session["id"], "--json").json == {
        "sessionID": session["id"],
        "slug": session["slug"],
        "title": session["title"],
        "status": {"type": "idle"},
        "owner": None,
        "alive": None,
        "waiting": [],
        "asks": [],
    }
    assert "Status   idle" in tk(shop.data, "session", "status", session["id"]).out


def test_a_busy_session_names_the_process_that_runs_it(shop: Shop) -> None:
    session_id = api(shop.data, busy_here)
    [report] = tk(shop.data, "session", "status", "--json").json["items"]
    assert (report["sessionID"], report["status"], report["alive"]) == (session_id, {"type": "busy"}, True)
    assert (report["owner"]["pid"], report["owner"]["host"]) == (os.getpid(), socket.gethostname())
    listed = tk(shop.data, "session", "status").out
    assert f"{session_id}  busy    process {os.getpid()} on {socket.gethostname()}  At work\n" in listed
    assert tk(shop.data, "session", "tree", session_id).out.startswith(f"{session_id}  busy  ")


def test_a_session_that_will_try_again_says_why(shop: Shop) -> None:
    api(shop.data, retrying_here)
    assert "retry 2: overloaded" in tk(shop.data, "session", "status").out


def test_what_a_dead_process_left_is_shown_with_the_prompts_that_wait(shop: Shop) -> None:
    session_id = abandoned(shop)
    report = tk(shop.data, "session", "status", session_id, "--json").json
    assert (report["status"], report["alive"]) == ({"type": "busy"}, False)
    assert [(one["delivery"], one["text"]) for one in report["waiting"]] == [("steer", "read README.md")]
    shown = tk(shop.data, "session", "status", session_id).out
    assert "left open; `session resume` continues it" in shown
    assert tk(shop.data, "session", "tree", session_id).out.startswith(f"{session_id}  left open  ")
    assert tk(shop.data, "session", "tree", session_id, "--json").json["status"] == "left open"
    assert ", gone" in shown
    assert "Waiting  steer  read README.md" in shown


def test_abort_closes_what_a_dead_process_left_and_runs_nothing(shop: Shop) -> None:
    session_id = abandoned(shop)
    said = tk(shop.data, "session", "abort", session_id)
    assert (said.code, said.out) == (0, f"Closed what was open  {session_id}\n")
    report = tk(shop.data, "session", "status", session_id, "--json").json
    assert (report["status"], report["owner"], len(report["waiting"])) == ({"type": "idle"}, None, 1)
    [_, turn] = shop.messages(session_id)
    assert turn["info"]["error"]["name"] == "MessageAbortedError"
    assert [part["text"] for part in turn["parts"] if part["type"] == "text"] == ["Half an answer"]
    [call] = [part for part in turn["parts"] if part["type"] == "tool"]
    assert call["state"]["metadata"] == {"interrupted": True}
    assert tk(shop.data, "doctor").code == 0
    assert tk(shop.data, "session", "abort", session_id).out == f"Nothing was open  {session_id}\n"


def test_abort_refuses_while_the_owner_lives_and_says_how_to_stop_it(shop: Shop) -> None:
    session_id = api(shop.data, busy_here)
    refused = tk(shop.data, "session", "abort", session_id)
    assert (refused.code, refused.out) == (1, "")
    assert f"process {os.getpid()} on " in refused.err
    assert f"`kill -INT {os.getpid()}`" in refused.err


def test_recover_looks_after_every_session_that_a_dead_process_left(shop: Shop) -> None:
    session_id = abandoned(shop)
    said = tk(shop.data, "session", "recover", "--json")
    assert said.code == 0, said.err
    assert [(one["sessionID"], one["status"], one["waiting"]) for one in said.json["items"]] == [
        (session_id, {"type": "idle"}, [])
    ]
    assert not (shop.project / "ran.txt").exists()
    again = tk(shop.data, "session", "recover", "--policy", "ask")
    assert (again.code, again.out.strip(), again.err) == (0, "", "No session needs recovery.\n")
    assert tk(shop.data, "doctor").code == 0


def test_recover_names_a_session_that_cannot_be_read_and_looks_after_the_others(shop: Shop) -> None:
    damaged, sound = abandoned(shop), abandoned(shop)
    with closing(apsw.Connection(str(shop.data / "turnkeeper.db"))) as connection:
        connection.execute("UPDATE document SET value = '{' WHERE key GLOB ?", (f"message/{damaged}/*",))
        assert connection.changes()
    said = tk(shop.data, "session", "recover", "--json")
    assert (said.code, [one["sessionID"] for one in said.json["items"]]) == (1, [sound])
    assert [one["sessionID"] for one in said.json["problems"]] == [damaged]
    assert f"Not recovered: {damaged}: " in said.err
    again = tk(shop.data, "session", "recover")
    assert (again.code, again.out) == (1, "")
    assert "No session needs recovery" not in again.err


@pytest.mark.parametrize("typed", ["n\n", "\x04"])
def test_recover_asks_at_the_terminal_and_takes_the_end_of_the_input_for_a_no(shop: Shop, typed: str) -> None:
    session_id = abandoned(shop)
    with shop.terminal("session", "recover", "--policy", "ask") as seat:
        seat.read_until(f"{session_id} was cut off in the middle of its answer. Continue? [y/N] ")
        seat.types(typed)
        seat.read_until("1 session recovered.")
        assert seat.end() == 0


def test_ctrl_c_at_a_question_of_recover_ends_it(shop: Shop) -> None:
    abandoned(shop)
    with shop.terminal("session", "recover", "--policy", "ask") as seat:
        seat.read_until("Continue? [y/N] ")
        seat.process.send_signal(signal.SIGINT)
        seat.read_until("interrupted; what was acknowledged is kept")
        assert seat.end() == 130


def test_a_question_of_recover_is_not_on_standard_output(shop: Shop) -> None:
    session_id = abandoned(shop)
    with shop.terminal("session", "recover", "--policy", "ask", "--json", piped=True) as seat:
        seat.read_until("Continue? [y/N] ")
        seat.types("n\n")
        assert seat.end() == 0
        assert seat.process.stdout is not None
        assert [one["sessionID"] for one in json.loads(seat.process.stdout.read())["items"]] == [session_id]


def test_recover_names_an_undo_that_cannot_be_finished(shop: Shop) -> None:
    session_id = abandoned(shop)
    gone = str(shop.project / "gone")

    async def cut_off(opened: turnkeeper.Turnkeeper) -> None:
        begun = RestoreBegun(root=gone, files=(FileRestore(file="a", kind="delete"),))
        await opened.store.journal.append(session_id, begun)

    api(shop.data, cut_off)
    said = tk(shop.data, "session", "recover")
    assert (said.code, said.out) == (1, "")
    assert f"Not recovered: {session_id}: the directory {gone!r} of the session is not there" in said.err


def test_resume_tells_what_it_found_and_goes_on_without_running_a_call_twice(shop: Shop) -> None:
    session_id = abandoned(shop)
    said = tk(shop.data, "session", "resume", session_id)
    assert said.code == 0, said.err
    first = said.err.splitlines()[0]
    assert "which ran this session, is gone: 14 characters of its answer are kept" in first
    assert "bash (echo twice >> ran.txt) is marked as interrupted and not run again" in first
    assert "`README.md` has 1 line" in said.out
    assert not (shop.project / "ran.txt").exists()
    assert tk(shop.data, "session", "status", session_id, "--json").json["status"] == {"type": "idle"}
    assert tk(shop.data, "doctor").code == 0


def test_resume_where_all_was_answered_says_that_there_is_nothing_to_do(shop: Shop) -> None:
    shop.run("read tides.py")
    said = tk(shop.data, "session", "resume", shop.sessions()[0]["id"])
    assert (said.code, said.out, said.err) == (0, "", "Nothing to do: answered.\n")


def test_resume_refuses_while_another_process_runs_the_session(shop: Shop) -> None:
    session_id = api(shop.data, busy_here)
    refused = shop.process("session", "resume", session_id)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"is being run by process {os.getpid()} on " in refused.stderr


async def test_the_api_aborts_what_it_runs_itself(shop: Shop) -> None:
    from turnkeeper.providers.script import Gate
    from turnkeeper.providers.scripted import Scripted
    from turnkeeper.run.runtime import Settings

    gate = Gate()
    provider = Scripted().titles("T").says("Half").waits(gate)
    settings = Settings(transport=lambda _: provider)
    async with turnkeeper.open("memory:", directory=shop.project, settings=settings) as opened:
        session = await opened.create()
        await opened.prompt(session.id, "hello")
        await gate.wait_reached()
        assert await opened.stop(session.id)
        assert not await opened.stop(session.id)
        with anyio.fail_after(30):
            await opened.wait(session.id)
