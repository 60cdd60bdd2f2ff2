"""Exports as a source: opencode's format with one session or many, a tree, and the data of an opencode share."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from turnkeeper.interop.raw import (
    RawMessage,
    RawObject,
    RawSession,
    Unreadable,
    parse,
    parse_file,
    parse_optional,
    why_closed,
)
from turnkeeper.interop.report import Finding
from turnkeeper.interop.shapes import age, as_object
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import Json

ReadSessions: TypeAlias = Callable[[], Iterable[RawSession]]

SHAPE = 'is not an export: expected {"info": {...}, "messages": [...]}, a list of these, or the data of a share'


class Exports:
    """Exported sessions. A name is a file, or a file and a line number."""

    def __init__(self, name: str, readers: Mapping[str, ReadSessions]) -> None:
        self.name, self._readers = name, readers

    def names(self) -> Sequence[str]:
        """The files, and lines of files, in order."""
        return list(self._readers)

    def read(self, name: str) -> Iterable[RawSession]:
        """The sessions of a file or a line. Raises Unreadable."""
        try:
            return self._readers[name]()
        except OSError as error:
            raise Unreadable(f"cannot be read: {error}") from error

    def projects(self) -> Iterable[RawObject]:
        """An export names no projects."""
        return ()

    def skipped(self) -> Iterable[Finding]:
        """All data of an export belongs to a session."""
        return ()


def open_export(path: Path) -> Exports:
    """The sessions of a file or a folder. Raises NotFound, or Invalid if it has no sessions."""
    if path.is_dir():
        readers = dict(_in_folder(path))
        if not readers:
            raise Invalid(f"{path} holds no exported sessions: neither *.json, *.jsonl nor folders with a meta.json")
        return Exports(str(path), readers)
    if not path.exists():
        raise NotFound(f"there is nothing at {path}")
    if path.is_char_device() or path.is_block_device():
        raise Invalid(f"{path} is a device, not an export")
    readers = dict(_in_file(path))
    try:
        # If the first entry cannot be read, the file is no export. Later ones are reported as unreadable.
        for name, reader in list(readers.items())[:1]:
            readers[name] = partial(list, list(reader()))
    except (OSError, Unreadable) as error:
        raise Invalid(f"{path} {error}") from error
    if not readers:
        raise Invalid(f"{path} is empty")
    return Exports(str(path), readers)


def sessions(json: Json, place: str) -> list[RawSession]:
    """The sessions of a parsed export, in any of the formats. Raises Unreadable."""
    if isinstance(json, dict):
        return [_session(json, place)]
    if not isinstance(json, list) or not json:
        raise Unreadable(SHAPE)
    if all(isinstance(item, dict) and "type" in item and "data" in item for item in json):
        return [_shared(json, place)]
    return [_session(as_object(item), place) for item in json]


def _in_folder(folder: Path) -> Iterator[tuple[str, ReadSessions]]:
    if (folder / "meta.json").is_file():
        yield str(folder), partial(_tree, folder)
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue  # The temporary folder of an export that was killed.
        if (why := why_closed(path)) is not None:
            yield str(path), partial(_closed, why)
        elif path.is_dir() and (path / "meta.json").is_file():
            yield str(path), partial(_tree, path)
        elif os.path.isfile(path) and path.suffix in (".json", ".jsonl"):
            yield from _in_file(path)


def _in_file(path: Path) -> Iterator[tuple[str, ReadSessions]]:
    if path.suffix != ".jsonl":
        yield str(path), partial(_whole, path)
        return
    with path.open("rb") as file:
        start = 0
        for number, line in enumerate(file, 1):
            if line.strip():
                yield f"{path}:{number}", partial(_line, path, start, len(line), f"{path}:{number}")
            start += len(line)


def _whole(path: Path) -> list[RawSession]:
    return sessions(parse(path.read_bytes()), str(path))


def _line(path: Path, start: int, length: int, place: str) -> list[RawSession]:
    with path.open("rb") as file:
        file.seek(start)
        return sessions(parse(file.read(length)), place)


def _session(json: RawObject, place: str) -> RawSession:
    info, messages = json.get("info"), json.get("messages")
    if not isinstance(info, dict) or not isinstance(messages, list):
        raise Unreadable(SHAPE)
    session = RawSession(info, [], place=place)
    for nth, message in enumerate(_with_system(messages, as_object(json.get("turnkeeper")).get("system"))):
        _add(session, as_object(message).get("info"), as_object(message).get("parts"), nth)
    return session


def _with_system(messages: list[Json], system: Json) -> list[Json]:
    """The messages, with the system messages of ``turnkeeper.system`` inserted at their indexes."""
    whole = list(messages)
    for one in system if isinstance(system, list) else []:
        index = as_object(one).get("index")
        if isinstance(index, int) and 0 <= index <= len(whole):
            whole.insert(index, one)
    return whole


def _add(session: RawSession, info: Json, parts: Json, nth: int) -> None:
    if isinstance(info, dict):
        session.messages.append(RawMessage(info, parts if isinstance(parts, list) else []))
    else:
        session.unreadable.append(Finding(reason=f"message {nth} is not an object", place=session.place))


def _shared(items: list[Json], place: str) -> RawSession:
    """The session of a share: a flat list of the session, its messages and their parts, in any order."""
    data: dict[str, list[RawObject]] = {}
    for item in items:
        data.setdefault(str(as_object(item)["type"]), []).append(as_object(as_object(item)["data"]))
    if not data.get("session"):
        raise Unreadable("is the data of a share without a session")
    parts: dict[str, list[Json]] = {}
    for part in data.get("part", []):
        parts.setdefault(str(part.get("messageID")), []).append(part)
    messages = [RawMessage(info, parts.get(str(info.get("id")), [])) for info in data.get("message", [])]
    return RawSession(data["session"][0], sorted(messages, key=lambda message: age(message.info)), place=place)


def _closed(why: str) -> list[RawSession]:
    raise Unreadable(why)


def _tree(folder: Path) -> list[RawSession]:
    meta = parse_file(folder / "meta.json")
    if not isinstance(meta, dict):
        raise Unreadable("meta.json is not an object")
    order = meta.pop("messages", None)
    session = RawSession(meta, [], place=str(folder))
    session.todos, session.diffs = parse_optional(folder / "todo.json"), parse_optional(folder / "diff.json")
    for nth, file in enumerate(sorted((folder / "message").glob("*.json"))):
        try:
            info = parse_file(file)
        except (OSError, Unreadable) as error:
            session.unreadable.append(Finding(reason=str(error), place=str(file)))
            continue
        parts = info.pop("parts", None) if isinstance(info, dict) else None
        _add(session, info, parts, nth)
    place = {str(name): nth for nth, name in enumerate(order)} if isinstance(order, list) else {}
    session.messages.sort(key=lambda message: (place.get(str(message.info.get("id")), len(place)), *age(message.info)))
    return [session]
