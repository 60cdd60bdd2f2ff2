"""Histories of Claude Code, Codex and Gemini CLI: what becomes of each line."""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
import pytest
from histories import BUOYS, CLAUDE, CODEX, FIXTURES, GEMINI, OLD_CODEX, everything, lines_of, words, written
from opencode_files import contents

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import IMPORTED_LINE_BYTES_MAX
from turnkeeper.interop.report import LineCounts
from turnkeeper.interop.transcripts import PROGRAMS, ProgramName
from turnkeeper.model.refusal import Invalid, NotFound


async def titled(tk: Turnkeeper) -> dict[str, Any]:
    return {one["info"]["title"]: one for one in (await everything(tk)).values()}


async def test_claude_code_keeps_the_structure(each_tk: Turnkeeper) -> None:
    report = await each_tk.import_history("claude-code", FIXTURES / "claude-code")
    assert report.lines == LineCounts(read=40, understood=35, foreign=5, reported=0)
    assert (report.unreadable, report.skipped, report.conflicts) == ((), (), ())
    found = await titled(each_tk)
    assert words(found["Drift of the Hallig gauge"]) == [
        (
            "user",
            [
                "claude-code-line",
                "text: <local-command-caveat>These lines come from a local command.</local-command-caveat>",
            ],
        ),
        ("user", ["text: Why does the gauge at Hallig drift? Here is its chart.", "file"]),
        (
            "assistant",
            [
                "reasoning: A drift of millimetres a day suggests the offset table.",
                "text: I look at the offsets and at the log together.",
                "Read completed: day,offset\n1,0.0\n2,0.4",
                "Bash error: tail: cannot open 'gauge.log'",
                "claude-code-line",
                "claude-code-line",
            ],
        ),
        ("assistant", ["Task completed: The log is logs/gauge.1.log"]),
        ("assistant", ["text: Day two has an offset of 0.4 that nobody entered."]),
        ("user", ["text: Correct day two only, please."]),
        ("assistant", [next(one for one in words(found["Drift of the Hallig gauge"])[6][1])]),
        ("assistant", ["reasoning: ", "text: Day two is corrected to 0.0.", "claude-code-line", "claude-code-line"]),
        ("user", ["compaction"]),
        ("assistant", ["text: The gauge at Hallig drifted because day two had an offset of 0.4; it is 0.0 now."]),
        ("user", ["text: Is the chart right now?", "claude-code-line"]),
        ("assistant", ["text: API Error: overloaded"]),
        ("assistant", ["text: Yes, the chart follows the table.", "claude-code-line"]),
    ]
    info = found["Drift of the Hallig gauge"]["info"]
    assert info["directory"] == "/home/ada/tides"
    assert info["model"] == {"providerID": "anthropic", "id": "claude-sonnet-4-5"}
    assert info["metadata"]["imported"]["gitBranch"] == "gauge"
    # Each turn counts once, with the usage of its last line.
    assert info["tokens"] == {"input": 165, "output": 155, "reasoning": 0, "cache": {"read": 4070, "write": 1402}}


async def test_a_branch_of_claude_code_is_a_session_with_what_came_before(tk: Turnkeeper) -> None:
    await tk.import_history("claude-code", CLAUDE)
    found = await titled(tk)
    branch = words(found["Drift of the Hallig gauge (branch)"])
    assert branch[:5] == words(found["Drift of the Hallig gauge"])[:5]
    assert branch[5:] == [
        ("user", ["text: Delete the whole table."]),
        ("assistant", ["text: I would rather correct day two only."]),
    ]
    session = await tk.get(found["Drift of the Hallig gauge (branch)"]["info"]["id"])
    assert session.origin is not None
    assert session.origin.session_id == found["Drift of the Hallig gauge"]["info"]["id"]
    assert session.tokens.input == 30  # What it shares is paid for by its origin.


