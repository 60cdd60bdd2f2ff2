"""Plugins of a project in files, and what became of a session with them."""

from pathlib import Path

from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.testing.harness import Stage


def a_plugin(tmp_path: Path, name: str, body: str) -> Path:
    """A file of the project with a plugin: ``body`` is that of its function."""
    file = tmp_path / "place/.turnkeeper/plugin" / f"{name}.py"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    file.write_text(f"import turnkeeper\n\ndef plugin(context, options):\n{lines}\n")
    return file


async def texts(stage: Stage, session_id: str) -> list[str]:
    return [part.text for one in await stage.messages(session_id) for part in one.parts if isinstance(part, TextPart)]


async def the_call(stage: Stage, session_id: str) -> ToolPart:
    [found] = [part for _, parts in await stage.turns(session_id) for part in parts if isinstance(part, ToolPart)]
    return found
