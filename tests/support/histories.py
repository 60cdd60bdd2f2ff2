"""Histories of other programs for the tests: files made by hand, and what a store makes of them."""

import json
from pathlib import Path
from typing import Any

from opencode_files import exported

from turnkeeper.app import Turnkeeper
from turnkeeper.interop.transcripts import PROGRAMS, ProgramName

FIXTURES = Path(__file__).parents[1] / "fixtures"
CLAUDE = FIXTURES / "claude-code/projects/-home-ada-tides/5b0c7a52-93f4-4d1e-9d1c-0a4e6f0b1c11.jsonl"
BUOYS = CLAUDE.with_name("0d8f5a3e-6a1b-4b77-8f0e-2c9d1e7b4a22.jsonl")
[CODEX] = FIXTURES.glob("codex/sessions/2026/*/*/*.jsonl")
[OLD_CODEX] = FIXTURES.glob("codex/sessions/2025/*/*/*.jsonl")
[GEMINI] = FIXTURES.glob("gemini/tmp/harbour/chats/session-2026*.jsonl")
FILES: list[tuple[ProgramName, Path]] = [
    (name, file)
    for name, program in PROGRAMS.items()
    for file in sorted((FIXTURES / name).rglob("*"))
    if file.is_file() and program.is_history(file)
]
"""Every history file of the fixtures, with its program."""


def lines_of(file: Path) -> list[Any]:
    """The objects of a file of lines."""
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def written(file: Path, lines: list[Any]) -> Path:
    """A file of lines. A line that is bytes is written as it is."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"".join(one if isinstance(one, bytes) else json.dumps(one).encode() + b"\n" for one in lines))
    return file


async def everything(tk: Turnkeeper) -> dict[str, Any]:
    """The exports of all sessions of a store by id, without the time of the last activity."""
    found = {}
    for session in (await tk.list(roots=False, archived=True, limit=200)).items:
        found[session.id] = await exported(tk, session.id)
        del found[session.id]["info"]["time"]["updated"]
    return found


def words(export: Any) -> list[tuple[str, list[str]]]:
    """The roles of an export's messages, with the texts, calls and other kinds of parts."""
    return [(one["info"]["role"], [_word(part) for part in one["parts"]]) for one in export["messages"]]


def _word(part: Any) -> str:
    match part["type"]:
        case "text" | "reasoning":
            return f"{part['type']}: {part['text']}"
        case "tool":
            state = part["state"]
            return f"{part['tool']} {state['status']}: {state.get('output', state.get('error', ''))}"
        case kind:
            return str(kind)
