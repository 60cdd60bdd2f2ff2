"""Redacted: the JSON of sessions and messages with their secrets masked, and the names of the places in the report."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from json import dumps
from typing import Final

from turnkeeper.core.redaction import ENV_FILE, Redactor
from turnkeeper.interop.raw import RawObject, ReadOnlyObject

_JOINED: Final = ("text", "reasoning")
"""Kinds of parts whose texts are read as one: a secret may begin in one part and end in the next."""


def session(redactor: Redactor, info: ReadOnlyObject) -> RawObject:
    """A session with its secrets masked."""
    return _object(redactor.json(dict(info), "session"))


def message(redactor: Redactor, json: ReadOnlyObject, place: str) -> RawObject:
    """A message ``{"info", "parts"}`` with its secrets masked. ``place`` names it in the report."""
    return {
        **json,
        "info": _object(redactor.json(dict(json["info"]), place)),
        "parts": list(parts(redactor, json["parts"], place)),
    }


def parts(redactor: Redactor, given: Sequence[ReadOnlyObject], place: str) -> Iterator[RawObject]:
    """The parts of a message with their secrets masked."""
    for kind, group in groupby(given, lambda part: part.get("type")):
        together = [dict(part) for part in group]
        if kind in _JOINED and all(isinstance(part.get("text"), str) for part in together):
            where = f"{place} {kind}"
            for part, text in zip(together, redactor.texts([part["text"] for part in together], where), strict=True):
                rest = _object(redactor.json({key: one for key, one in part.items() if key != "text"}, where))
                yield {**rest, "text": text}
        else:
            for part in together:
                yield _part(redactor, part, place)


def _part(redactor: Redactor, part: RawObject, place: str) -> RawObject:
    state = part.get("state")
    if part.get("type") != "tool" or not isinstance(state, dict):
        return _object(redactor.json(part, f"{place} {part.get('type', 'part')}"))
    name = str(part.get("tool", "tool"))[:40]
    given = state.get("input")
    is_env = ENV_FILE.search(dumps(given, ensure_ascii=False)) is not None
    # What is written into such a file is one; a command that names it may set harmless variables.
    is_written = isinstance(given, dict) and ENV_FILE.search(str(given.get("filePath", ""))) is not None
    rest = _object(redactor.json({key: one for key, one in part.items() if key != "state"}, f"{place} {name}"))
    fields: RawObject = {}
    for key, value in state.items():
        where = f"{place} {name} {key}"
        masked_key = redactor.text(key, where)
        holds_env = is_written if key == "input" else is_env
        fields[masked_key] = value if key == "status" else redactor.json(value, where, is_env=holds_env)
    return {**rest, "state": fields}


def _object(value: object) -> RawObject:
    assert isinstance(value, dict)
    return value
