"""opencode's JSON trees as a source, at every age: before and after each of its migrations. Only ever read.

Nothing is migrated in place or in a copy: every layout is read as it lies, so a tree that a failed migration left
half done gives what it has, and nothing is needed but the right to read.

    storage/session/<project>/<id>.json     and message/<session>/, part/<message>/, todo/, session_diff/: since 0.6
    project/<name>/storage/session/info/    and session/message/<session>/, session/part/...: before
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from turnkeeper.interop.opencode_row import arrival
from turnkeeper.interop.opencode_v0 import messages
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, Unreadable, parse_file
from turnkeeper.interop.report import Finding
from turnkeeper.interop.shapes import age, as_object, created
from turnkeeper.model.value import Json


class OpencodeTree:
    """The trees in opencode's data directory."""

    def __init__(self, data: Path) -> None:
        self.name = str(data)
        self._data = data
        self._found: dict[str, _Place] = {}

    def names(self) -> Sequence[str]:
        """The ids of the sessions; the same one in two trees is taken from the newer."""
        storage = self._data / "storage"
        for file in sorted((storage / "session").glob("*/*.json")):
            self._found.setdefault(file.stem, _Place(file, storage, file.parent.name))
        for project in sorted((self._data / "project").glob("*/storage")):
            for file in sorted((project / "session" / "info").glob("*.json")):
                self._found.setdefault(file.stem, _Old(file, project, ""))
        return list(self._found)

    def read(self, name: str) -> Iterable[RawSession]:
        """One session with its history. Raises Unreadable."""
        return [self._found[name].session()]

    def projects(self) -> Iterable[RawObject]:
        """The projects that have a file of their own."""
        for file in sorted((self._data / "storage" / "project").glob("*.json")):
            try:
                project = as_object(parse_file(file))
            except (OSError, Unreadable):
                continue  # Sessions name their project themselves.
            yield {"worktree": "/", "sandboxes": [], "time": {}, **project, "id": file.stem}

    def skipped(self) -> Iterable[Finding]:
        """Messages whose session is gone."""
        for folder in sorted((self._data / "storage" / "message").glob("*")):
            if folder.name not in self._found and folder.is_dir():
                count = len(list(folder.glob("*.json")))
                yield Finding(reason=f"{count} messages of a session that is not there", place=str(folder))

    def close(self) -> None:
        """Nothing is held open."""


class _Place:
    """Where one session lies since 0.6. Names of files and folders count, not what is written inside: files moved."""

    def __init__(self, file: Path, storage: Path, project_id: str) -> None:
        self._file, self._storage, self._project_id = file, storage, project_id

    def session(self) -> RawSession:
        """The session as its files have it."""
        name = self._file.stem
        info = {**_object(self._file), "id": name}
        session = RawSession(info, [], place=str(self._file))
        if self._project_id:
            info.setdefault("projectID", self._project_id)
        session.todos = _optional(self._storage / "todo" / f"{name}.json")
        session.diffs = _optional(self._storage / "session_diff" / f"{name}.json")
        for folder in ("share", "session_share"):
            share = _optional(self._storage / folder / f"{name}.json")
            if isinstance(share, dict) and isinstance(share.get("url"), str):
                info["share"] = {**as_object(info.get("share")), **share}
        session.messages = sorted(self.messages(session), key=lambda message: age(message.info))
        if "directory" not in info and (directory := _directory(session.messages)):
            info["directory"] = directory
        return session

    def messages(self, session: RawSession) -> Iterator[RawMessage]:
        """The messages in no order."""
        for file, info in _readable(self._storage / "message" / self._file.stem, session):
            parts = _readable(self._storage / "part" / file.stem, session)
            yield _message(file, info, [{**part, "id": one.stem} for one, part in parts])


class _Old(_Place):
    """Where one session lay before 0.6, with shapes of messages that changed three times."""

    def session(self) -> RawSession:
        """The session as its files have it, its project told from the folder where it worked."""
        session = super().session()
        share = _optional(self._storage / "session" / "share" / f"{self._file.stem}.json")
        if isinstance(share, dict) and isinstance(share.get("url"), str):
            session.info["share"] = {**as_object(session.info.get("share")), **share}
        return session

    def messages(self, session: RawSession) -> Iterator[RawMessage]:
        """The messages in no order, each in today's shape."""
        name = self._file.stem
        for file, info in _readable(self._storage / "session" / "message" / name, session):
            folder = self._storage / "session" / "part" / name / file.stem
            parts: list[RawObject] = [{**part, "id": one.stem} for one, part in _readable(folder, session)]
            try:
                info, embedded, dropped = messages.current({"sessionID": name, **info, "id": file.stem})
            except (messages.UnknownShape, AttributeError, KeyError, TypeError) as error:
                # Some facts of that age stand three objects deep; any of them may be something else.
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
    """The objects in a folder's files; a broken one is reported and does not stop the others."""
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


def _optional(file: Path) -> Json:
    try:
        return parse_file(file)
    except (OSError, Unreadable):
        return None


def _directory(messages: list[RawMessage]) -> str | None:
    """Where the session worked: the oldest layouts say so only in its messages."""
    for message in messages:
        path = as_object(message.info.get("path"))
        for name in ("cwd", "root"):
            if isinstance(path.get(name), str):
                return str(path[name])
    return None
