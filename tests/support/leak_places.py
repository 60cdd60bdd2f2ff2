"""Kinds of places of a session where a secret may stand, each a function from a text to the parts of a message."""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple
from urllib.parse import quote

TITLE: Final = "title of a session"

Parts = Sequence[dict[str, Any]]


class Placed(NamedTuple):
    """A secret at a place: parts of a message, what is left of it must not have any of ``gone``."""

    gone: Sequence[str]
    parts: Parts = ()
    role: str = "assistant"
    info: Mapping[str, Any] = {}
    title: str = ""
    todos: Sequence[str] = ()


Place = Callable[[Random, str, Sequence[str]], Placed]


def _text(text: str, kind: str = "text", **more: Any) -> dict[str, Any]:
    time = {"time": {"start": 1, "end": 2}} if kind == "reasoning" else {}
    return {"type": kind, "text": text, **time, **more}


def _tool(name: str, given: Mapping[str, Any], output: str = "done", **more: Any) -> dict[str, Any]:
    state = {"status": "completed", "input": given, "output": output, "title": name, "metadata": {}, **more}
    return {"type": "tool", "callID": "call_1", "tool": name, "state": {**state, "time": {"start": 1, "end": 2}}}


def _at(make: Callable[[str], dict[str, Any]], role: str = "assistant") -> Place:
    """A place that holds the text as it is."""
    return lambda random, text, secrets: Placed(secrets, [make(text)], role)


def _error(text: str) -> dict[str, Any]:
    state = {"status": "error", "input": {}, "error": text, "time": {"start": 1, "end": 2}}
    return {"type": "tool", "callID": "call_1", "tool": "bash", "state": state}


def _pending(text: str) -> dict[str, Any]:
    state = {"status": "pending", "input": {}, "raw": json.dumps({"command": text})}
    return {"type": "tool", "callID": "call_1", "tool": "bash", "state": state}


def _diff(text: str, sign: str = "+") -> str:
    body = "\n".join(sign + line for line in text.split("\n"))
    return f"--- a/conf\n+++ b/conf\n@@ -1,2 +1,{text.count(chr(10)) + 2} @@\n context\n{body}\n"


def _numbered(text: str) -> str:
    lines = "\n".join(f"{number:5}| {line}" for number, line in enumerate(text.split("\n"), 1))
    return f"<file>\n{lines}\n</file>"


def _coloured(text: str) -> str:
    return "\n".join(f"\x1b[32m+\x1b[m\x1b[32m{line}\x1b[m" for line in text.split("\n"))


def _file(text: str) -> dict[str, Any]:
    body = base64.b64encode(text.encode()).decode()
    return {"type": "file", "mime": "text/plain", "filename": "conf.txt", "url": f"data:text/plain;base64,{body}"}


def _patch(text: str) -> str:
    return (
        "*** Begin Patch\n*** Add File: conf\n" + "\n".join("+" + line for line in text.split("\n")) + "\n*** End Patch"
    )


