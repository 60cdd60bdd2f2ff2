"""Edits of one top-level key or one table of a TOML text. Comments, order and layout of everything else stay.

Every edit is checked by parsing the result. A text that cannot be edited so is refused with None.
"""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Final

from turnkeeper.model.value import Json

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def with_toml_member(text: str, key: str, value: str) -> str | None:
    """The text with a top-level key set to a string."""
    before = _toml(text)
    if before is None:
        return None
    written = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    edited = _toml_line(key).sub(lambda one: written + one["rest"], text, count=1) if key in before else text
    line = "\r\n" if "\r\n" in text else "\n"
    edited = edited if key in before else f"{written}{line}{text}"
    return edited if _toml(edited) == {**before, key: value} else None


def without_toml_member(text: str, key: str) -> str | None:
    """The text without a top-level key."""
    before = _toml(text)
    if before is None or key not in before:
        return text if before is not None else None
    edited = re.sub(_toml_line(key).pattern + r"(?:\n|\Z)", "", text, count=1, flags=re.MULTILINE)
    return edited if _toml(edited) == {name: one for name, one in before.items() if name != key} else None


def with_toml_table(text: str, path: Sequence[str], values: Mapping[str, Json]) -> str | None:
    """The text with a table at its end. None if the table is there already."""
    before = _toml(text)
    if before is None or _below(before, path) is not None:
        return None
    line = "\r\n" if "\r\n" in text else "\n"
    written = [f"[{_dotted(path)}]", *(f"{_dotted([key])} = {_value(one)}" for key, one in values.items())]
    gap = "" if not text.strip() else line if text.endswith("\n") else line * 2
    edited = f"{text if gap else ''}{gap}{line.join(written)}{line}"
    after = _toml(edited)
    if after is None or _below(after, path) != dict(values):
        return None
    return edited if _without(after, path) == _without(before, path) else None


def without_toml_table(text: str, path: Sequence[str]) -> str | None:
    """The text without a table and those below it."""
    before = _toml(text)
    if before is None or _below(before, path) is None:
        return text if before is not None else None
    header = re.compile(r"^[ \t]*\[{1,2}[^\n]*$", re.MULTILINE)
    spelt = r"[ \t]*\.[ \t]*".join(map(_spelt, path))
    own = re.compile(rf"[ \t]*\[[ \t]*{spelt}[ \t]*(?:\.[^\n]*)?\]")
    kept, at = [], 0
    starts = [found.start() for found in header.finditer(text)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        kept.append(text[at:start])
        at = end if own.match(text, start) else start
    edited = "".join([*kept, text[at:]])
    after = _toml(edited)
    if after is None or _below(after, path) is not None:
        return None
    return edited if _without(after, path) == _without(before, path) else None


def _dotted(path: Sequence[str]) -> str:
    return ".".join(key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path)


def _spelt(key: str) -> str:
    """A pattern of the ways to write a key."""
    quoted = re.escape(json.dumps(key, ensure_ascii=False))
    return f"(?:{re.escape(key)}|{quoted}|'{re.escape(key)}')"


def _value(value: Json) -> str:
    """A value on one line."""
    match value:
        case dict():
            return f"{{{', '.join(f'{_dotted([key])} = {_value(one)}' for key, one in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(_value, value))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def _below(values: object, path: Sequence[str]) -> object:
    for key in path:
        values = values.get(key) if isinstance(values, dict) else None
    return values


def _without(values: Mapping[str, object], path: Sequence[str]) -> dict[str, object]:
    """The values without the value at a path, and without tables that are then empty."""
    below = values.get(path[0])
    rest = {key: one for key, one in values.items() if key != path[0]}
    if len(path) == 1 or not isinstance(below, dict):
        return rest
    inner = _without(below, path[1:])
    return {**rest, path[0]: inner} if inner else rest


def _toml(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError):  # No TOML, or a number of more digits than Python reads.
        return None


def _toml_line(key: str) -> re.Pattern[str]:
    string = r'(?:"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*')"
    return re.compile(rf"^[ \t]*{re.escape(key)}[ \t]*=[ \t]*{string}(?P<rest>[ \t]*(?:#[^\n]*)?\r?)$", re.MULTILINE)
