"""The offline model's report on a tool result: a sentence and the first lines of the output."""

import re
from typing import Final

from turnkeeper.model.request import Call, Result, Text
from turnkeeper.model.value import Json

LINES_SHOWN: Final = 12
LINE_CHARS_MAX: Final = 160

_NUMBERED: Final = re.compile(r"^\s*(\d+)(?::\s?|[|\t→]\s?)(.*)$")


def told(call: Call, result: Result) -> str:
    """The report on a call and its result."""
    output = "\n".join(part.text for part in result.output if isinstance(part, Text)).strip("\n")
    if result.is_error:
        return f"{named(call)} failed: {_first_line(output)}"
    lines = output.splitlines()
    match call.name:
        case "read":
            return _told_read(call, lines)
        case "glob":
            return _told_files(call, lines)
        case "grep":
            return _told_found(call, lines)
        case "bash":
            command = _given(call, "command")
            quiet = not output or output.strip().lower() in ("(no output)", "no output")
            return f"`{command}` printed nothing." if quiet else f"`{command}` printed:\n{_block(lines)}"
        case "write":
            count = len(_given(call, "content").splitlines())
            return f"`{_path(call)}` is written: {count} {'line' if count == 1 else 'lines'}."
        case "edit":
            return f"In `{_path(call)}`, `{_given(call, 'oldString')}` is now `{_given(call, 'newString')}`."
        case "todowrite":
            return _told_plan(call)
        case _:
            return f"{named(call)}:\n{_block(lines)}"


def named(call: Call) -> str:
    """The tool and the first line of its first string argument."""
    subject = next((value for value in call.input.values() if isinstance(value, str) and value), "")
    return f"`{call.name}` {_cut(_first_line(subject), 60)}".strip()


def _told_read(call: Call, lines: list[str]) -> str:
    numbered = [found.groups() for line in lines if (found := _NUMBERED.match(line))]
    if not numbered:
        return f"`{_path(call)}`:\n{_block(lines)}"
    count = numbered[-1][0]
    shown = [text for _, text in numbered]
    return f"`{_path(call)}` has {count} {'line' if count == '1' else 'lines'}:\n{_block(shown)}"


def _told_files(call: Call, lines: list[str]) -> str:
    files = [line.strip() for line in lines if line.strip() and not line.startswith(("(", "No files"))]
    if not files:
        return "There are no such files."
    folder = _shared_folder(files)
    listed = "\n".join(f"- `{file[len(folder) :]}`" for file in sorted(files)[:LINES_SHOWN])
    more = f"\n- and {len(files) - LINES_SHOWN} more" if len(files) > LINES_SHOWN else ""
    return f"There {'is 1 file' if len(files) == 1 else f'are {len(files)} files'}:\n\n{listed}{more}"


def _told_found(call: Call, lines: list[str]) -> str:
    wanted = re.sub(r"\\(.)", r"\1", _given(call, "pattern"))
    found = sum(bool(re.match(r"\s*Line \d+:|[^:\s][^:]*:\d+:", line)) for line in lines)
    if not found:
        return f"`{wanted}` was not found."
    shown = [line for line in lines if line.strip() and not re.match(r"Found \d+ match", line)]
    return f"`{wanted}` was found {'once' if found == 1 else f'{found} times'}:\n{_block(shown)}"


def _told_plan(call: Call) -> str:
    todos = call.input.get("todos")
    items = [todo.get("content", "") for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    listed = "\n".join(f"{number}. {item}" for number, item in enumerate(items, start=1))
    return f"The plan has {len(items)} steps:\n\n{listed}"


def _shared_folder(files: list[str]) -> str:
    """The directory that all files share, with its slash; empty if there is none."""
    folders = [file.split("/")[:-1] for file in files]
    shared = []
    for names in zip(*folders, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return "".join(f"{name}/" for name in shared)


def _block(lines: list[str]) -> str:
    shown = [_cut(line, LINE_CHARS_MAX) for line in lines[:LINES_SHOWN]]
    more = [f"… {len(lines) - LINES_SHOWN} more lines"] if len(lines) > LINES_SHOWN else []
    # The fence is longer than any in the text, so that the text cannot close it.
    fence = "`" * max(3, 1 + max((len(run) for line in shown for run in re.findall(r"`+", line)), default=0))
    return "\n".join(["", fence, *shown, *more, fence])


def _path(call: Call) -> str:
    return _given(call, "filePath") or _given(call, "path")


def _given(call: Call, name: str) -> str:
    value: Json = call.input.get(name)
    return value if isinstance(value, str) else ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "nothing was said about it")


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"