def _title(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    return Placed(secrets, title=text)


def _todo(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    return Placed(secrets, todos=[text])


def _message_error(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    data = {"message": f"401: {text}", "isRetryable": False, "statusCode": 401, "responseBody": text}
    return Placed(secrets, [_text("I try.")], info={"error": {"name": "APIError", "data": data}})


def _summary_diff(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    diff = {"file": "conf", "before": "", "after": text, "additions": 1, "deletions": 0, "patch": _diff(text)}
    return Placed(secrets, [_text("Do it.")], "user", {"summary": {"title": "Do it", "diffs": [diff]}})


def _system(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    return Placed(secrets, [_text("Do it.")], "user", {"system": f"Rules.\n{text}"})


def _compaction(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    return Placed(secrets, [_text(f"## Goal\n\nDeploy.\n\n## Facts\n\n- {text}\n")], info={"summary": True})


def _base64(random: Random, text: str, secrets: Sequence[str]) -> Placed:
    body = base64.b64encode(text.encode()).decode()
    return Placed(_in_base64(text, secrets), [_tool("bash", {"command": "base64 conf"}, body + "\n")])


def _in_base64(text: str, secrets: Sequence[str]) -> Sequence[str]:
    plain = text.encode()
    return [_encoded_span(plain, plain.index(one.encode()), len(one.encode())) for one in secrets]


def _encoded_span(plain: bytes, start: int, length: int) -> str:
    """What of the base64 text stands for these bytes alone."""
    first, last = -(-start // 3) * 4, (start + length) // 3 * 4
    return base64.b64encode(plain).decode()[first:last]


def _hexadecimal(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    gone = [one.encode().hex() for one in secrets]
    return Placed(gone, [_tool("bash", {"command": "xxd -p conf"}, text.encode().hex())])


def _percent(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    gone = [quote(one, safe="") for one in secrets]
    return Placed(gone, [_text(f"GET https://example.org/log?q={quote(text, safe='')}")])


def _two_parts(random: Random, text: str, secrets: Sequence[str]) -> Placed:
    start, cut = _cut(random, text, secrets)
    return Placed([*_pieces(secrets, cut - start)], [_text(text[:cut]), _text(text[cut:])])


def _two_lines(random: Random, text: str, secrets: Sequence[str]) -> Placed:
    start, cut = _cut(random, text, secrets)
    return Placed(
        [*_pieces(secrets, cut - start)], [_tool("bash", {"command": "cat conf"}, text[:cut] + "\n" + text[cut:])]
    )


def _cut(random: Random, text: str, secrets: Sequence[str]) -> tuple[int, int]:
    """Where the first secret begins, and a place inside of it."""
    start = text.index(secrets[0])
    length = len(secrets[0])
    return start, start + random.randint(length // 4, length - length // 4)


def _pieces(secrets: Sequence[str], cut: int) -> Sequence[str]:
    """The pieces of a cut secret that are long enough to be of use, and the other secrets."""
    pieces = [one for one in (secrets[0][:cut], secrets[0][cut:]) if len(one) >= 8]
    return [*(pieces or secrets[:1]), *secrets[1:]]


def _escaped(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    gone = [json.dumps(one, ensure_ascii=False)[1:-1] for one in secrets]
    return Placed(gone, [_tool("bash", {"command": "cat log.jsonl"}, json.dumps({"level": "info", "msg": text}))])


def _question(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    given = {"questions": [{"question": f"Shall I use it? {text}", "header": "Key", "options": [{"label": "Yes"}]}]}
    return Placed(secrets, [_tool("question", given, "Yes")])


def _answer(_: Random, text: str, secrets: Sequence[str]) -> Placed:
    given = {"questions": [{"question": "Which one?", "header": "Key", "options": []}]}
    return Placed(secrets, [_tool("question", given, f'User has answered: "{text}"', metadata={"answers": [[text]]})])


def _markdown(text: str) -> dict[str, Any]:
    return _text(f"Found it:\n\n```\n{text}\n```\n")


def _quoted(text: str) -> dict[str, Any]:
    return _text("\n".join(f"> {line}" for line in text.split("\n")))


def _grep(text: str) -> dict[str, Any]:
    lines = "\n".join(f"  Line {12 + nth}: {line}" for nth, line in enumerate(text.split("\n")))
    return _tool("grep", {"pattern": "x"}, f"Found 1 matches\nconf:\n{lines}")


def _ripgrep(text: str) -> dict[str, Any]:
    lines = "\n".join(f"src/conf.txt:{12 + nth}:{line}" for nth, line in enumerate(text.split("\n")))
    return _tool("bash", {"command": "grep -rn x src"}, lines)


def _attachment(text: str) -> dict[str, Any]:
    return _tool(
        "read",
        {"filePath": "conf"},
        "attached",
        attachments=[{**_file(text), "id": "prt_a", "sessionID": "s", "messageID": "m"}],
    )


def _permission(text: str) -> dict[str, Any]:
    asked = {"permission": "bash", "patterns": [text], "always": [text], "metadata": {"command": text}}
    return _tool("bash", {"command": "true"}, metadata={"permission": asked, "preview": text})


def _retry(text: str) -> dict[str, Any]:
    data = {"message": text, "isRetryable": True, "responseHeaders": {"x-request": text}}
    return {"type": "retry", "attempt": 1, "error": {"name": "APIError", "data": data}, "time": {"created": 1}}


def _subtask(text: str) -> dict[str, Any]:
    return {"type": "subtask", "prompt": text, "description": "Look", "agent": "general"}


def _mention(text: str) -> dict[str, Any]:
    source = {"type": "file", "path": "conf", "text": {"value": text, "start": 0, "end": 1}}
    return {"type": "file", "mime": "text/plain", "filename": "conf", "url": "file:///srv/tides/conf", "source": source}


def _name(text: str) -> dict[str, Any]:
    return {"type": "file", "mime": "text/plain", "filename": text, "url": "file:///srv/tides/x"}


def _input(name: str, key: str, **more: Any) -> Place:
    return _at(lambda text: _tool(name, {**more, key: text}))


def _table(text: str) -> dict[str, Any]:
    return _text("| what | value |\n|---|---|\n| it | " + re.sub(r"\n", "<br>", text) + " |\n")


PLACES: Final[Mapping[str, Place]] = {
    "prompt": _at(_text, "user"),
    "answer": _at(_text),
    "answer in a code block": _at(_markdown),
    "answer in a table": _at(_table),
    "answer in a quotation": _at(_quoted),
    "reasoning": _at(lambda text: _text(text, "reasoning")),
    "input of bash": _input("bash", "command"),
    "input of write": _input("write", "content", filePath="conf"),
    "input of edit": _input("edit", "newString", filePath="conf", oldString="x"),
    "input of multiedit": _at(lambda text: _tool("multiedit", {"edits": [{"oldString": text, "newString": "x"}]})),
    "input of apply_patch": _at(lambda text: _tool("apply_patch", {"patchText": _patch(text)})),
    "input of grep": _input("grep", "pattern"),
    "input of webfetch": _input("webfetch", "url"),
    "input of task": _input("task", "prompt", description="Look"),
    "input of todowrite": _at(lambda text: _tool("todowrite", {"todos": [{"content": text, "status": "pending"}]})),
    "input of a tool of others": _input("tides_lookup", "query"),
    "question": _question,
    "answer to a question": _answer,
    "output of bash": _at(lambda text: _tool("bash", {"command": "cat conf"}, text)),
    "output of read": _at(lambda text: _tool("read", {"filePath": "conf"}, _numbered(text))),
    "output of grep": _at(_grep),
    "output of grep -n": _at(_ripgrep),
    "output of webfetch": _at(lambda text: _tool("webfetch", {"url": "https://example.org"}, f"<p>{text}</p>")),
    "output of task": _at(lambda text: _tool("task", {}, f"<task_result>\n{text}\n</task_result>")),
    "output in colours": _at(lambda text: _tool("bash", {"command": "git diff"}, _coloured(text))),
    "output as JSON": _escaped,
    "diff in an output": _at(lambda text: _tool("bash", {"command": "git diff"}, _diff(text, "-"))),
    "diff in metadata": _at(lambda text: _tool("edit", {}, metadata={"diff": _diff(text)})),
    "metadata of a tool": _at(lambda text: _tool("bash", {}, metadata={"output": text, "exit": 0})),
    "metadata of a permission": _at(_permission),
    "title of a tool": _at(lambda text: _tool("bash", {}, title=text)),
    "error of a tool": _at(_error),
    "input that is not whole": _at(_pending),
    "error of a message": _message_error,
    "error of a retry": _at(_retry),
    "file": lambda random, text, secrets: Placed(_in_base64(text, secrets), [_file(text)], "user"),
    "name of a file": _at(_name, "user"),
    "mention of a file": _at(_mention, "user"),
    "attachment of a tool": lambda random, text, secrets: Placed(_in_base64(text, secrets), [_attachment(text)]),
    "subtask": _at(_subtask, "user"),
    "summary of a compaction": _compaction,
    "diffs of a summary": _summary_diff,
    "system prompt": _system,
    "task list": _todo,
    TITLE: _title,
    "base64": _base64,
    "hexadecimal": _hexadecimal,
    "percent signs": _percent,
    "split over two parts": _two_parts,
    "split over two lines": _two_lines,
}
