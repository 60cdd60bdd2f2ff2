"""The full screen as its user sees it, on a real terminal."""

import os
import pty
import select
import signal
import termios
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress

import pytest
from chat_pane import chat_pane
from cli_store import command, tk
from clients import DEADLINE_S
from pane import Pane
from server_process import serving
from workshop import Shop

Opens = Callable[..., AbstractContextManager[Pane]]
IDLE = r"Alt-Enter"  # Of the keys at the bottom, the one that is told only while nothing runs.
RUNNING = r"running \d+ s"


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


def test_without_arguments_a_terminal_gets_the_full_screen(shop: Shop, opens: Opens) -> None:
    with opens() as at:
        at.shows("new session", IDLE, "No model has a key, so the offline model answers")
        says(at, "read tides.py")
        at.shows("» read tides.py", "> build · offline/tk-1", "→ read tides.py", "tides.py has 2 lines", "window", IDLE)
        at.presses("C-d")
        at.shows("go on with: tk", "exit code 0")
    assert prompts(shop) == ["read tides.py"]


def test_what_was_said_stands_one_empty_line_apart(shop: Shop, opens: Opens) -> None:
    shop.run("read tides.py, then run `echo high`")
    with opens("chat", "-c") as at:
        shown = at.shows("» read tides.py", "echo high printed:", IDLE)
    lines = [line.strip(" ▁▂▃▄▅▆▇█") for line in shown.splitlines()]
    said = lines[
        lines.index("» read tides.py, then run `echo high`") : lines.index(
            "(tk-1 is a rule-based stand-in, not a language model.)"
        )
    ]
    assert "\n\n\n" not in "\n".join(said)
    assert [lines[nth - 1] for nth, line in enumerate(lines) if line.startswith("┊")] == ["", "", ""]


def test_what_was_typed_before_is_searched(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        for text in ("list the files", "read tides.py"):
            says(at, text)
            at.shows(f"» {text}", IDLE)
        at.presses("C-r")
        at.shows("typed before", "list the files", "read tides.py")
        at.types("files")
        at.hides(r"│ read tides.py")
        at.presses("Enter")
        at.hides("type to search")
        at.types(" again")
        at.shows(r"list the files again")
    assert prompts(shop) == ["list the files", "read tides.py"]


def test_a_request_leaves_the_transcript_as_wide_as_it_was(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with opens("chat", "-n", size=(100, 14)) as at:
        at.shows(IDLE)
        says(at, "read tides.py")
        at.shows("has 2 lines", IDLE)
        bar = max(len(line) for line in at.screen().splitlines()[1:-3])
        says(at, "run `echo yes`")
        shown = at.shows("WAITING FOR YOU", "y once")
        assert max(len(line) for line in shown.splitlines()[1:-3]) == bar == 100


def test_a_session_is_chosen_from_the_list_and_shown_with_its_history(shop: Shop, opens: Opens) -> None:
    shop.run("read tides.py")
    shop.run("read README.md")
    with opens() as at:
        at.shows("sessions", "Read tides.py", "Read README.md")
        at.types("lines")  # A word of an answer, and of no title.
        at.hides("Read README.md")
        at.presses("Enter")
        at.shows("» read tides.py", "has 2 lines", IDLE)
        at.hides("type to search")
        says(at, "list the files")
        at.shows("» list the files", IDLE)
        says(at, "/quit")
        at.shows("exit code 0")
    assert len(shop.sessions()) == 2


def test_a_request_is_answered_by_a_key_with_its_diff_on_the_screen(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"edit": "ask"})
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "replace `100` with `60` in tides.py")
        at.shows("WAITING FOR YOU", r"2 \+     return minutes / 60", "y once")
        at.presses("y")
        at.shows(r"± edit tides.py  \+1 -1")
        at.hides("WAITING")
        at.shows(IDLE)
        at.presses("C-d")
        at.shows("exit code 0")
    assert "60" in (shop.project / "tides.py").read_text()


