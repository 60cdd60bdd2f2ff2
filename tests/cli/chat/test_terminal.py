"""A chat as its user sees it, on a real terminal."""

import os
import signal
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager

from cli_store import tk
from pane import Pane
from workshop import Shop

Opens = Callable[..., AbstractContextManager[Pane]]
IDLE = r"Alt-Enter new line"
RUNNING = r"Enter steers"


def says(at: Pane, text: str, *keys: str) -> None:
    at.types(text)
    at.presses(*(keys or ("Enter",)))


def prompts(shop: Shop) -> list[str]:
    """What users said in the newest session."""
    [newest, *_] = shop.sessions()
    return [
        part["text"]
        for one in shop.messages(newest["id"])
        if one["info"]["role"] == "user"
        for part in one["parts"]
        if part["type"] == "text" and not part.get("synthetic")
    ]


def kill(shop: Shop) -> None:
    """Kill the process that runs a session, so that it can do nothing about it."""
    [left] = tk(shop.data, "session", "status", "--json").json["items"]
    os.kill(left["owner"]["pid"], signal.SIGKILL)


def test_without_arguments_a_terminal_gets_a_chat(shop: Shop, opens: Opens) -> None:
    with opens() as at:
        at.shows("No model has a key, so the offline model answers", "»", "build · offline/tk-1 · new session", IDLE)
        assert shop.sessions() == []
        says(at, "read tides.py")
        at.shows("> build · offline/tk-1", "→ read tides.py", "tides.py has 2 lines", r"2 turns", IDLE)
        says(at, "/quti")
        at.shows("There is no /quti. Did you mean /quit?")
        at.presses("C-c")
        at.shows("Ctrl-D or /quit leaves")
        at.presses("C-d")
        at.shows("go on with: tk", "exit code 0")
    assert prompts(shop) == ["read tides.py"]
    [kept] = (shop.data / "chat-history").iterdir()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert kept.read_text() == '"read tides.py"\n"/quti"\n'


def test_a_chat_offers_the_session_of_the_directory_and_what_was_typed_before(shop: Shop, opens: Opens) -> None:
    shop.run("read tides.py")
    with opens() as at:
        at.shows(r'Continue "Read tides.py" \(.*\)\? \[Y/n\]')
        says(at, "now the rest")
        at.shows(r"y or n\?")
        at.presses("Enter")
        at.shows("» read tides.py", "has 2 lines", IDLE)
        says(at, "read README.md")
        at.shows("README.md has 1 line", IDLE)
        at.presses("C-d")
        at.shows("exit code 0")
    assert prompts(shop) == ["read tides.py", "read README.md"]
    with opens("chat", "--new") as at:
        at.shows("new session", IDLE)
        at.presses("Up")
        at.shows("» read README.md")
        at.presses("C-c")
        at.hides("» read README.md")
        says(at, "/quit")
        at.shows("exit code 0")
    assert len(shop.sessions()) == 1


def test_tab_completes_commands_models_and_files_that_are_not_ignored(shop: Shop, opens: Opens) -> None:
    (shop.project / ".ignore").write_text("tidal.log\n")
    (shop.project / "tidal.log").write_text("")
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        at.types("/mod")
        at.shows("/model +show or choose the model")
        at.presses("Tab")
        at.shows("» /model")
        at.types(" tk")
        at.shows("offline/tk-1")
        at.presses("Tab", "Enter", "Enter")
        at.shows("offline/tk-1 answers from the next prompt on")
        at.types("what does @tid")
        shown = at.shows("@tides.py")
        assert "tidal.log" not in shown
        at.presses("Tab")
        at.types(" do?")
        at.presses("Enter")
        at.shows(r"» what does @tides.py do\?", r"1 turn", IDLE)
    files = [part for part in shop.messages(shop.sessions()[0]["id"])[0]["parts"] if part["type"] == "file"]
    assert [one["filename"] for one in files] == ["tides.py"]


def test_symbols_are_completed_at_once_and_help_stands_beside_its_names(shop: Shop, opens: Opens) -> None:
    with opens() as at:
        at.shows(IDLE)
        at.types("see @tid\t#ho\t now")
        at.shows(r"» see @tides\.py#hours now")
        at.presses("C-c")
        at.hides("see @tides")
        says(at, "/help")
        at.shows(r"/review \$ARGUMENTS +Review what is not committed", r"/undo +undo the last prompt")
        at.presses("C-d")
        at.shows("exit code 0")


