"""A script that is killed goes on where it was when it is run again, and asks no provider twice."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from turnkeeper import Scripted, TextPart, ToolPart
from turnkeeper.model.event import PromptAdmitted
from turnkeeper.sessions.ask import derived_session_id

SCRIPTS = Path(__file__).resolve().parents[1] / "support"
LIMIT_S = 120


def command(home: Path, life: str, script: str = "ask_script.py", *more: str) -> "subprocess.Popen[str]":
    environ = {"HOME": str(home), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, str(SCRIPTS / script), f"sqlite:{home / 'store.db'}", life, *more]
    return subprocess.Popen(arguments, cwd=home / "place", env=environ, stdout=subprocess.PIPE, text=True)


def test_a_killed_script_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    with command(tmp_path, "hangs") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "The \n"
        first.kill()
        assert first.wait(LIMIT_S) < 0
    with command(tmp_path, "answers") as second:
        printed, _ = second.communicate(timeout=LIMIT_S)
    assert (second.returncode, printed.splitlines()[-1]) == (0, "answer: is done.")
    with command(tmp_path, "fails") as third:
        printed, _ = third.communicate(timeout=LIMIT_S)
    assert (third.returncode, printed.splitlines()[-1]) == (0, "answer: is done.")
    assert (tmp_path / "place/effects").read_text() == "migrated\n"


def test_a_script_that_was_killed_while_a_child_session_worked_goes_on_with_it(tmp_path: Path) -> None:
    (tmp_path / "place").mkdir()
    with command(tmp_path, "hangs", "ask_child_script.py") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "digging\n"
        first.kill()
        assert first.wait(LIMIT_S) < 0
    with command(tmp_path, "answers", "ask_child_script.py") as second:
        printed, _ = second.communicate(timeout=LIMIT_S)
    assert second.returncode == 0
    assert "the child is done" in printed
    assert "digging" not in printed


@pytest.mark.parametrize("id", [None, "migration"])
async def test_a_prompt_that_waits_for_a_process_is_answered_when_that_process_is_killed(
    id: str | None, opened: Any, place: Path, tmp_path: Path
) -> None:
    answers: list[str] = []
    with command(tmp_path, "hangs") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "The \n"
        async with opened(Scripted().says("It is done.").forever(), store=f"sqlite:{tmp_path / 'store.db'}") as tk:
            session_id = derived_session_id(str(place), "migration")

            async def ask() -> None:
                prompt = "Run the migration." if id else "And now?"
                answers.append((await tk.ask(prompt, session=session_id, id=id)).text)

            with anyio.fail_after(LIMIT_S):
                async with anyio.create_task_group() as group:
                    seq = (await tk.store.queries.state(session_id)).seq
                    group.start_soon(ask)
                    if id is None:
                        async for recorded in tk.tail(session_id, after=seq):
                            if isinstance(recorded.event, PromptAdmitted):
                                break
                    await anyio.wait_all_tasks_blocked()
                    assert answers == []
                    first.kill()
            assert answers == ["It is done."]
            parts = [part async for message in tk.iter_messages(session_id) for part in message.parts]
            assert len([part for part in parts if isinstance(part, ToolPart)]) == 1
            assert not await tk.is_abandoned(session_id)
    assert (tmp_path / "place/effects").read_text() == "migrated\n"


async def test_a_background_child_session_that_was_killed_goes_on_when_its_session_is_resumed(
    opened: Any, tmp_path: Path
) -> None:
    (tmp_path / "place").mkdir(exist_ok=True)
    with command(tmp_path, "hangs", "ask_child_script.py", "background") as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "digging\n"
        async with opened(Scripted(), store=f"sqlite:{tmp_path / 'store.db'}") as tk:
            session_id = derived_session_id(str(tmp_path / "place"), "go")
            [child] = await tk.children(session_id)
            with anyio.fail_after(LIMIT_S):
                await tk.wait(session_id)
            assert not await tk.is_abandoned(child.id)
        first.kill()
        assert first.wait(LIMIT_S) < 0
    model = Scripted().says("The child goes on.").then().says("The root heard it.")
    async with opened(model, store=f"sqlite:{tmp_path / 'store.db'}") as tk:
        with anyio.fail_after(LIMIT_S):
            left = await tk.wait_family(session_id)
            assert (left.kind, child.id in left.reason) == ("abandoned", True)
            await tk.run(session_id, resume=True)
            assert (await tk.wait_family(session_id)).kind == "rested"
        state = await tk.state(session_id)
        assert [part.text for part in state.messages[-1].parts if isinstance(part, TextPart)] == ["The root heard it."]
        assert "The child goes on." in str(state.messages[-2].parts)
