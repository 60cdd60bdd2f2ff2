"""The real opencode terminal UI, attached to our server, in a terminal whose screen is looked at."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
import pytest
from clients import Served, binary, environment, needs, serving
from pane import Pane, pane

pytestmark = needs(program=True, terminal=True)

READY = r"Ask anything"
DONE = r"▣  Build · Scripted One · [\d.]+m?s"
"""The line under an answer that is complete: who gave it, and how long it took."""


@contextmanager
def attached(url: str, project: Path, home: Path) -> Iterator[Pane]:
    """The terminal UI as it stands when it has booted."""
    command = [str(binary()), "attach", url, "--dir", str(project)]
    with pane(command, cwd=home, environ=environment(home)) as shown:
        shown.shows(READY, r"Build · Scripted One Scripted", r"1\.18\.33")
        yield shown


@pytest.fixture
def ui(served: Served, project: Path, home: Path) -> Iterator[Pane]:
    with attached(served.url, project, home) as shown:
        yield shown


def prompt(ui: Pane, words: str, *patterns: str) -> str:
    """Send a prompt, and look once all of this is there."""
    ui.types(words)
    ui.presses("Enter")
    return ui.shows(*patterns)


def command(ui: Pane, name: str, *patterns: str) -> str:
    """Choose a command by its name."""
    ui.types(f"/{name}")
    ui.shows(rf"/{name} +[A-Z]")  # The list of commands, which Enter chooses from.
    ui.presses("Enter")
    return ui.shows(*patterns)


def titles(served: Served, project: Path) -> set[str]:
    found = httpx2.get(f"{served.url}/session", params={"directory": str(project)}).json()
    return {one["title"] for one in found}


def test_it_boots_streams_an_answer_and_shows_tools(ui: Pane, served: Served, project: Path) -> None:
    prompt(ui, "[[slow 20 100]]", r"tick tick tick", r"esc interrupt")  # Before its end: the answer streams.
    ui.shows(DONE, r"Scripted title")
    prompt(ui, "[[read opencode.json]] [[text Read it is.]]", r"→ Read opencode\.json", r"\n +Read it is\.")
    asked = prompt(ui, "[[bash echo it-$((40+2))]] [[text It ran.]]", r"Permission required", r"Allow once")
    assert "it-42" not in asked
    ui.presses("Enter")
    ui.shows(r"it-42", r"\n +It ran\.")
    assert titles(served, project) == {"Scripted title"}


def test_sessions_are_listed_renamed_and_changed_between(ui: Pane, served: Served, project: Path) -> None:
    prompt(ui, "[[text Said in the first.]]", r"\n +Said in the first\.", DONE, r"Scripted title")
    command(ui, "rename", r"Rename [Ss]ession", r"enter")
    ui.presses("C-u")
    ui.types("The first one")
    ui.presses("Enter")
    ui.hides(r"Rename [Ss]ession")
    ui.shows(r"The first one")
    assert titles(served, project) == {"The first one"}

    command(ui, "new", READY)
    prompt(ui, "[[text Said in the second.]]", r"\n +Said in the second\.", DONE, r"Scripted title")
    listed = command(ui, "sessions", r"Sessions +esc", r"Today", r"The first one", r"● Scripted title")
    assert listed.index("● Scripted title") < listed.index("The first one")  # The newest is on top.
    ui.presses("Down", "Enter")
    back = ui.shows(r"\n +Said in the first\.", r"The first one")
    assert "Said in the second." not in back


def test_a_session_is_forked_and_compacted(ui: Pane, served: Served, project: Path) -> None:
    prompt(ui, "[[text Said first.]]", r"\n +Said first\.", DONE, r"Scripted title")
    prompt(ui, "[[text Said second.]]", r"\n +Said second\.")
    command(ui, "fork", r"Fork session", r"Full session")
    ui.presses("Down", "Enter")
    forked = ui.shows(r"Scripted title \(fork #1\)", r"\n +Said first\.")
    assert "\n     Said second." not in forked  # It ends before that prompt, which stands ready to be sent otherwise.
    assert "[[text Said second.]]" in forked
    assert titles(served, project) == {"Scripted title", "Scripted title (fork #1)"}
    ui.presses("C-u")
    ui.hides(r"Said second")
    command(ui, "compact", r"─ Compaction ─", r"▣  Compaction · Scripted One", r"Assistant: Said first\.")
    prompt(ui, "[[text Said after it.]]", r"\n +Said after it\.")


def test_a_turn_is_interrupted(ui: Pane) -> None:
    prompt(ui, "[[slow 1000 100]]", r"tick tick", r"esc interrupt")
    ui.presses("Escape")
    ui.shows(r"esc again to interrupt")
    ui.presses("Escape")
    stopped = ui.shows(r"▣  Build · Scripted One · interrupted")
    assert "tick tick" in stopped
    prompt(ui, "[[text Said afterwards.]]", r"\n +Said afterwards\.", DONE)


def test_a_prompt_is_undone_and_redone_with_its_files(ui: Pane, project: Path) -> None:
    made = project / "made.txt"
    prompt(ui, "[[write made.txt|hello]] [[text It is written.]]", r"\n +It is written\.", DONE)
    assert made.read_text() == "hello"
    undone = command(ui, "undo", r"1 message reverted", r"made\.txt")
    assert "\n     It is written." not in undone
    assert not made.exists()
    ui.hides(r"esc interrupt")
    ui.presses("C-u")  # The prompt stands ready to be sent otherwise.
    ui.hides(r"\[\[write")
    command(ui, "redo", r"\n +It is written\.")
    assert made.read_text() == "hello"


def test_it_comes_back_when_its_server_was_restarted(provider: str, project: Path, home: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with ExitStack() as stack:
        with serving(place, place, provider) as first:
            ui = stack.enter_context(attached(first.url, project, home))
            prompt(ui, "[[text Said before.]]", r"\n +Said before\.", DONE)
        port = first.url.rpartition(":")[2]
        again = stack.enter_context(serving(place, place, provider, "--log-level", "info", port=port))
        again.logs("GET /global/event")  # It listens again: what is said from now on is shown.
        prompt(ui, "[[text Said afterwards.]]", r"\n +Said before\.", r"\n +Said afterwards\.")


def test_a_permission_that_was_asked_before_a_kill_is_answered_after_it(
    provider: str, project: Path, home: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with serving(place, place, provider) as first:
        with attached(first.url, project, home) as ui:
            prompt(ui, "[[bash echo it-$((40+2))]] [[text It ran.]]", r"Permission required", r"Allow once")
        [session] = httpx2.get(f"{first.url}/session", params={"directory": str(project)}).json()
        first.kill()
    left = "WARNING turnkeeper.server.serving: sessions that a dead process left open were looked after: 1"
    with serving(place, place, provider, expected=left) as again:
        command = [str(binary()), "attach", again.url, "--dir", str(project), "--session", session["id"]]
        with pane(command, cwd=home, environ=environment(home)) as ui:
            # The terminal UI asks for no list of what waits: the server announces it.
            assert "it-42" not in ui.shows(r"Permission required", r"Allow once")
            ui.presses("Enter")
            ui.shows(r"it-42", r"\n +It ran\.")


@pytest.mark.soak
def test_a_terminal_ui_that_stayed_open_answers_after_the_kill_too(
    provider: str, project: Path, home: Path, tmp_path: Path
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    with ExitStack() as stack:
        with serving(place, place, provider) as first:
            ui = stack.enter_context(attached(first.url, project, home))
            prompt(ui, "[[bash echo it-$((40+2))]] [[text It ran.]]", r"Permission required", r"Allow once")
            first.kill()
        port = first.url.rpartition(":")[2]
        left = "WARNING turnkeeper.server.serving: sessions that a dead process left open were looked after: 1"
        start = serving(place, place, provider, "--log-level", "info", port=port, expected=left)
        again = stack.enter_context(start)
        again.logs("GET /global/event")
        assert "it-42" not in ui.shows(r"Permission required", r"Allow once")
        ui.presses("Enter")
        ui.shows(r"it-42", r"\n +It ran\.")