async def test_sidechains_are_child_sessions_in_both_layouts(tk: Turnkeeper) -> None:
    await tk.import_history("claude-code", FIXTURES / "claude-code")
    found = await titled(tk)
    for child, parent in (
        ("Where is the log of the gauge?", "Drift of the Hallig gauge"),
        ("Names of seals", "Names for buoys"),
    ):
        assert found[child]["info"]["parentID"] == found[parent]["info"]["id"]
    task = next(
        p for m in found["Drift of the Hallig gauge"]["messages"] for p in m["parts"] if p.get("tool") == "Task"
    )
    assert task["state"]["metadata"]["sessionId"] == found["Where is the log of the gauge?"]["info"]["id"]
    assert len(task["state"]["attachments"]) == 1
    assert found["Names for buoys"]["info"]["cost"] == 0.0021


async def test_a_result_in_a_file_of_its_own_is_the_whole_output(tk: Turnkeeper) -> None:
    await tk.import_history("claude-code", CLAUDE)
    hits = await tk.search("offset", limit=100)
    assert hits
    found = (await titled(tk))["Drift of the Hallig gauge"]
    [state] = [p["state"] for m in found["messages"] for p in m["parts"] if p.get("callID") == "toolu_04"]
    assert state["full"].count("\n") == 40


async def test_seals_of_reasoning_are_kept_and_are_nobody_s_to_send(tk: Turnkeeper) -> None:
    await tk.import_history("claude-code", CLAUDE)
    found = (await titled(tk))["Drift of the Hallig gauge"]
    kept = [p["metadata"] for m in found["messages"] for p in m["parts"] if p["type"] == "reasoning"]
    assert kept == [
        {"claude-code": {"signature": "c2lnbmVkIGJ5IG5vYm9keQ=="}},
        {"claude-code": {"data": "c2VhbGVk"}},
    ]


async def test_codex_keeps_the_structure_and_tells_events_once(each_tk: Turnkeeper) -> None:
    report = await each_tk.import_history("codex", CODEX)
    assert report.lines is not None
    assert (report.lines.read, report.lines.reported) == (len(lines_of(CODEX)), 0)
    found = await titled(each_tk)
    session = found["Which lens does the lantern use?"]
    said = [(role, [one for one in parts if one != "codex-line"]) for role, parts in words(session)]
    assert said == [
        ("user", ["text: <permissions instructions>Ask before you write.</permissions instructions>"]),
        ("user", ["text: <environment_context>\n  <cwd>/home/ada/lantern</cwd>\n</environment_context>"]),
        ("user", ["text: Which lens does the lantern use?", "file"]),
        (
            "assistant",
            [
                "reasoning: **Looking for the lens**",
                "shell completed: lantern.toml:3:lens = fresnel\n",
                "apply_patch error: patch rejected",
            ],
        ),
        ("assistant", ["web_search completed: completed", "text: It uses a Fresnel lens of the fourth order."]),
        ("user", ["text: How old is it?"]),
        ("assistant", ["view_image completed: a plate: 1871"]),
        ("user", ["compaction"]),
        ("assistant", ["text: The lantern has a Fresnel lens of the fourth order, from 1871."]),
        ("assistant", ["text: The plate says 1871."]),
    ]
    assert session["info"]["tokens"] == {
        "input": 600,
        "output": 70,
        "reasoning": 20,
        "cache": {"read": 1300, "write": 0},
    }
    assert session["messages"][-1]["info"]["error"]["name"] == "MessageAbortedError"
    harness = [p for m in session["messages"][:2] for p in m["parts"] if p["type"] == "text"]
    assert all(part["synthetic"] and part["ignored"] for part in harness)
    branch = found["Which lens does the lantern use? (branch)"]
    assert words(branch)[-2:] == [("user", ["text: Paint it green."]), ("assistant", ["text: Green it is."])]


