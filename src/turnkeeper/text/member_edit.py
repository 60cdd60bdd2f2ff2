"""Edits of one member of a JSONC text. Comments, order and layout of everything else stay.

Every edit is checked by parsing the result. A text that cannot be edited so is refused with None.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from turnkeeper.model.value import Json, JsonObject
from turnkeeper.text import jsonc

_SPACE: Final = re.compile(r"\s*")
_KEY: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_COMMA_BEHIND: Final = re.compile(r"(?:\s|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*,", re.DOTALL)
_DECODER: Final = json.JSONDecoder()


def with_jsonc_member(text: str, path: Sequence[str], value: Json) -> str | None:
    """The text with a member set. The path leads to it from the top; objects on the way that are missing are made."""
    line = "\r\n" if "\r\n" in text else "\n"
    if not text.strip().removeprefix("\ufeff"):
        return f"{{{line}  {_member(path, value, '  ', line)}{line}}}{line}"
    before = _json_object(text)
    reached = _reached(text, path)
    if before is None or reached is None:
        return None
    same = [one for one in reached.members if one.key == path[reached.depth]]
    if len(same) == 1:
        edited = text[: same[0].value_at] + json.dumps(value, ensure_ascii=False) + text[same[0].end :]
    else:
        edited = _inserted(text, reached, path[reached.depth :], value, line)
    return edited if _json_object(edited) == _set(before, path, value) else None


def without_jsonc_member(text: str, path: Sequence[str]) -> str | None:
    """The text without a member. The path leads to it from the top."""
    before = _json_object(text)
    reached = _reached(text, path)
    if before is None or reached is None:
        return None
    members = reached.members
    places = [number for number, one in enumerate(members) if one.key == path[reached.depth]]
    if not places or reached.depth < len(path) - 1:
        return text
    [place] = places
    one = members[place]
    start, end, comma = one.key_at, one.end, None
    if behind := _COMMA_BEHIND.match(text, one.end):
        end = behind.end() if text[one.end : behind.end() - 1].strip() == "" else end
        comma = behind.end() - 1 if end == one.end else None
    if place == len(members) - 1 and place:
        comma_before = jsonc.plain(text).index(",", members[place - 1].end)
        if not behind:
            return _checked_without(text[:comma_before] + text[comma_before + 1 : start], text[end:], before, path)
    rest = text[end:] if comma is None else text[end:comma] + text[comma + 1 :]
    return _checked_without(text[:start], rest, before, path)


class _Member(NamedTuple):
    key: str
    key_at: int
    value_at: int
    end: int


class _Reached(NamedTuple):
    """The innermost existing object on a path: its members, and the number of steps to it."""

    at: int
    """The index after its opening brace."""
    members: list[_Member]
    depth: int


def _reached(text: str, path: Sequence[str]) -> _Reached | None:
    """The innermost existing object on a path.

    None for a text with a syntax error, for a path that occurs twice, and for one that leads into no object.
    """
    plain = jsonc.plain(text)
    opened = re.match(r"\ufeff?\s*\{", plain)
    if opened is None:
        return None
    at = opened.end()
    for depth, key in enumerate(path):
        try:
            members = list(_walked(plain, at))
        except (ValueError, RecursionError):
            return None
        same = [one for one in members if one.key == key]
        if not same or (len(same) == 1 and depth == len(path) - 1):
            return _Reached(at, members, depth)
        if len(same) > 1 or not plain.startswith("{", same[0].value_at):
            return None
        at = same[0].value_at + 1
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


def _inserted(text: str, reached: _Reached, path: Sequence[str], value: Json, line: str) -> str:
    """The text with a member before the others, laid out as the first of them."""
    at = reached.at
    if not reached.members:
        outer = _indent(text, at)
        closing = "" if "\n" in text[at:] and text[at:].lstrip(" \t\r").startswith("\n") else f"{line}{outer}"
        return f"{text[:at]}{line}{outer}  {_member(path, value, f'{outer}  ', line)}{closing}{text[at:]}"
    first = reached.members[0].key_at
    if "\n" not in text[at:first]:
        member = f"{_key(path)}: {json.dumps(_nested(path[1:], value), ensure_ascii=False)}"
        return f"{text[:first]}{member}, {text[first:]}"
    indent = text[text.rindex("\n", 0, first) + 1 : first]
    indent = indent if not indent.strip() else "  "
    return f"{text[:at]}{line}{indent}{_member(path, value, indent, line)},{text[at:]}"


def _member(path: Sequence[str], value: Json, indent: str, line: str) -> str:
    """A member and the objects on the way to it, each on lines of its own. The value is on one line."""
    if len(path) == 1:
        return f"{_key(path)}: {json.dumps(value, ensure_ascii=False)}"
    inner = _member(path[1:], value, f"{indent}  ", line)
    return f"{_key(path)}: {{{line}{indent}  {inner}{line}{indent}}}"


def _key(path: Sequence[str]) -> str:
    return json.dumps(path[0], ensure_ascii=False)


def _indent(text: str, at: int) -> str:
    """The white space that the line of a place begins with."""
    start = text.rfind("\n", 0, at) + 1
    return text[start : start + len(text[start:at]) - len(text[start:at].lstrip(" \t"))]


def _nested(path: Sequence[str], value: Json) -> Json:
    for key in reversed(path):
        value = {key: value}
    return value


def _set(given: Mapping[str, Json], path: Sequence[str], value: Json) -> JsonObject:
    below = given.get(path[0])
    inner = _set(below if isinstance(below, dict) else {}, path[1:], value) if len(path) > 1 else value
    return {**given, path[0]: inner}


def _unset(given: Mapping[str, Json], path: Sequence[str]) -> JsonObject:
    below = given.get(path[0])
    if len(path) > 1:
        return {**given, path[0]: _unset(below, path[1:])} if isinstance(below, dict) else dict(given)
    return {key: one for key, one in given.items() if key != path[0]}


def _checked_without(head: str, rest: str, before: JsonObject, path: Sequence[str]) -> str | None:
    """The two halves of a text, without the line between them if nothing is left in it."""
    start = head.rfind("\n") + 1
    end = rest.find("\n")
    is_empty = start and end >= 0 and not head[start:].strip() and not rest[:end].strip()
    edited = head[:start] + rest[end + 1 :] if is_empty else head + (rest.lstrip(" ") if head.endswith(" ") else rest)
    return edited if _json_object(edited) == _unset(before, path) else None


def _json_object(text: str) -> JsonObject | None:
    try:
        found = jsonc.parse(text)
    except jsonc.JsoncError:
        return None
    return found if isinstance(found, dict) else None
