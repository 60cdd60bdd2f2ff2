"""Gemini CLI: ``tmp/<project>/chats/session-*.jsonl``, and before it one JSON object with all messages.

A record with the id of an earlier one replaces it. ``$set`` changes the metadata, or all messages. ``$rewindTo`` takes
messages back, which become a branch.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Final

from turnkeeper.interop import shapes
from turnkeeper.interop.draft import Draft
from turnkeeper.interop.fields import rest, word
from turnkeeper.interop.gemini_record import Record
from turnkeeper.interop.lines import Account, items_of, read_lines
from turnkeeper.interop.raw import (
    RawMessage,
    RawObject,
    RawSession,
    Unreadable,
    derived_session_id,
    parse_file,
    parse_optional,
)
from turnkeeper.model.value import Json
from turnkeeper.workspace import paths

PROGRAM: Final = "gemini"
PATH_CHARS_MAX: Final = 4096
"""A longer text is no path."""


def places(environ: Mapping[str, str]) -> list[Path]:
    """The directories of Gemini CLI's history."""
    given = environ.get("GEMINI_CLI_HOME")
    return [(Path(given).expanduser() if given else paths.home(environ)) / ".gemini" / "tmp"]


def is_history(file: Path) -> bool:
    """Whether a file may hold a session: one below a ``chats`` directory."""
    return file.suffix in (".json", ".jsonl") and "chats" in file.parts[:-1]


def read(file: Path, account: Account) -> list[RawSession]:
    """The session of a file, and its branches. Raises OSError and Unreadable."""
    conversation = _File(file, account)
    for number, body in _whole(file, account) if file.suffix == ".json" else read_lines(file, account):
        conversation.add(number, body)
    return conversation.sessions()


def _whole(file: Path, account: Account) -> Iterable[tuple[int, RawObject]]:
    """The older layout, one JSON object, as lines."""
    found = shapes.as_object(parse_file(file))
    if not isinstance(found.get("messages"), list):
        raise Unreadable('is no history of Gemini CLI: expected {"sessionId": ..., "messages": [...]}')
    return items_of([rest(found, "messages"), *found["messages"]], account)


class _File:
    """The records of a file in order. They become messages when all are known, because later ones replace earlier."""

    def __init__(self, file: Path, account: Account) -> None:
        self._file, self._account = file, account
        self._about: RawObject = {}
        self._records: dict[str, tuple[int, RawObject]] = {}
        self._lost: list[list[tuple[int, RawObject]]] = []
        self._kept: list[tuple[int, RawObject]] = []

    def add(self, number: int, body: RawObject) -> None:
        if isinstance(body.get("$set"), dict):
            changes = body["$set"]
            self._about |= rest(changes, "messages")
            if isinstance(changes.get("messages"), list):
                self._replace(number, changes["messages"])
                body = {**body, "$set": rest(changes, "messages")}
            self._kept.append((number, body))
            self._account.understood(number)
        elif isinstance(body.get("$rewindTo"), str):
            self._rewind(body["$rewindTo"])
            self._account.understood(number)
        elif isinstance(body.get("id"), str) and isinstance(body.get("type"), str):
            first = self._records[body["id"]][0] if body["id"] in self._records else number
            self._records[body["id"]] = (first, body)
            if body["type"] in ("user", "gemini"):
                self._account.understood(number)
            else:
                self._account.foreign(number)
        elif isinstance(body.get("sessionId"), str):
            self._about = {**body, **self._about}
            self._kept.append((number, body))
            self._account.understood(number)
        else:
            self._kept.append((number, body))
            self._account.foreign(number)

    def _replace(self, number: int, messages: list[Json]) -> None:
        given = [one for one in messages if isinstance(one, dict) and isinstance(one.get("id"), str)]
        if len(given) != len(messages):
            self._kept.append((number, {"messages": [one for one in messages if one not in given]}))
        fresh = {one["id"]: (number, one) for one in given}
        if self._records.keys() - fresh.keys():
            self._lost.append(list(self._records.values()))
        self._records = fresh

    def _rewind(self, to: str) -> None:
        before = list(self._records)
        at = before.index(to) if to in self._records else 0
        if before:
            self._lost.append(list(self._records.values()))
        for name in before[at:]:
            del self._records[name]

    def sessions(self) -> list[RawSession]:
        key = word(self._about.get("sessionId")) or self._file.stem
        draft = Draft(PROGRAM, key)
        draft.at(self._about.get("startTime"))
        draft.title = word(self._about.get("summary"))
        draft.directory = self._directory()
        folder = self._file.parent
        if self._about.get("kind") == "subagent" and any(folder.parent.glob(f"session-*{folder.name[:8]}*")):
            draft.parent = derived_session_id(PROGRAM, folder.name)
        made: dict[str, RawMessage | None] = {}
        # Of records with one id the newest counts, also in what was taken back.
        newest = {one[1]["id"]: one for history in (*self._lost, list(self._records.values())) for one in history}
        records = sorted(newest.values(), key=lambda one: one[0])
        kept = deque(sorted(self._kept, key=lambda one: one[0]))
        for number, record in records:
            while kept and kept[0][0] < number:
                early, body = kept.popleft()
                draft.keep(str(early), body)
            made[record["id"]] = Record(draft, record).message()
        for late, body in kept:
            draft.keep(str(late), body)
        draft.branches = [_chosen(made, history) for history in self._lost]
        draft.messages = _chosen(made, self._records.values())
        return draft.sessions(str(self._file))

    def _directory(self) -> str:
        """The directory of the session. The program stores its hash or a short name; newer versions also the path."""
        named = self._about.get("directories")
        if isinstance(named, list) and named and isinstance(named[0], str):
            return named[0]
        return self._stored_beside() or _with_hash(
            word(self._about.get("projectHash")), (record for _, record in self._records.values())
        )

    def _stored_beside(self) -> str:
        above = list(self._file.parents)
        folder = next((above[nth + 1] for nth, one in enumerate(above[:-1]) if one.name == "chats"), None)
        if folder is None:
            return ""
        try:
            root = (folder / ".project_root").read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError):
            root = ""
        if root:
            return root
        projects = shapes.as_object(parse_optional(folder.parent.parent / "projects.json"))
        listed = shapes.as_object(projects.get("projects"))
        return next((path for path, name in listed.items() if name == folder.name), "")


def _with_hash(wanted: str, records: Iterable[Json]) -> str:
    """The path that has a hash, among the paths that records name and the directories above them; or nothing."""
    left, seen = list(records), set[str]()
    while left and wanted:
        match left.pop():
            case dict(fields):
                left += fields.values()
            case list(items):
                left += items
            case str(text) if text.startswith("/") and len(text) <= PATH_CHARS_MAX:
                path = PurePosixPath(text)
                for one in map(str, (path, *path.parents)):
                    if one not in seen and sha256(one.encode(errors="replace")).hexdigest() == wanted:
                        return one
                    seen.add(one)
    return ""


def _chosen(made: dict[str, RawMessage | None], history: Iterable[tuple[int, RawObject]]) -> list[RawMessage]:
    return [message for _, record in history if (message := made[record["id"]]) is not None]