def test_a_question_is_answered_in_place_and_what_was_half_typed_comes_back(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"edit": "ask"})
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        at.types("replace `100` with `60` in tides.py")
        at.presses("Enter", "n", "e", "x", "t")
        at.shows(r"\? Change a file\?", r"2 \+     return minutes / 60", "y = once")
        says(at, "y")
        at.shows(r"± edit tides.py  \+1 -1", r"3 turns", "» next", IDLE)
    assert "60" in (shop.project / "tides.py").read_text()
    assert prompts(shop) == ["replace `100` with `60` in tides.py"]


def test_prompts_typed_meanwhile_are_steered_or_queued_and_shown_as_such(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `until test -e go; do sleep 0.05; done`")
        at.shows(RUNNING)
        says(at, "read tides.py")
        at.shows("» read tides.py\n  steers: the model reads it before its next step")
        says(at, "read README.md", "C-o")
        at.shows("» read README.md\n  queued: sent when this answer is complete")
        says(at, "/undo")
        at.shows("/undo can be used when the answer is complete")
        (shop.project / "go").touch()
        at.shows("tides.py has 2 lines", "README.md has 1 line", r"\d turns", IDLE)
    assert prompts(shop)[1:] == ["read tides.py", "read README.md"]


def test_ctrl_c_stops_the_turn_and_not_the_program(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `touch begun; sleep 600`")
        at.shows(RUNNING, r"sleep 600  \d+ s")
        at.presses("C-c")
        at.shows("sleep 600  stopped", "■ stopped; everything so far is kept", IDLE)
        says(at, "read README.md")
        at.shows("README.md has 1 line", IDLE)
        says(at, "run `sleep 601`")
        at.shows(RUNNING, r"sleep 601  \d+ s")
        at.presses("C-d")
        at.shows("sleep 601  stopped", "exit code 0")
    assert tk(shop.data, "session", "status", "--json").json["items"] == []


def test_ctrl_c_at_a_question_stops_the_turn_and_not_the_program(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `rm tides.py`")
        at.shows("y = once")
        at.presses("C-c")
        at.shows("■ stopped", IDLE)
        says(at, "read README.md")
        at.shows("README.md has 1 line", IDLE)
    assert (shop.project / "tides.py").exists()


def test_a_killed_chat_goes_on_and_does_nothing_twice(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `echo once >> log; sleep 600`, then read README.md")
        at.shows(RUNNING, r"sleep 600  \d+ s")
        says(at, "read tides.py", "C-o")
        at.shows("queued")
        kill(shop)
        at.shows("exit code 137")
    with opens() as at:
        at.shows(r'Continue "Run [^?]*\?\s*\[\s*Y\s*/\s*n')
        at.presses("Enter")
        at.shows("is gone", r"interrupted and not run\s+again", r"Go on with it now\? \[Y/n\]")
        at.presses("Enter")
        at.shows("tides.py has 2 lines", IDLE)
    assert (shop.project / "log").read_text() == "once\n"
    assert prompts(shop) == ["run `echo once >> log; sleep 600`, then read README.md", "read tides.py"]


def test_a_waiting_question_is_shown_by_the_next_chat(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `echo hi > made`")
        at.shows("y = once")
        kill(shop)
        at.shows("exit code 137")
    with opens("chat", "--continue") as at:
        at.shows("waits for your answer", r"\? Run a command\?", "y = once")
        says(at, "y")
        at.shows("printed nothing", IDLE)
    assert (shop.project / "made").read_text() == "hi\n"


def test_options_of_the_chat_need_not_name_it(shop: Shop, opens: Opens) -> None:
    with opens("--new", "--agent", "plan") as at:
        at.shows("plan · offline/tk-1 · new session", IDLE)
        at.presses("C-d")
        at.shows("exit code 0")


def test_a_session_that_is_opened_again_is_shown_without_what_is_undone(shop: Shop, opens: Opens) -> None:
    shop.run("read README.md")
    with opens("chat", "--continue") as at:
        at.shows("has 1 line", IDLE)
        says(at, "read tides.py")
        at.shows("tides.py has 2 lines", r"2 turns", IDLE)
        says(at, "/undo")
        at.shows(r"\[y/N\]")
        says(at, "y")
        at.shows("Redo brings back what is undone", IDLE)
        at.presses("C-d")
        at.shows("exit code 0")
    with opens("chat", "--continue") as at:
        shown = at.shows("» read README.md", "What came after it is undone. /redo brings it back", IDLE)
        assert "has 2 lines" not in shown


def test_a_session_of_any_store_is_exported_into_a_directory(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n", "--store", f"files:{shop.home / 'elsewhere'}") as at:
        at.shows(IDLE)
        says(at, "read README.md")
        at.shows(r"\d turns?", IDLE)
        says(at, f"/export {shop.home}")
        at.shows("Exported 1 session to", IDLE)
        [file] = shop.home.glob("ses_*.json")
        assert "README.md" in file.read_text()


def test_undo_fork_sessions_and_cost(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "/undo")
        at.shows("/undo needs a session")
        says(at, "write notes.txt: hello")
        at.shows(r"\d turns", IDLE)
        says(at, "/export")
        at.shows("give the file: /export session.json", IDLE)
        says(at, "/export ../kept.json")
        at.shows("Exported 1 session to", IDLE)
        assert "notes.txt" in (shop.project.parent / "kept.json").read_text()
        says(at, "/undo")
        at.shows(r"notes.txt  is deleted", r"\[y/N\]")
        says(at, "y")
        at.shows("1 file changed. Redo brings back what is undone, until the next prompt.", IDLE)
        assert not (shop.project / "notes.txt").exists()
        says(at, "/redo")
        at.shows(r'Redo "write.*\[y/N\]')
        says(at, "y")
        at.shows("Nothing is undone any more")
        says(at, "/fork")
        at.shows("This is .* now, a copy", r"\(for…")
        [copy] = [one["id"] for one in shop.sessions() if "(fork" in one["title"]]
        prompt = next(one["info"]["id"] for one in shop.messages(copy) if one["info"]["role"] == "user")
        says(at, f"/fork {prompt}")
        at.shows("This is .* now, a copy", "» write notes.txt: hello")
        at.types("\x03")
        at.shows(IDLE)
        says(at, "/sessions")
        at.shows(r"SESSION +UPDATED +TITLE")
        says(at, "/cost")
        at.shows(r"Cost +\$0.00", "Session +ses_")
        says(at, "/model foo/bar")
        at.shows("no model 'foo/bar' can be used here")
        says(at, "/agent nobody")
        at.shows("no agent 'nobody' can answer here; there are: build, plan")
        says(at, "/agent plan")
        at.shows("The agent plan answers", "plan · offline/tk-1")
        says(at, "/help")
        at.shows(r"/undo", r"Ctrl-O")
    assert (shop.project / "notes.txt").read_text().strip() == "hello"
    assert len(shop.sessions()) == 3


def test_a_narrow_and_a_resized_terminal_show_the_same(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n", size=(40, 24)) as at:
        at.shows("»", "build · offline/tk-1 · new session")
        says(at, "read tides.py")
        at.shows("tides.py has 2 lines", r"2 turns")
        at.tmux("resize-window", "-x", "20", "-y", "8")
        at.shows("»", "build · offline/tk…")
        at.tmux("resize-window", "-x", "100", "-y", "30")
        at.shows(IDLE)  # There is room for it again; tmux tells the program some time after it was told.
        says(at, "read README.md")
        at.shows("README.md has 1 line", IDLE)


def test_a_terminal_that_cannot_move_its_cursor_gets_plain_lines(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n", TERM="dumb", PYTHONIOENCODING="ascii") as at:
        at.shows("No model has a key", "(?m)^>$")
        says(at, "read tides.py")
        at.shows("`tides.py` has 2 lines", r"2 turns", "(?m)^>$")
        says(at, "/nothing")
        at.shows("There is no /nothing")
        at.presses("C-c")
        at.shows("Ctrl-D or /quit leaves")
        at.presses("C-d")
        at.shows("exit code 0")
    assert prompts(shop) == ["read tides.py"]


def test_other_encodings_and_no_colours_are_no_problem(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n", PYTHONIOENCODING="ascii", NO_COLOR="1") as at:
        at.shows("Alt-Enter new line")
        says(at, "read tides.py ünd")
        at.shows(r"1 turn|2 turns", "Alt-Enter new line")
        says(at, "/quit")
        at.shows("exit code 0")


def test_without_a_terminal_there_is_help_and_no_chat(shop: Shop) -> None:
    alone = shop.process()
    assert (alone.returncode, alone.stderr) == (0, "")
    assert "Usage: turnkeeper COMMAND" in alone.stdout
    asked = shop.process("chat")
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "a chat needs a terminal; `turnkeeper run MESSAGE` sends one prompt without" in asked.stderr
    assert shop.process("chat", "--json").returncode == 2


def test_other_commands_do_not_load_the_line_editor(shop: Shop) -> None:
    for words in (["session", "list"], ["run", "-m", "offline/tk-1", "hello"]):
        done = shop.process(*words, PYTHONPROFILEIMPORTTIME="1")
        assert done.returncode == 0
        assert "prompt_toolkit" not in done.stderr
