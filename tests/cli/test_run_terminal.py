"""A run on a terminal: live, in colours, with questions and a Ctrl-C that settles."""

import re
import signal
import subprocess

import pytest
from cli_store import tk
from workshop import Seat, Shop


def asked(seat: Seat) -> str:
    """What stands on the screen when a question is put."""
    seat.read_until("or say what to do instead\n> ")
    return seat.shown


def last_call(shop: Shop) -> dict[str, object]:
    parts = [part for one in shop.messages(shop.sessions()[0]["id"]) for part in one["parts"]]
    state: dict[str, object] = [part for part in parts if part["type"] == "tool"][-1]["state"]
    return state


def test_text_calls_diffs_and_the_summary_are_shown(shop: Shop) -> None:
    with shop.terminal("run", "read tides.py, then replace `100` with `60` in tides.py") as seat:
        assert seat.end() == 0
    lines = seat.screen
    assert "> build · offline/tk-1" in lines
    assert any(line.startswith("± edit tides.py  +1 -1, ") for line in lines)
    assert "    2 +     return minutes / 60" in lines
    assert "\x1b[32m+     return minutes / 60" in seat.seen
    assert [line for line in lines if line[:1] in "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" and line] == []
    assert "tides.py has 2 lines:" in lines
    assert any(line.startswith("offline/tk-1 · 3 turns · ") for line in lines)
    assert lines[0].startswith("No model has a key")
    assert seat.seen.rstrip().endswith("\x1b[0m")
    assert seat.seen.count("\x1b[?25l") == seat.seen.count("\x1b[?25h")


def test_thoughts_are_shown_in_short_unless_asked_for(shop: Shop) -> None:
    with shop.terminal("run", "read tides.py") as seat:
        seat.end()
    assert any(re.match("┊ .*tides", line) for line in seat.screen)


