"""Edits of one member at the top of a JSONC or TOML text. Comments, order and layout of everything else stay.

Every edit is checked by parsing the result. A text that cannot be edited so is refused with None.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Final, NamedTuple

from turnkeeper.model.value import JsonObject
from turnkeeper.text import jsonc

_SPACE: Final = re.compile(r"\s*")
_KEY: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_COMMA_BEHIND: Final = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*,", re.DOTALL)
_DECODER: Final = json.JSONDecoder()


def with_jsonc_member(text: str, key: str, value: str) -> str | None:
    """The text with a member set to a string."""
    written = json.dumps(value, ensure_ascii=False)
    line = "\r\n" if "\r\n" in text else "\n"
    if not text.strip().removeprefix("\ufeff"):
        return f'{{{line}  "{key}": {written}{line}}}{line}'
    found = _members(text)
    if found is None:
        return None
    at, members = found
    same = [one for one in members if one.key == key]
    if len(same) == 1:
        edited = text[: same[0].value_at] + written + text[same[0].end :]
    elif same:
        return None
    else:
        edited = _inserted(text, at, members, f'"{key}": {written}', line)
    return edited if _json_object(edited) == {**(_json_object(text) or {}), key: value} else None


def without_jsonc_member(text: str, key: str) -> str | None:
    """The text without a member."""
    found = _members(text)
    before = _json_object(text)
    if found is None or before is None:
        return None
    members = found[1]
    places = [number for number, one in enumerate(members) if one.key == key]
    if len(places) != 1:
        return None if places else text
    [place] = places
    one = members[place]
    start, end, comma = one.key_at, one.end, None
    if behind := _COMMA_BEHIND.match(text, one.end):
        end = behind.end() if text[one.end : behind.end() - 1].strip() == "" else end
        comma = behind.end() - 1 if end == one.end else None
    if place == len(members) - 1 and place:
        comma_before = jsonc.plain(text).index(",", members[place - 1].end)
        if not behind:
            return _checked_without(text[:comma_before] + text[comma_before + 1 : start], text[end:], before, key)
    rest = text[end:] if comma is None else text[end:comma] + text[comma + 1 :]
    return _checked_without(text[:start], rest, before, key)


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


class _Member(NamedTuple):
    key: str
    key_at: int
    value_at: int
    end: int


def _members(text: str) -> tuple[int, list[_Member]] | None:
    """The place behind the opening brace, and the members; None for a text that is not walked to its end."""
    plain = jsonc.plain(text)
    opened = re.match(r"\ufeff?\s*\{", plain)
    try:
        return (opened.end(), list(_walked(plain, opened.end()))) if opened else None
    except (ValueError, RecursionError):
        return None


def _walked(plain: str, at: int) -> Iterator[_Member]:
    while True:
        at = _skipped(plain, at)
        if plain.startswith("}", at):
            return
        named = _KEY.match(plain, at)
        if named is None:
            raise ValueError("no key")
        colon = _skipped(plain, named.end())
        if not plain.startswith(":", colon):
            raise ValueError("no colon")
        value_at = _skipped(plain, colon + 1)
        _, end = _DECODER.raw_decode(plain, value_at)
        yield _Member(json.loads(named[0]), at, value_at, end)
        at = _skipped(plain, end)
        at += plain.startswith(",", at)


def _skipped(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found else at


def _inserted(text: str, at: int, members: list[_Member], member: str, line: str) -> str:
    """The text with a member before the others, laid out as the first of them."""
    if not members:
        gap = "" if "\n" in text[at:] and text[at:].lstrip(" \t\r").startswith("\n") else line
        return f"{text[:at]}{line}  {member}{gap}{text[at:]}"
    first = members[0].key_at
    if "\n" not in text[at:first]:
        return f"{text[:first]}{member}, {text[first:]}"
    indent = text[text.rindex("\n", 0, first) + 1 : first]
    return f"{text[:at]}{line}{indent if not indent.strip() else '  '}{member},{text[at:]}"


def _checked_without(head: str, rest: str, before: JsonObject, key: str) -> str | None:
    """The two halves of a text, without the line between them if nothing is left in it."""
    start = head.rfind("\n") + 1
    end = rest.find("\n")
    is_empty = start and end >= 0 and not head[start:].strip() and not rest[:end].strip()
    edited = head[:start] + rest[end + 1 :] if is_empty else head + (rest.lstrip(" ") if head.endswith(" ") else rest)
    return edited if _json_object(edited) == {name: one for name, one in before.items() if name != key} else None


def _json_object(text: str) -> JsonObject | None:
    try:
        found = jsonc.parse(text)
    except jsonc.JsoncError:
        return None
    return found if isinstance(found, dict) else None


def _toml(text: str) -> dict[str, object] | None:
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (ValueError, RecursionError):  # No TOML, or a number of more digits than Python reads.
        return None


def _toml_line(key: str) -> re.Pattern[str]:
    string = r'(?:"(?:[^"\\\n]|\\.)*"|' + r"'[^'\n]*')"
    return re.compile(rf"^[ \t]*{re.escape(key)}[ \t]*=[ \t]*{string}(?P<rest>[ \t]*(?:#[^\n]*)?\r?)$", re.MULTILINE)
