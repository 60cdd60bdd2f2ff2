"""Front matter: the YAML between two lines of ``---`` at the top of a markdown file.

Only what JSON can express is read: words such as ``yes`` and dates are strings, and a reference to another value
(``*name``) is refused, because a few of them stand for more values than memory has.
"""

import math
import re
from functools import cache
from typing import Any, Final, NamedTuple

from turnkeeper.model.value import Json, JsonObject

CHARS_MAX: Final = 16_384
"""The most characters of front matter. YAML is slow to parse."""

_FENCED: Final = re.compile(r"---[ \t]*\n(?P<matter>.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_OPENED: Final = re.compile(r"---[ \t]*\n[A-Za-z_][A-Za-z0-9_-]*[ \t]*:")
"""Front matter, and no line between two paragraphs."""
_ENTRY: Final = re.compile(r"(?P<key>[A-Za-z_][A-Za-z0-9_-]*)[ \t]*:[ \t]*(?P<value>.*?)[ \t]*")
_QUOTED: Final = ('"', "'", "|", ">")
_BOOLEAN: Final = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")


class FrontmatterError(ValueError):
    """The front matter is no YAML, is not an object, or has no end."""


class MarkdownDocument(NamedTuple):
    """A markdown file: the values of its front matter, and the text below it."""

    values: JsonObject
    body: str


def parse(text: str) -> MarkdownDocument:
    """The front matter and the body of a file, which may have none. Raises FrontmatterError.

    Front matter that is no YAML is read once more with each top-level value that has a colon taken as text.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    fenced = _FENCED.match(text)
    if fenced is None and _OPENED.match(text):
        raise FrontmatterError("the front matter does not end; write a line of --- below it")
    if fenced is None:
        return MarkdownDocument({}, text.strip())
    matter, body = fenced["matter"], text[fenced.end() :].strip()
    if len(matter) > CHARS_MAX:
        raise FrontmatterError(f"the front matter is longer than {CHARS_MAX} characters")
    try:
        values = _parsed(matter)
    except FrontmatterError as error:
        try:
            values = _parsed(_as_text(matter))
        except FrontmatterError:
            raise error from None
    return MarkdownDocument(values, body)


def write(values: JsonObject, body: str) -> str:
    """A markdown file with these values as its front matter."""
    import yaml  # type: ignore[import-untyped]  # There are no stubs in the lock.

    matter = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{matter}---\n\n{body.strip()}\n"


def _parsed(matter: str) -> JsonObject:
    import yaml

    try:
        events = yaml.parse(matter, Loader=_loader())
        if any(isinstance(event, yaml.AliasEvent) for event in events):
            raise FrontmatterError("references to other values (*name) are not read")
        found = _as_json(yaml.load(matter, Loader=_loader()))
    except yaml.YAMLError as error:
        raise FrontmatterError(f"no YAML: {_reason(error)}") from error
    except RecursionError as error:
        raise FrontmatterError("values are nested too deeply") from error
    except FrontmatterError:
        raise
    except ValueError as error:  # A number of more digits than Python reads.
        raise FrontmatterError("a number is too long") from error
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise FrontmatterError("expected lines of `key: value`")
    return found


def _reason(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f" at line {mark.line + 2}" if mark is not None else ""
    return f"{getattr(error, 'problem', None) or str(error).splitlines()[0]}{where}"


def _as_text(matter: str) -> str:
    """The front matter with each plain top-level value that has a colon as a block of text."""
    lines: list[str] = []
    for line in matter.splitlines():
        entry = _ENTRY.fullmatch(line)
        if entry is None or ":" not in entry["value"] or entry["value"].startswith(_QUOTED):
            lines.append(line)
        else:
            lines += [f"{entry['key']}: |-", f"  {entry['value']}"]
    return "\n".join(lines)


def _as_json(value: object) -> Json:
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case dict():
            return {str(key): _as_json(item) for key, item in value.items()}
        case list():
            return [_as_json(item) for item in value]
        case _:
            raise FrontmatterError(f"{value!r:.60} is a value that JSON does not have")


@cache
def _loader() -> Any:  # A class of a package without types.
    """The safe loader, with dates and words such as ``yes`` left as they are written."""
    import yaml

    class PlainLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # Its base has no type.
        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":bool", ":merge"))]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    PlainLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOLEAN, list("tTfF"))
    return PlainLoader
