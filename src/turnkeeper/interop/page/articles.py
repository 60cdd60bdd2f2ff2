"""Articles of a page: one for each message, with its texts, tool calls and files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from json import dumps
from typing import Final

import msgspec

from turnkeeper.interop.page.texts import diff, inline, markdown, plain, typed
from turnkeeper.interop.raw import ReadOnlyObject

OUTPUT_CHARS_MAX: Final = 400_000
"""Characters of one output on a page."""
TITLE_CHARS_MAX: Final = 80
"""Characters of a prompt in the outline, and of an input in the line of its call."""
IMAGES: Final = (
    "data:image/png;base64,",
    "data:image/jpeg;base64,",
    "data:image/gif;base64,",
    "data:image/webp;base64,",
)
"""Pictures that a page shows. SVG is not among them: it is a document that may hold a script."""


class Article(msgspec.Struct, frozen=True):
    """A message as HTML. ``prompt`` is the beginning of what the user said, for the outline."""

    key: str
    html: str
    prompt: str | None = None


def article(json: ReadOnlyObject, key: str) -> Article | None:
    """The article of a message ``{"info", "parts"}``; None if there is nothing to show of it."""
    info, parts = json["info"], json["parts"]
    role = str(info.get("role"))
    body = "".join(filter(None, (_part(part, role) for part in parts)))
    if isinstance(info.get("error"), dict):
        body += f'<p class="error">{inline(_failure(info["error"]))}</p>'
    elif info.get("finish") == "length":
        body += '<p class="error">Cut off: the answer reached the model\'s output limit.</p>'
    if role not in ("user", "assistant") or not body:
        return None
    who = "You" if role == "user" else "Assistant"
    about = [_time(info)] + ([escape(str(info.get("modelID", "")))] if role == "assistant" else [])
    head = f'<h2>{who}</h2><span class="about">{" · ".join(filter(None, about))}</span>'
    anchor = escape(key, quote=True)
    html = f'<article class="{role}" id="{anchor}"><header>{head}</header>{body}</article>'
    return Article(key, html, _prompt(parts) if role == "user" else None)


def _part(part: ReadOnlyObject, role: str) -> str:
    kind = str(part.get("type"))
    if role == "user" and kind == "text":
        return _text(part, typed)
    shown: Callable[[ReadOnlyObject], str] | None = _PARTS.get(kind)
    return shown(part) if shown is not None else ""


def _text(part: ReadOnlyObject, shown: Callable[[str], str] = markdown) -> str:
    text = str(part.get("text", ""))
    if not text.strip() or part.get("synthetic") or part.get("ignored"):
        return ""
    return f'<div class="text">{shown(text)}</div>'


def _reasoning(part: ReadOnlyObject) -> str:
    text = str(part.get("text", ""))
    if not text.strip():
        return ""
    return f'<details class="thought"><summary>Thought</summary><div class="text">{markdown(text)}</div></details>'


def _tool(part: ReadOnlyObject) -> str:
    given_state = part.get("state")
    state: ReadOnlyObject = given_state if isinstance(given_state, dict) else {}
    status = str(state.get("status", "pending"))
    given, name = state.get("input"), inline(str(part.get("tool", "tool")))
    title = inline(str(state.get("title") or _short(given)))
    about = " · ".join(filter(None, ["" if status == "completed" else inline(status), _seconds(state.get("time"))]))
    body = "".join(_call(state, given))
    opened = " open" if status == "error" else ""
    return (
        f'<details class="tool {escape(status, quote=True)}"{opened}><summary><b>{name}</b> <span>{title}</span>'
        f' <span class="about">{about}</span></summary>{body}</details>'
    )


def _call(state: ReadOnlyObject, given: object) -> Iterator[str]:
    if given:
        yield f"<h3>Input</h3>{plain(dumps(given, indent=2, ensure_ascii=False)[:OUTPUT_CHARS_MAX])}"
    metadata = state.get("metadata")
    changed = metadata.get("diff") if isinstance(metadata, dict) else None
    if isinstance(changed, str) and changed.strip():
        yield f"<h3>Change</h3>{diff(changed[:OUTPUT_CHARS_MAX])}"
    for field, heading in (("output", "Output"), ("error", "Error")):
        text = state.get(field)
        if isinstance(text, str) and text.strip():
            cut = "\n..." if len(text) > OUTPUT_CHARS_MAX else ""
            yield f"<h3>{heading}</h3>{plain(text[:OUTPUT_CHARS_MAX] + cut)}"
    attachments = state.get("attachments")
    for one in attachments if isinstance(attachments, list) else ():
        yield _file(one) if isinstance(one, dict) else ""


def _file(part: ReadOnlyObject) -> str:
    name, url = inline(str(part.get("filename") or "file")), str(part.get("url", ""))
    if url.startswith(IMAGES) and url.partition(",")[2].strip("=").replace("+", "").replace("/", "").isalnum():
        return f'<figure><img src="{escape(url, quote=True)}" alt="{name}"><figcaption>{name}</figcaption></figure>'
    return f'<p class="note">File: {name} ({inline(str(part.get("mime", "")))})</p>'


def _subtask(part: ReadOnlyObject) -> str:
    return f'<p class="note">Task for {inline(str(part.get("agent")))}: {inline(str(part.get("description")))}</p>'


def _retry(part: ReadOnlyObject) -> str:
    error = part.get("error")
    said = inline(_failure(error)) if isinstance(error, dict) else ""
    return f'<p class="note">Attempt {inline(str(part.get("attempt")))} failed. {said}</p>'


_PARTS: Final[Mapping[str, Callable[[ReadOnlyObject], str]]] = {
    "text": _text,
    "reasoning": _reasoning,
    "tool": _tool,
    "file": _file,
    "subtask": _subtask,
    "retry": _retry,
    "compaction": lambda _: '<p class="note">Older history was summarised for the model here.</p>',
}


def _prompt(parts: Sequence[ReadOnlyObject]) -> str:
    said = (str(part.get("text", "")) for part in parts if part.get("type") == "text" and not part.get("synthetic"))
    return _title(next((text for text in said if text.strip()), ""))


def _short(given: object) -> str:
    """The first short value of an input, which usually says most of a call."""
    values = given.values() if isinstance(given, dict) else ()
    return next((_title(one) for one in values if isinstance(one, str)), "")


def _title(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE_CHARS_MAX else line[: TITLE_CHARS_MAX - 1].rstrip() + "…"


def _failure(error: ReadOnlyObject) -> str:
    data = error.get("data")
    message = data.get("message") if isinstance(data, dict) else None
    return f"{error.get('name', 'Error')}: {message}" if message else str(error.get("name", "Error"))


def _time(info: ReadOnlyObject) -> str:
    time = info.get("time")
    created = time.get("created") if isinstance(time, dict) else None
    if not isinstance(created, int | float):
        return ""
    try:
        return datetime.fromtimestamp(created / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    except (ValueError, OverflowError, OSError):  # Imported data may hold any number.
        return ""


def _seconds(time: object) -> str:
    if not isinstance(time, dict):
        return ""
    start, end = time.get("start"), time.get("end")
    if not isinstance(start, int | float) or not isinstance(end, int | float):
        return ""
    return f"{max(0, end - start) / 1000:.1f} s"
