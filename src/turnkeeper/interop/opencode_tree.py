"""opencode's JSON trees as a source, before and after each of opencode's migrations.

A tree is only read, never migrated, so a tree that a failed migration left incomplete can be imported too.

    storage/session/<project>/<id>.json     and message/<session>/, part/<message>/, todo/, session_diff/: since 0.6
    project/<name>/storage/session/info/    and session/message/<session>/, session/part/...: before
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from turnkeeper.interop.opencode_row import arrival
from turnkeeper.interop.opencode_v0 import messages
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, Unreadable, parse_file, parse_optional, why_closed
from turnkeeper.interop.report import Finding
from turnkeeper.interop.shapes import age, as_object, created


class OpencodeTree:
    """The trees in opencode's data directory."""

    def __init__(self, data: Path) -> None:
        self.name = str(data)
        self._data = data
        self._found: dict[str, _SessionFiles] = {}
        self._closed: dict[str, str] = {}
        """Why folders with sessions cannot be listed, by their paths."""

    def names(self) -> Sequence[str]:
        """The ids of the sessions, and the folders of sessions that cannot be listed.

        A session that two trees have is read from the newer tree.
        """
        storage = self._data / "storage"
        for file in sorted((storage / "session").glob("*/*.json")):
            self._found.setdefault(file.stem, _SessionFiles(file, storage, file.parent.name))
        for project in sorted((self._data / "project").glob("*/storage")):
            for file in sorted((project / "session" / "info").glob("*.json")):
                self._found.setdefault(file.stem, _OldSessionFiles(file, project, ""))
        new, old = storage / "session", self._data / "project"
        folders = (new, *new.glob("*"), old, *old.glob("*"), *old.glob("*/storage/session/info"))
        self._closed = {str(one): why for one in folders if (why := why_closed(one)) is not None}
        return [*self._found, *self._closed]

    def read(self, name: str) -> Iterable[RawSession]:
        """A session with its history. Raises Unreadable."""
        if name in self._closed:
            raise Unreadable(self._closed[name])
        return [self._found[name].session()]

    def projects(self) -> Iterable[RawObject]:
        """The projects that have a file."""
        for file in sorted((self._data / "storage" / "project").glob("*.json")):
            try:
                project = as_object(parse_file(file))
            except (OSError, Unreadable):
                continue  # The sessions of the project have its id.
            yield {"worktree": "/", "sandboxes": [], "time": {}, **project, "id": file.stem}

    def skipped(self) -> Iterable[Finding]:
        """Messages whose session does not exist."""
        for folder in sorted((self._data / "storage" / "message").glob("*")):
            if folder.name not in self._found and folder.is_dir():
                count = len(list(folder.glob("*.json")))
                yield Finding(reason=f"{count} messages of a session that is not there", place=str(folder))


class _SessionFiles:
    """The files of a session since 0.6. Ids are taken from file names, because files were moved without a rewrite."""

    def __init__(self, file: Path, storage: Path, project_id: str) -> None:
        self._file, self._storage, self._project_id = file, storage, project_id

    def session(self) -> RawSession:
        """The session with its messages. Raises Unreadable."""
        name = self._file.stem
        info = {**_object(self._file), "id": name}
        session = RawSession(info, [], place=str(self._file))
        if self._project_id:
            info.setdefault("projectID", self._project_id)
        session.todos = parse_optional(self._storage / "todo" / f"{name}.json")
        session.diffs = parse_optional(self._storage / "session_diff" / f"{name}.json")
        for folder in ("share", "session_share", "session/share"):
            share = parse_optional(self._storage / folder / f"{name}.json")
            if isinstance(share, dict) and isinstance(share.get("url"), str):
                info["share"] = {**as_object(info.get("share")), **share}
        session.messages = sorted(self.messages(session), key=lambda message: age(message.info))
        if "directory" not in info and (directory := _directory(session.messages)):
            info["directory"] = directory
        return session

    def messages(self, session: RawSession) -> Iterator[RawMessage]:
        """The messages, unsorted."""
        for file, info in _readable(self._storage / "message" / self._file.stem, session):
            parts = _readable(self._storage / "part" / file.stem, session)
            yield _message(file, info, [{**part, "id": one.stem} for one, part in parts])


class _OldSessionFiles(_SessionFiles):
    """The files of a session before 0.6. The format of messages changed three times in these trees."""

    def messages(self, session: RawSession) -> Iterator[RawMessage]:
        """The messages, unsorted, each in the current format."""
        name = self._file.stem
        for file, info in _readable(self._storage / "session" / "message" / name, session):
            folder = self._storage / "session" / "part" / name / file.stem
            parts: list[RawObject] = [{**part, "id": one.stem} for one, part in _readable(folder, session)]
            try:
                info, embedded, dropped = messages.current({"sessionID": name, **info, "id": file.stem})
            except (messages.UnknownShape, AttributeError, KeyError, TypeError) as error:
                # The old format nests objects three deep, and any of them may have another type.
                session.unreadable.append(Finding(reason=str(error), place=str(file), session_id=name))
                continue
            if dropped:
                reason = f"{dropped} parts of a kind that later versions do not have"
                session.skipped.append(Finding(reason=reason, session_id=name, message_id=file.stem))
            yield _message(file, info, [*embedded, *parts])


def _message(file: Path, info: RawObject, parts: list[RawObject]) -> RawMessage:
    info = {**info, "id": file.stem}
    return RawMessage(info, [*sorted(parts, key=partial(arrival, near=created(info)))])


def _readable(folder: Path, session: RawSession) -> Iterator[tuple[Path, RawObject]]:
    """The objects of the files in a folder. What cannot be read is added to ``unreadable``."""
    if (why := why_closed(folder)) is not None:
        session.unreadable.append(Finding(reason=why, place=str(folder), session_id=session.info["id"]))
    for file in sorted(folder.glob("*.json")):
        try:
            yield file, _object(file)
        except Unreadable as error:
            session.unreadable.append(Finding(reason=str(error), place=str(file), session_id=session.info["id"]))


def _object(file: Path) -> RawObject:
    try:
        json = parse_file(file)
    except OSError as error:
        raise Unreadable(f"cannot be read: {error}") from error
    if not isinstance(json, dict):
        raise Unreadable("holds no JSON object")
    return json


def _directory(messages: list[RawMessage]) -> str | None:
    """The directory of the session, which the oldest layouts have only in messages."""
    for message in messages:
        path = as_object(message.info.get("path"))
        for name in ("cwd", "root"):
            if isinstance(path.get(name), str):
                return str(path[name])
    return None
