"""A chat notes the files that a prompt mentions and that are not there."""

from pathlib import Path

import anyio
import pytest
from typed_lines import Lines

import turnkeeper
from turnkeeper.cli.chat.conversation import Conversation
from turnkeeper.cli.live import Live

DEADLINE_S = 120


async def test_a_mentioned_file_that_is_not_there_is_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "place"
    (place / ".turnkeeper/agent/team").mkdir(parents=True)
    (place / ".turnkeeper/agent/team/scout.md").write_text("---\nmode: subagent\n---\nLook.\n")
    (place / "here.py").touch()
    settings = turnkeeper.Settings(titles=False, environ={"HOME": str(tmp_path), "TURNKEEPER_TRUST": "1"})
    model = turnkeeper.Scripted().says("I see.").forever()
    typing = Lines("see @here.py and @gone.py", "ask @team/scout about @property", "/init @gone.md")
    live = Live(as_json=False, thinking=False, auto=True, display=typing.display(thinking=False))
    with anyio.fail_after(DEADLINE_S):
        async with turnkeeper.open("memory:", directory=place, provider=model, settings=settings) as tk:
            chat = Conversation(tk, typing, live, place)
            await chat.prepare()
            await chat.run()
    noted = [line for line in capsys.readouterr().err.splitlines() if "No such file" in line]
    assert noted == ["! No such file: gone.py; sent as text", "! No such file: gone.md; sent as text"]