def test_who_types_is_not_disturbed_by_a_request(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `echo yes`")
        at.types("yyy")
        at.shows("WAITING FOR YOU", "yyy", "y once")
        at.presses("Tab")
        at.shows("┏━ WAITING FOR YOU")  # The card has the focus.
        at.presses("n")
        at.shows("refused")
        at.hides("WAITING")
        assert "yyy" in at.screen()


def test_a_running_turn_is_steered_queued_and_stopped(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `until test -e go; do sleep 0.05; done`")
        at.shows(RUNNING, r"running \d+ s", "Enter steers")
        says(at, "read tides.py")
        at.shows("steers: the model reads it before its next step")
        says(at, "read README.md", "C-o")
        at.shows("queued: sent when this answer is complete")
        (shop.project / "go").touch()
        at.shows("tides.py has 2 lines", "README.md has 1 line", IDLE)
        says(at, "run `sleep 600`")
        at.shows(RUNNING, r"\$ sleep 600 +running")
        at.presses("Escape")
        at.shows("Esc again stops the turn")
        at.presses_until("Escape", "stopped")
        at.shows(IDLE)
        at.presses("C-d")
        at.shows("exit code 0")
    assert prompts(shop)[:3] == ["run `until test -e go; do sleep 0.05; done`", "read tides.py", "read README.md"]


def test_undo_shows_what_becomes_of_files_and_redo_brings_them_back(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "replace `100` with `60` in tides.py")
        at.shows(r"± edit tides.py  \+1 -1")
        at.shows(IDLE)
        at.presses("C-x", "u")
        at.shows("tides.py  is put back", r"Undo .*\?", "y yes")
        assert "60" in (shop.project / "tides.py").read_text()
        at.presses("y")
        at.shows("1 file changed")
        assert "100" in (shop.project / "tides.py").read_text()
        at.hides("± edit tides.py")
        says(at, "/redo")
        at.shows(r"Redo .*\?")
        at.presses("y")
        at.shows("± edit tides.py", "Nothing is undone any more")
    assert "60" in (shop.project / "tides.py").read_text()


@pytest.mark.parametrize(
    ("words", "code"), [(("-n",), 0), (("-n", "--plain"), 128 + signal.SIGTERM)], ids=["full screen", "lines"]
)
def test_a_program_that_is_told_to_end_does_not_wait_for_the_answer_to_a_question(
    shop: Shop, opens: Opens, words: tuple[str, ...], code: int
) -> None:
    with opens("chat", *words) as at:
        at.shows("offline model")
        says(at, "replace `100` with `60` in tides.py")
        at.shows(r"offline/tk-1 · 3 turns")
        says(at, "/undo")
        at.shows("tides.py  is put back", r"Undo .*\?")
        os.kill(at.program(), signal.SIGTERM)
        at.shows(f"exit code {code}")
    assert "60" in (shop.project / "tides.py").read_text()


def test_what_a_killed_process_left_is_told_and_taken_up(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `touch started; sleep 600`")
        at.shows(RUNNING, r"\$ touch started; sleep 600 +running")  # Recorded: the answer is not asked for anew.
        [left] = tk(shop.data, "session", "status", "--json").json["items"]
        os.kill(left["owner"]["pid"], signal.SIGKILL)
        at.shows("exit code 137")
    with opens("chat", "--continue") as at:
        at.shows("is gone", "Go on with it now", "y yes")
        at.presses("y")
        at.shows("stopped", IDLE)
        at.hides("Go on with it now")


def test_files_models_and_agents_are_completed_and_chosen(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        at.types("what does @tid")
        at.shows("@tides.py")
        at.presses("Tab")
        at.shows("what does @tides.py")
        at.types(" do?")
        at.presses("Enter")
        at.shows(r"» what does @tides.py do\?", "tides.py")
        at.shows(IDLE)
        at.presses("F3")
        at.shows("models", "offline/tk-1")
        at.presses("Enter")
        at.shows("offline/tk-1 answers from the next prompt on")
        at.presses("F4")
        at.shows("agents", "plan")
        at.types("plan")
        at.hides("│ build")
        at.presses("Enter")
        at.shows("The agent plan answers from the next prompt on")
        at.presses("F1")
        at.shows("keys and commands", "steers")
        at.presses("Escape")
        at.hides("keys and commands")


def test_calls_unfold_and_the_transcript_scrolls(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n", size=(80, 40)) as at:
        at.shows(IDLE)
        says(at, "run `seq 1000 1040`")
        at.shows("35 more above", "1040", "2 turns", IDLE)
        at.presses("Tab")
        at.shows("█ offline/tk-1 · 2 turns")  # The entry that has the focus is marked.
        at.presses("k")
        at.shows("█ seq 1000 1040 printed")
        at.presses("k")
        at.shows("█ ┊ The result is in")
        at.presses("k")
        at.shows(r"█ \$ seq 1000 1040")
        at.presses("o")
        at.hides("more above")
        at.presses("Escape")
        at.hides("█")
        at.presses("PageUp", "PageUp", "PageUp")
        at.shows("» run", "Ctrl-End")
        at.presses("C-End")
        at.hides("Ctrl-End")


def test_a_session_of_a_server_is_shown_and_goes_on_without_us(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"bash": "ask"})
    with serving(shop) as url:
        with opens("chat", "-n", "--server", url) as at:
            at.shows(IDLE)
            says(at, "run `echo hello`")
            at.shows("WAITING FOR YOU", "echo hello", "y once")
            at.presses("y")
            at.shows(r"\$ echo hello", "│ hello", IDLE)
            at.presses("C-d")
            at.shows("exit code 0")
        with opens("chat", "--continue", "--server", url) as at:
            at.shows("» run `echo hello`", "│ hello", IDLE)


def test_a_small_terminal_gets_lines(shop: Shop, opens: Opens) -> None:
    with opens("chat", "-n", size=(38, 20)) as at:
        at.shows("»")
        at.presses("C-d")
        at.shows("exit code 0")


def test_hostile_text_neither_moves_the_cursor_nor_draws_over_the_screen(shop: Shop, opens: Opens) -> None:
    (shop.project / "evil.sh").write_text("printf '\\033[2J\\033]0;owned\\007\\033[5;5Hover here [bold]x[/bold]\\n'\n")
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "run `sh evil.sh`")
        at.shows("over here", r"\[bold\]x\[/bold\]", "» run `sh evil.sh`", "new session|Run")
        assert at.tmux("display-message", "-p", "#{pane_title}").strip() != "owned"


def test_the_program_ends_with_its_terminal(shop: Shop) -> None:
    process_id, terminal = pty.fork()
    if process_id == 0:
        os.chdir(shop.project)
        words = command("chat", "--new")
        os.execve(words[0], words, {**shop.environ(), "TERM": "xterm-256color"})
    termios.tcsetwinsize(terminal, (40, 100))
    ended = os.pidfd_open(process_id)
    try:
        drawn = b""
        while b"F1 keys" not in drawn:
            assert select.select([terminal], [], [], DEADLINE_S)[0], drawn[-2_000:]
            drawn += os.read(terminal, 1 << 16)
        os.close(terminal)  # The kernel hangs up on the program.
        assert select.select([ended], [], [], DEADLINE_S)[0], "the program outlives its terminal"
    finally:
        os.close(ended)
        with suppress(ProcessLookupError):
            os.kill(process_id, signal.SIGKILL)
        os.waitpid(process_id, 0)


def test_the_list_of_keys_fits_a_small_terminal_and_says_how_to_leave_it(shop: Shop) -> None:
    with chat_pane(shop, "chat", "-n", size=(80, 24)) as at:
        at.shows(IDLE)
        at.presses("F1")
        shown = at.shows("keys and commands", "Esc leaves")
        # A second line of a text stands below the first one, not below the key.
        assert all(line[5:].startswith((" ", "…")) or len(line[5:].split("  ")) > 1 for line in dialog(shown))


def dialog(screen: str) -> list[str]:
    """The lines of a dialog between its borders."""
    return [line.split("│")[1] for line in screen.splitlines() if line.count("│") >= 2]


def test_a_call_that_is_asked_about_waits_and_a_session_without_a_title_is_new(shop: Shop, opens: Opens) -> None:
    shop.configure(permission={"edit": "ask"})
    with opens("chat", "-n") as at:
        at.shows(IDLE)
        says(at, "replace `100` with `60` in tides.py")
        shown = at.shows("WAITING FOR YOU", "y once", r"± edit tides.py  waiting for you", r"running \d+ s  waiting")
        assert "New session - 2" not in shown
        at.presses("n")
        at.hides("waiting for you")
        at.shows(IDLE)


def test_on_a_small_terminal_a_request_and_the_dialogs_name_their_keys(shop: Shop) -> None:
    shop.configure(permission={"edit": "ask"})
    with chat_pane(shop, "chat", "-n", size=(40, 12)) as at:
        at.shows("new session")
        says(at, "replace `100` with `60` in tides.py")
        at.shows("WAITING FOR YOU", "Change a file", "y once · a always · n refuse")
        at.presses(*["Down"] * 8)
        at.shows("always allows")
        at.presses("y")
        at.hides("WAITING")
        at.shows("Alt-Enter")
        at.presses("F1")
        at.shows("keys and commands", "Esc leaves")
        at.presses("q")
        at.hides("Esc leaves")
        at.presses("F2")
        at.shows("type to search", "Enter chooses")
        at.presses("Enter")
        at.hides("Enter chooses")
        at.presses("C-x")
        at.shows("n new")
        at.presses("u")
        at.shows("is put back", "Undo", "y yes")