def test_yes_allows_a_call_once(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    with shop.terminal("run", "run `echo hi > made.txt`, then run `echo ho > made.txt`") as seat:
        question = asked(seat)
        assert "? Run a command?\n  echo hi > made.txt\n" in question
        seat.types("y\n")
        assert "echo ho > made.txt" in asked(seat)
        seat.types("y\n")
        assert seat.end() == 0
    assert (shop.project / "made.txt").read_text() == "ho\n"


def test_always_allows_what_is_like_it_from_then_on(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    with shop.terminal("run", "run `echo hi > made.txt`, then run `echo ho > made.txt`") as seat:
        assert "a = always (echo *)" in asked(seat)
        seat.types("a\n")
        assert seat.end() == 0
    assert (shop.project / "made.txt").read_text() == "ho\n"


def test_always_is_shown_as_what_it_covers_and_never_covers_configuration(shop: Shop) -> None:
    subprocess.run(["git", "init", "-q", str(shop.project)], check=True)
    configured = (shop.project / ".git" / "config").read_text()
    shop.configure(permission={"edit": "ask"})
    asks = "run `echo hi > made.txt`, then run `echo ho > made.txt`, then run `echo x > .git/config`"
    with shop.terminal("run", asks) as seat:
        question = asked(seat)
        assert "? Change a file?\n  made.txt\n  by the command: echo hi > made.txt\n" in question
        assert "  always allows: every edit except of configuration and .git\ny = once, a = always, n = no" in question
        seat.types("a\n")
        question = asked(seat)
        assert "  .git/config\n  by the command: echo x > .git/config\n" in question
        assert "a = always (the same)" in question
        seat.types("n\n")
        assert seat.end() == 1
    assert (shop.project / "made.txt").read_text() == "ho\n"
    assert (shop.project / ".git" / "config").read_text() == configured


def test_no_refuses_and_the_session_rests(shop: Shop) -> None:
    shop.configure(permission={"edit": "ask"})
    with shop.terminal("run", "replace `100` with `60` in tides.py") as seat:
        question = asked(seat)
        assert "? Change a file?\n  tides.py\n" in question
        assert "    2 +     return minutes / 60" in question
        seat.types("n\n")
        assert seat.end() == 1
    assert "stopped, because a call was refused" in seat.shown
    assert "100" in (shop.project / "tides.py").read_text()
    assert last_call(shop)["status"] == "error"


def test_words_are_advice_for_the_model_which_goes_on(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    with shop.terminal("run", "run `rm tides.py`") as seat:
        asked(seat)
        seat.types("\n")
        seat.read_until("> ")
        seat.types("look at it instead\n")
        assert seat.end() == 0
    assert "look at it instead" in str(last_call(shop)["error"])
    assert (shop.project / "tides.py").exists()


def test_what_was_typed_before_the_question_is_no_answer_to_it(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    with shop.terminal("run", "run `rm tides.py`") as seat:
        seat.types("y\n")
        asked(seat)
        seat.types("n\n")
        assert seat.end() == 1
    assert (shop.project / "tides.py").exists()


def test_the_end_of_input_is_a_no(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    with shop.terminal("run", "run `rm tides.py`") as seat:
        asked(seat)
        seat.types("\x04")
        assert seat.end() == 1
    assert (shop.project / "tides.py").exists()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_a_question_stops_and_settles(shop: Shop, sent: signal.Signals) -> None:
    shop.configure(permission={"bash": "ask"})
    with shop.terminal("run", "run `rm tides.py`") as seat:
        asked(seat)
        seat.process.send_signal(sent)
        assert seat.end() == 130
    assert "■ stopped" in seat.shown
    assert "Traceback" not in seat.seen
    assert tk(shop.data, "session", "status", "--json").json["items"] == []
    assert last_call(shop)["metadata"] == {"interrupted": True}


def test_ctrl_c_while_a_command_runs_stops_it_and_says_so(shop: Shop) -> None:
    with shop.terminal("run", "run `echo begun; sleep 20`") as seat:
        seat.read_until("│ begun")
        seat.process.send_signal(signal.SIGINT)
        assert seat.end() == 130
    shown = seat.shown
    [at] = [number for number, line in enumerate(seat.screen) if "$ echo begun; sleep 20  stopped" in line]
    assert seat.screen[at + 1].strip() == "│ begun"
    [session] = shop.sessions()
    told = tk(shop.data, "session", "messages", session["id"]).out
    assert "│ begun" in told
    assert "interrupted" in told
    assert "■ stopped; everything so far is kept" in shown
    [_, turn] = shop.messages(shop.sessions()[0]["id"])
    assert turn["info"]["error"]["name"] == "MessageAbortedError"
    assert tk(shop.data, "doctor").code == 0


def test_a_second_ctrl_c_quits_at_once_and_resume_goes_on(shop: Shop) -> None:
    # A command that does not listen keeps the first Ctrl-C waiting.
    stubborn = "trap '' TERM; echo deaf; sleep 20"
    with shop.terminal("run", f"run `{stubborn}`") as seat:
        seat.read_until("│ deaf")
        seat.process.send_signal(signal.SIGINT)
        seat.read_until("Ctrl-C again quits at once")
        seat.process.send_signal(signal.SIGINT)
        assert seat.end() == 130
    [session] = shop.sessions()
    assert f"`turnkeeper session resume {session['id']}`" in seat.shown
    assert tk(shop.data, "session", "status", session["id"], "--json").json["alive"] is False
    resumed = tk(shop.data, "session", "resume", session["id"])
    assert resumed.code == 0, resumed.err
    assert "is marked as interrupted and not run again" in resumed.err


THREAD = """
import threading
from turnkeeper import tool

@tool
def glob(pattern: str) -> str:
    "Find files."
    print("begun", flush=True)
    threading.Event().wait()
"""
COROUTINE = """
import asyncio
from turnkeeper import tool

@tool
async def glob(pattern: str) -> str:
    "Find files."
    print("begun", flush=True)
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
"""


@pytest.mark.parametrize("source", [THREAD, COROUTINE], ids=["a thread", "a coroutine"])
def test_a_run_ends_though_a_tool_ignores_that_it_was_stopped(shop: Shop, source: str) -> None:
    tools = shop.home / ".config/turnkeeper/tools"
    tools.mkdir(parents=True)
    (tools / "deaf.py").write_text(source)
    with shop.terminal("run", "list the files") as seat:
        seat.read_until("begun")
        seat.process.send_signal(signal.SIGINT)
        assert seat.end() == 130
    told = "a call of tools in deaf.py did not stop, and goes on until the program ends"
    assert told in seat.seen.replace("\r\n", " ")
    assert tk(shop.data, "session", "status", "--json").json["items"] == []
    assert last_call(shop)["metadata"] == {"interrupted": True, "left": True}