async def test_old_layouts_of_codex_are_read(tk: Turnkeeper) -> None:
    await tk.import_history("codex", FIXTURES / "codex")
    found = await titled(tk)
    assert words(found["Draw the pier."]) == [
        ("user", ["codex-line", "text: Draw the pier."]),
        ("assistant", ["shell completed: pier.svg"]),
        ("assistant", ["text: It is in pier.svg."]),
    ]
    assert words(found["List the foghorns."])[1:] == [
        ("assistant", ["reasoning: ", "shell completed: north.wav\nsouth.wav\n"]),
        ("assistant", ["text: North and south.", "shell pending: "]),
    ]
    fork = await tk.get(found["Is the lens insured?"]["info"]["id"])
    assert fork.origin is not None
    assert fork.origin.session_id == found["Which lens does the lantern use?"]["info"]["id"]


async def test_gemini_keeps_the_structure(each_tk: Turnkeeper) -> None:
    report = await each_tk.import_history("gemini", FIXTURES / "gemini")
    assert report.lines == LineCounts(read=19, understood=17, foreign=2, reported=0)
    found = await titled(each_tk)
    session = found["Depth of the harbour"]
    said = [(role, [one for one in parts if one != "gemini-line"]) for role, parts in words(session)]
    assert said == [
        ("user", ["text: How deep is the harbour?", "file"]),
        (
            "assistant",
            [
                "reasoning: **Soundings**\n\nThe chart has depths.",
                "text: ",
                "read_file completed: 7 m at the quay",
                "run_shell_command error: sonar: not found",
            ],
        ),
        ("assistant", ["text: Seven metres at the quay."]),
        ("user", ["text: And at low tide?"]),
        ("assistant", ["text: Four metres.", "gemini-part"]),
    ]
    assert session["info"]["directory"] == "/home/ada/harbour"
    assert session["info"]["tokens"] == {"input": 60, "output": 22, "reasoning": 6, "cache": {"read": 220, "write": 0}}
    branch = words(found["Depth of the harbour (branch)"])
    assert branch[-2:] == [
        ("user", ["text: Fill it with sand."]),
        ("assistant", ["text: That would be a pity.", "gemini-line"]),
    ]
    assert words(found["Name the ferries."])[1] == ("assistant", ["text: Aurora and Möwe."])
    assert found["Read the chart."]["info"]["parentID"] == session["info"]["id"]


@pytest.mark.parametrize(
    ("named", "directory"),
    [
        ("/home/ada/harbour/charts/quay.txt", "/home/ada/harbour"),
        ("/home/ada/harbour/", "/home/ada/harbour"),
        ("/", "/"),
    ],
)
async def test_the_directory_of_an_old_session_of_gemini_is_found_by_its_hash(
    tk: Turnkeeper, tmp_path: Path, named: str, directory: str
) -> None:
    call = {"id": "c1", "name": "read_file", "args": {"absolute_path": named}, "status": "success"}
    at = "2025-09-01T12:00:10.000Z"
    file = tmp_path / "ab12" / "chats" / "session-2025-09-01T12-00-0a1b2c3d.json"
    file.parent.mkdir(parents=True)
    session = {
        "sessionId": "0a1b2c3d",
        "projectHash": sha256(b"/home/ada/harbour").hexdigest(),
        "startTime": at,
        "messages": [
            {"id": "l1", "timestamp": at, "type": "user", "content": "Read the chart."},
            {"id": "l2", "timestamp": at, "type": "gemini", "content": "", "toolCalls": [call]},
        ],
    }
    file.write_text(json.dumps(session))
    await tk.import_history("gemini", tmp_path)
    assert (await titled(tk))["Read the chart."]["info"]["directory"] == directory


@pytest.mark.parametrize("name", PROGRAMS)
async def test_every_line_can_be_found_in_the_export(tk: Turnkeeper, name: ProgramName) -> None:
    await tk.import_history(name, FIXTURES / name)
    text = json.dumps(await everything(tk), ensure_ascii=False)
    for file in (CLAUDE, BUOYS, CODEX, OLD_CODEX, GEMINI):
        if name in file.parts:
            for line in lines_of(file):
                for word in _strings(line):
                    assert json.dumps(word, ensure_ascii=False)[1:-1] in text or word in _INHERENT, (file, word)


_INHERENT = {"user", "assistant", "message", "event_msg", "response_item", "token_count", "summary_text", "$rewindTo"}
"""Words that say where a thing stands, which its place here says too."""


