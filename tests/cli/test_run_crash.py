"""kill -9 in the middle of a run: nothing acknowledged is lost, no side effect happens twice, resume goes on."""

import os
import select
import signal
from subprocess import DEVNULL, Popen

import pytest
from cli_store import command, tk
from workshop import Shop

# The command ends the very process that runs it, so the kill comes at one exact moment: a call is under way.
FATAL = "echo ran >> ran.txt; python3 fatal.py; sleep 1"
FATAL_PY = """
import os, signal
number, is_above = os.getppid(), False
while True:
    is_guard = "guard.py" in open(f"/proc/{number}/cmdline").read()
    if is_above and not is_guard:  # Above the guard of the command and the launcher of guards.
        os.kill(number, signal.SIGKILL)
        break
    is_above = is_above or is_guard
    number = int(open(f"/proc/{number}/stat").read().rpartition(")")[2].split()[1])
"""
# In the sandbox it could not.
UNCONFINED = {"TURNKEEPER_CONFIG_CONTENT": '{"sandbox": "off"}'}


def test_a_process_killed_while_a_command_runs_is_resumed_without_running_it_again(shop: Shop) -> None:
    (shop.project / "fatal.py").write_text(FATAL_PY)
    killed = shop.process("run", f"read tides.py, then run `{FATAL}`", **UNCONFINED)
    assert killed.returncode == -signal.SIGKILL
    [session] = shop.sessions()
    report = tk(shop.data, "session", "status", session["id"], "--json").json
    assert (report["status"], report["alive"]) == ({"type": "busy"}, False)
    resumed = tk(shop.data, "session", "resume", session["id"])
    assert resumed.code == 0, resumed.err
    assert "is gone" in resumed.err
    assert "is marked as interrupted and not run again" in resumed.err
    assert (shop.project / "ran.txt").read_text() == "ran\n"
    calls = [part for one in shop.messages(session["id"]) for part in one["parts"] if part["type"] == "tool"]
    assert [(one["tool"], one["state"]["status"]) for one in calls] == [("read", "completed"), ("bash", "error")]
    assert tk(shop.data, "session", "status", "--json").json["items"] == []
    assert tk(shop.data, "doctor").code == 0


def test_a_new_prompt_in_a_session_that_was_left_closes_it_first(shop: Shop) -> None:
    (shop.project / "fatal.py").write_text(FATAL_PY)
    shop.process("run", f"run `{FATAL}`", **UNCONFINED)
    said = shop.run("-c", "read README.md")
    assert said.code == 0, said.err
    assert said.err.startswith("Process ")
    assert "`README.md` has 1 line" in said.out
    assert (shop.project / "ran.txt").read_text() == "ran\n"
    assert tk(shop.data, "doctor").code == 0


def test_a_command_of_the_user_in_a_session_that_was_left_closes_it_first(shop: Shop) -> None:
    (shop.project / "fatal.py").write_text(FATAL_PY)
    shop.process("run", f"run `{FATAL}`", **UNCONFINED)
    said = shop.run("-c", "!echo still here")
    assert said.code == 0, said.err
    assert "is marked as interrupted and not run again" in said.err
    assert "    │ still here" in said.err
    assert tk(shop.data, "session", "status", "--json").json["items"] == []
    assert tk(shop.data, "doctor").code == 0


@pytest.mark.parametrize("refusal", ["", "trap '' TERM; "])
@pytest.mark.parametrize("prompt", ["run `{command}`", "!{command}"])
def test_a_killed_process_takes_its_commands_and_all_they_started_with_it(
    shop: Shop, prompt: str, refusal: str
) -> None:
    # Who reads a pipe hears its end when the last process that can write to it is gone.
    os.mkfifo(shop.project / "alive")
    alive = os.open(shop.project / "alive", os.O_RDONLY | os.O_NONBLOCK)
    asked = prompt.format(command=f"exec 9>alive; ({refusal}echo begun >&9; sleep 60); sleep 60")
    words = command("run", "--auto", asked)
    with Popen(words, env=shop.environ(), cwd=shop.project, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL) as program:
        assert select.select([alive], [], [], 60)[0], "the command did not begin"
        program.kill()
    assert os.read(alive, 100) == b"begun\n"
    assert select.select([alive], [], [], 30)[0], "something the command started is still running"
    assert os.read(alive, 100) == b""
    os.close(alive)


# --- Calls that wait ---------------------------------------------------------------------------------------------


def killed_at_the_second_ask(shop: Shop) -> str:
    """A session whose call had one of its two asks answered, and whose process was killed while the other waited."""
    shop.configure(permission={"bash": "ask", "edit": "ask"})
    with shop.terminal("run", "-m", "offline/tk-1", "run `date >> w.log`") as seat:
        seat.read_until("Change a file?")
        [request] = tk(shop.data, "permission", "list", "--json").json["items"]
        assert shop.process("permission", "allow", request["id"]).returncode == 0
        seat.read_until("Run a command?")
        seat.process.kill()
        seat.process.wait(60)
    [session] = shop.sessions()
    return str(session["id"])


def waiting(shop: Shop) -> list[str]:
    return [one["permission"] for one in tk(shop.data, "permission", "list", "--json").json["items"]]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("session", "recover"), 0),
        (("session", "recover", "--policy", "continue"), 0),
        (("session", "resume", "ID"), 1),
        (("run", "-c", "hello"), 1),
    ],
)
def test_a_request_that_waits_is_answered_by_nobody_but_the_user(shop: Shop, words: tuple[str, ...], code: int) -> None:
    session = killed_at_the_second_ask(shop)
    assert waiting(shop) == ["bash"]
    done = shop.process(*(session if word == "ID" else word for word in words))
    assert done.returncode == code, done.stderr
    assert "waits for an answer" in done.stdout + done.stderr
    assert "permission list" in done.stdout + done.stderr
    assert waiting(shop) == ["bash"]
    assert not (shop.project / "w.log").exists()
    [request] = tk(shop.data, "permission", "list", "--json").json["items"]
    assert shop.process("permission", "allow", request["id"]).returncode == 0
    assert waiting(shop) == []
    assert len((shop.project / "w.log").read_text().splitlines()) == 1
    assert tk(shop.data, "doctor").code == 0


def test_recover_with_auto_answers_what_waits(shop: Shop) -> None:
    killed_at_the_second_ask(shop)
    assert shop.process("session", "recover", "--auto").returncode == 0
    assert waiting(shop) == []
    assert len((shop.project / "w.log").read_text().splitlines()) == 1
