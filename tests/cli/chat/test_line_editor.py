"""The line editor, with keys from a pipe or a terminal and a screen that shows nothing."""

import asyncio
import io
import os
import pty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, redirect_stdout
from pathlib import Path

import anyio
import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.output import DummyOutput

from turnkeeper.cli.chat.completion import Candidate, Known, candidates
from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.keys import Meaning, State
from turnkeeper.cli.chat.line_editor import LineEditor

DEADLINE_S = 20.0
ENTER, NEW_LINE = "\r", "\x1b\r"
CTRL_C, CTRL_D, CTRL_O = "\x03", "\x04", "\x0f"


class Desk:
    """Takes what was heard, in place of a chat."""

    def __init__(self) -> None:
        self.state: State = "idle"
        self.status = "status"
        self.known = Known(commands={"model": "", "modes": "", "undo": ""})
        self._heard = asyncio.Queue[tuple[Meaning, str]]()

    def heard(self, meaning: Meaning, text: str) -> None:
        self._heard.put_nowait((meaning, text))

    async def complete(self, before: str) -> list[Candidate]:
        return candidates(before, self.known)

    def complete_now(self, before: str) -> list[Candidate]:
        return candidates(before, self.known)

    async def next(self) -> tuple[Meaning, str]:
        with anyio.fail_after(DEADLINE_S):
            return await self._heard.get()


class Sitting:
    """An editor that runs, its keys and what it heard."""

    def __init__(self, editor: LineEditor, keys: PipeInput, desk: Desk) -> None:
        self.editor, self.desk, self._keys = editor, desk, keys

    async def types(self, text: str) -> tuple[Meaning, str]:
        self._keys.send_text(text)
        return await self.desk.next()


@asynccontextmanager
async def sitting(folder: Path) -> AsyncIterator[Sitting]:
    with create_pipe_input() as keys:
        editor, desk = LineEditor(TypedLines(folder / "typed.jsonl"), input=keys, output=DummyOutput()), Desk()
        async with anyio.create_task_group() as group:
            group.start_soon(editor.run, desk)
            yield Sitting(editor, keys, desk)
            with anyio.fail_after(DEADLINE_S):
                editor.close()


async def test_enter_sends_and_alt_enter_begins_a_new_line(tmp_path: Path) -> None:
    async with sitting(tmp_path) as at:
        assert await at.types(f"one{NEW_LINE}two{ENTER}") == ("send", "one\ntwo")
        assert await at.types(f"{ENTER}  {ENTER}three{ENTER}") == ("send", "  three")


async def test_pasted_lines_are_one_prompt(tmp_path: Path) -> None:
    async with sitting(tmp_path) as at:
        assert await at.types(f"\x1b[200~a\nb\n\x1b[201~{ENTER}") == ("send", "a\nb\n")


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        (f"/und\t now{ENTER}", "/undo now"),
        (f"/und\t{ENTER}", "/undo"),
        (f"/mo\t now{ENTER}", "/model now"),
        (f"/mo\t\t now{ENTER}", "/modes now"),
        (f"/zz\t now{ENTER}", "/zz now"),
        (f"zz\t now{ENTER}", "zz now"),
    ],
)
async def test_keys_that_follow_a_tab_at_once_do_not_overtake_it(tmp_path: Path, keys: str, sent: str) -> None:
    async with sitting(tmp_path) as at:
        assert await at.types(keys) == ("send", sent)


async def test_while_a_turn_runs_enter_steers_and_ctrl_o_queues(tmp_path: Path) -> None:
    async with sitting(tmp_path) as at:
        at.desk.state = "running"
        assert await at.types(f"left{ENTER}") == ("steer", "left")
        assert await at.types(f"later{CTRL_O}") == ("queue", "later")


async def test_ctrl_c_stops_and_keeps_what_is_typed_but_clears_it_when_nothing_runs(tmp_path: Path) -> None:
    async with sitting(tmp_path) as at:
        at.desk.state = "running"
        assert await at.types(f"half{CTRL_C}") == ("stop", "")
        at.desk.state = "idle"
        assert await at.types(f" done{ENTER}") == ("send", "half done")
        assert await at.types(f"wrong{CTRL_C}right{ENTER}") == ("send", "right")
        assert await at.types(CTRL_C) == ("hint", "")


async def test_ctrl_d_leaves_only_from_an_empty_prompt(tmp_path: Path) -> None:
    async with sitting(tmp_path) as at:
        assert await at.types(f"ab\x01{CTRL_D}{ENTER}") == ("send", "b")
        assert await at.types(CTRL_D) == ("leave", "")


async def test_a_refused_text_is_put_back_unless_something_else_is_being_typed(tmp_path: Path) -> None:
    async with sitting(tmp_path) as at:
        at.editor.put_back("again")
        at.editor.put_back("never")
        assert await at.types(f"!{ENTER}") == ("send", "again!")


async def test_bytes_that_are_not_text_become_question_marks(tmp_path: Path) -> None:
    async with sitting(tmp_path) as at:
        at.editor.put_back("caf\udce9")
        assert await at.types(ENTER) == ("send", "caf?")


@pytest.mark.parametrize("key", [ENTER, CTRL_O])
async def test_an_empty_prompt_is_never_sent(tmp_path: Path, key: str) -> None:
    async with sitting(tmp_path) as at:
        assert await at.types(f"{key} {key}{CTRL_C}") == ("hint", "")


class Pressed(io.StringIO):
    """An output during which a key is pressed."""

    def __init__(self, terminal: int, key: str) -> None:
        super().__init__()
        self._terminal, self._key = terminal, key

    def write(self, text: str) -> int:
        os.write(self._terminal, self._key.encode())
        return super().write(text)


async def test_ctrl_d_while_an_answer_is_printed_is_heard(tmp_path: Path) -> None:
    ours, its = pty.openpty()
    with open(its, encoding="utf-8") as terminal, redirect_stdout(Pressed(ours, CTRL_D)) as printed:
        desk, history = Desk(), TypedLines(tmp_path / "typed.jsonl")
        editor = LineEditor(history, input=Vt100Input(terminal), output=DummyOutput())
        async with anyio.create_task_group() as group:
            group.start_soon(editor.run, desk)
            editor.display(thinking=False).note("an answer")
            assert await desk.next() == ("leave", "")
            editor.close()
    os.close(ours)
    assert "an answer" in printed.getvalue()