def _strings(value: Any) -> list[str]:
    """The texts of a line that are content: no times, ids of links and names of types."""
    names = {"timestamp", "type", "uuid", "parentUuid", "sessionId", "status", "call_id", "requestId", "message"}
    if isinstance(value, dict):
        if value.get("type") in ("user_message", "agent_message", "agent_reasoning", "thread_rolled_back"):
            return []
        if value.get("type") == "message" or "role" in value:
            return [one for key, item in value.items() if key != "type" for one in _strings(item)]
        return [one for key, item in value.items() if key not in names for one in _strings(item)]
    if isinstance(value, list):
        return [one for item in value for one in _strings(item)]
    if isinstance(value, str) and not value.startswith(("{", "m5")):
        return [value]
    return []


async def test_the_source_is_only_read(tk: Turnkeeper) -> None:
    before = contents(FIXTURES)
    for name in PROGRAMS:
        await tk.import_history(name, FIXTURES / name)
    assert contents(FIXTURES) == before


async def test_a_dry_run_reports_the_same_and_writes_nothing(tk: Turnkeeper) -> None:
    for name in PROGRAMS:
        planned = await tk.import_history(name, FIXTURES / name, dry_run=True)
        assert await everything(tk) == {} or name != "claude-code"
        assert await tk.import_history(name, FIXTURES / name) == planned
        again = await tk.import_history(name, FIXTURES / name, dry_run=True)
        assert (again.imported.sessions, again.unchanged.sessions) == (0, planned.imported.sessions)


async def test_what_cannot_be_read_is_named_and_the_rest_comes_in(tk: Turnkeeper, tmp_path: Path) -> None:
    lines: list[Any] = lines_of(BUOYS)
    lines[2:2] = [b"{not json\n", b"[1]\n", b"\n", b'{"type":"user","uuid":"z","message":{"content":"caf\xe9"}}\n']
    lines.append(b'{"type":"user","uuid":"half","mess')
    written(tmp_path / "projects/x/one.jsonl", lines)
    (tmp_path / "projects/x/empty.jsonl").write_bytes(b"")
    (tmp_path / "projects/x/loop").symlink_to(tmp_path / "projects")
    (tmp_path / "projects/x/dangling.jsonl").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "projects/x/pipe.jsonl")
    report = await tk.import_history("claude-code", tmp_path)
    assert report.lines == LineCounts(read=11, understood=8, foreign=0, reported=3)
    assert [one.reason for one in report.unreadable] == [
        "line 3: is not JSON",
        "line 4: is not a JSON object",
    ]
    assert {one.reason for one in report.skipped} == {
        "line 6: has bytes that are not UTF-8; they became U+FFFD",
        "line 12: is incomplete: its program may still be writing it",
    }
    assert not report.is_whole
    assert report.imported.sessions == 3


async def test_a_line_that_is_too_long_is_left_out_without_being_held(tk: Turnkeeper, tmp_path: Path) -> None:
    lines: list[Any] = lines_of(BUOYS)
    long = b'{"type":"user","uuid":"long","message":{"content":"' + b"x" * IMPORTED_LINE_BYTES_MAX + b'"}}\n'
    report = await tk.import_history("claude-code", written(tmp_path / "one.jsonl", [long, *lines]))
    assert [one.reason for one in report.unreadable] == ["line 1: is longer than 67,108,864 bytes"]
    assert report.imported.sessions == 2


async def test_uuids_that_repeat_and_parents_that_miss_are_named(tk: Turnkeeper, tmp_path: Path) -> None:
    lines = lines_of(BUOYS)
    other = {**lines[1], "message": {"role": "user", "content": "Another under the same uuid"}}
    cycle = [{**lines[1], "uuid": "c1", "parentUuid": "c2"}, {**lines[1], "uuid": "c2", "parentUuid": "c1"}]
    report = await tk.import_history("claude-code", written(tmp_path / "one.jsonl", [*lines, lines[1], other, *cycle]))
    assert report.lines is not None
    assert (report.lines.foreign, report.lines.reported) == (1, 0)
    assert [one.reason for one in report.skipped] == [
        "line 9: repeats a uuid with another content; it is kept as it is",
        "line 10: has a parent that is not before it; it follows the entry before it",
    ]


