"""The same tasks with three libraries, against one scripted server: ours is as short as the shorter of the others."""

import importlib.util
import io
import json
import tokenize
from pathlib import Path
from typing import Final

import anyio
import pytest
from anyio import to_thread

from examples import EXAMPLES, run
from turnkeeper.testing import Script, ScriptedServer

COMPARE = EXAMPLES / "compare"
ROWS = ("own_tool", "stream", "structured", "interrupt", "fork", "parallel", "own_provider")
LIBRARIES: Final = {"turnkeeper": "turnkeeper", "pydantic_ai": "pydantic_ai", "openai_agents": "agents"}
"""The folder of each library, and the package that must be installed: ``pip install --group compare``."""

PRINTED = {
    "own_tool": "At 6:12.\n",
    "stream": "The wind is west.",
    "structured": "4\n",
    "interrupt": "The \nis west.\n",
    "fork": "Yes.\nNo.\n",
    "parallel": "['Calm.', 'Calm.', 'Calm.']\n",
    "own_provider": "The wind is west.\n",
}

TOLD = {
    "own_tool": ["6:12 at the bay"],
    "interrupt": ["Tell me of the wind.", '"The "', "Go on."],
    "fork": ["The wind is rising.", "Aye.", "Turn back?"],
}
"""What one request must hold, so that the three programs do the same: for example what was said before the stop."""


def script(row: str, library: str) -> Script:
    """What the model says."""
    made = Script().titles("Wind")
    match row:
        case "own_tool":
            return made.calls("tide", place="the bay").then().says("At 6:12.")
        case "stream":
            return made.says("The wind is west.")
        case "structured" if library == "turnkeeper":
            return made.calls("StructuredOutput", direction="west", force=4)
        case "structured" if library == "pydantic_ai":
            return made.calls("final_result", direction="west", force=4)
        case "structured":
            return made.says('{"direction":"west","force":4}')
        case "interrupt":
            return made.says("The ").hangs().then().says("is west.")
        case "fork":
            return made.says("Aye.").then().says("Yes.").then().says("No.")
        case "parallel":
            return made.says("Calm.").forever()
        case _:
            return made


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_task_is_done(row: str, library: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(LIBRARIES[library]) is None:
        pytest.skip(f"{LIBRARIES[library]} is not installed; `pip install --group compare` installs it")
    async with ScriptedServer(script(row, library)) as server:
        environ = {
            "OPENAI_BASE_URL": server.url,
            "OPENAI_API_KEY": "scripted",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
        }
        # Warnings inside other libraries are not ours: the Agents SDK has one when ``run_sync`` is called twice.
        warnings = "error" if library == "turnkeeper" else "default"
        name = f"compare/{library}/{row}.py"
        with anyio.fail_after(240):
            out, _ = await to_thread.run_sync(lambda: run(name, place=tmp_path, warnings=warnings, **environ))
    assert out == PRINTED[row]
    told = [json.dumps(request.body) for request in server.requests]
    if row in TOLD:
        assert any(all(text in one for text in TOLD[row]) for one in told)
    assert not any("Reef?" in one and "Turn back?" in one for one in told)


def lines_of_code(path: Path) -> int:
    """The lines that hold code, which includes texts; not comments and empty lines."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    return len(
        {line for token in tokens if token.type not in ignored for line in range(token.start[0], token.end[0] + 1)}
    )


@pytest.mark.parametrize("row", ROWS)
def test_ours_is_no_longer_than_the_shorter_of_the_others(row: str) -> None:
    ours, *others = [lines_of_code(COMPARE / library / f"{row}.py") for library in LIBRARIES]
    assert ours <= min(others)


def test_the_table_has_the_lines() -> None:
    rows = [
        f"| {row} | {' | '.join(str(lines_of_code(COMPARE / library / f'{row}.py')) for library in LIBRARIES)} |"
        for row in ROWS
    ]
    assert (COMPARE / "README.md").read_text("utf-8").splitlines()[-len(rows) :] == rows


def test_every_program_is_a_row() -> None:
    for library in LIBRARIES:
        assert {path.stem for path in (COMPARE / library).glob("*.py")} == set(ROWS)