async def test_a_line_that_is_its_own_parent_ends_no_import(tk: Turnkeeper, tmp_path: Path) -> None:
    lines = lines_of(BUOYS)
    loop = {**lines[1], "uuid": "own", "parentUuid": "own"}
    with anyio.fail_after(60):
        report = await tk.import_history("claude-code", written(tmp_path / "one.jsonl", [*lines, loop]))
    assert [one.reason for one in report.skipped] == [
        "line 8: has a parent that is not before it; it follows the entry before it",
    ]


async def test_a_turn_that_no_model_wrote_is_kept_with_its_usage_and_not_billed(tk: Turnkeeper, tmp_path: Path) -> None:
    usage = {"input_tokens": 1000, "output_tokens": 50}
    message = {"id": "e-1", "role": "assistant", "model": "<synthetic>", "content": "API Error", "usage": usage}
    prompt = {"type": "user", "uuid": "o-1", "sessionId": "s", "message": {"role": "user", "content": "Buoys?"}}
    made = {"type": "assistant", "uuid": "o-2", "parentUuid": "o-1", "sessionId": "s", "message": message}
    await tk.import_history("claude-code", written(tmp_path / "one.jsonl", [prompt, made]))
    [session] = (await everything(tk)).values()
    assert session["info"]["tokens"] == {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    assert '"input_tokens": 1000' in json.dumps(session["messages"][1])


async def test_a_path_without_a_history_is_refused(tk: Turnkeeper, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is nothing at"):
        await tk.import_history("codex", tmp_path / "nowhere")
    with pytest.raises(Invalid, match="holds no history of Codex"):
        await tk.import_history("codex", tmp_path)
    with pytest.raises(Invalid, match="is no program that can be imported"):
        await tk.import_history("aider", tmp_path)  # type: ignore[arg-type]


async def test_a_file_without_a_message_is_reported_and_makes_no_session(tk: Turnkeeper, tmp_path: Path) -> None:
    lines = [{"type": "summary", "summary": "Buoys", "leafUuid": "o-2"}, {"type": "tag", "tag": "sea"}]
    report = await tk.import_history("claude-code", written(tmp_path / "one.jsonl", lines))
    assert report.lines == LineCounts(read=2, understood=0, foreign=0, reported=2)
    assert [one.reason for one in report.skipped] == ["lines 1, 2: in a file without a message"]
    assert await everything(tk) == {}


async def test_a_compressed_rollout_is_named_with_what_to_do(tk: Turnkeeper, tmp_path: Path) -> None:
    (tmp_path / "rollout-2026-01-01T00-00-00-a.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    [found] = (await tk.import_history("codex", tmp_path)).unreadable
    assert found.reason == "is compressed; decompress it with `zstd -d` and import the result"


@pytest.mark.parametrize(
    ("name", "environ", "expected"),
    [
        ("claude-code", {"HOME": "/h"}, ["/h/.claude/projects", "/h/.config/claude/projects"]),
        ("claude-code", {"HOME": "/h", "CLAUDE_CONFIG_DIR": "/c"}, ["/c/projects"]),
        ("codex", {"HOME": "/h"}, ["/h/.codex/sessions", "/h/.codex/archived_sessions"]),
        ("codex", {"HOME": "/h", "CODEX_HOME": "/c"}, ["/c/sessions", "/c/archived_sessions"]),
        ("gemini", {"HOME": "/h"}, ["/h/.gemini/tmp"]),
        ("gemini", {"HOME": "/h", "GEMINI_CLI_HOME": "/g"}, ["/g/.gemini/tmp"]),
    ],
)
def test_each_program_has_its_own_place(name: ProgramName, environ: dict[str, str], expected: list[str]) -> None:
    assert [str(place) for place in PROGRAMS[name].places(environ)] == expected
