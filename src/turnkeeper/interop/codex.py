"""Codex: ``sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`` and its older layouts.

A line is a wrapped item (``{"timestamp", "type", "payload"}``), or in old files the item itself. Before these there was
one JSON object with all items. An ``event_msg`` that repeats a ``response_item`` is told once.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from turnkeeper.interop import shapes
from turnkeeper.interop.codex_items import Items, texts_of
from turnkeeper.interop.draft import Draft
from turnkeeper.interop.fields import count, objects, usage, word
from turnkeeper.interop.lines import Account, items_of, read_lines
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, Unreadable, derived_session_id, parse_file
from turnkeeper.model.session import Origin
from turnkeeper.workspace import paths

PROGRAM: Final = "codex"
_THREAD = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WRAPPED: Final = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state", "ghost_snapshot"}
)
_REPEATING: Final = {"user_message": "user", "agent_message": "assistant", "agent_reasoning": "reasoning"}
"""Events that repeat a response item, and the kind of that item."""


def places(environ: Mapping[str, str]) -> list[Path]:
    """The directories of Codex's history."""
    given = environ.get("CODEX_HOME")
    root = Path(given).expanduser() if given else paths.home(environ) / ".codex"
    return [root / "sessions", root / "archived_sessions"]


def is_history(file: Path) -> bool:
    """Whether a file may hold a session."""
    return file.name.startswith("rollout-") and file.name.endswith((".jsonl", ".json", ".jsonl.zst"))


def read(file: Path, account: Account) -> list[RawSession]:
    """The session of a file, and its branches. Raises OSError and Unreadable."""
    if file.suffix == ".zst":
        raise Unreadable("is compressed; decompress it with `zstd -d` and import the result")
    lines = list(_whole(file, account) if file.suffix == ".json" else read_lines(file, account))
    return _File(file, [(number, *_item(body), body) for number, body in lines], account).sessions()


def _whole(file: Path, account: Account) -> Iterable[tuple[int, RawObject]]:
    """The items of the oldest layout, one JSON object, as lines."""
    found = shapes.as_object(parse_file(file))
    if not isinstance(found.get("items"), list):
        raise Unreadable('is no history of Codex: expected {"session": {...}, "items": [...]}')
    return items_of([found.get("session"), *found["items"]], account)


def _item(body: RawObject) -> tuple[str, RawObject]:
    """The kind and the payload of a line of any layout."""
    kind, payload = body.get("type"), body.get("payload")
    if isinstance(kind, str) and isinstance(payload, dict):
        return kind, payload
    if isinstance(kind, str) and kind not in _WRAPPED and "payload" not in body:
        return "response_item", body
    if kind is None and isinstance(body.get("id"), str) and "timestamp" in body:
        return "session_meta", body
    return "unknown", body


class _File:
    def __init__(self, file: Path, lines: list[tuple[int, str, RawObject, RawObject]], account: Account) -> None:
        self._file, self._lines, self._account = file, lines, account
        metas = [payload for _, kind, payload, _ in lines if kind == "session_meta"]
        threads = _THREAD.findall(file.name)
        named = word(metas[0].get("id")) if metas else ""
        self._draft = Draft(PROGRAM, named or (threads[0] if threads else file.name.removesuffix(".jsonl")))
        self._items = Items(self._draft)
        self._known = Counter(one for _, kind, payload, _ in lines if kind == "response_item" for one in _said(payload))
        self._spent: object = None
        self._is_begun = self._is_end = False

    def sessions(self) -> list[RawSession]:
        readers: Mapping[str, Callable[[RawObject], bool]] = {
            "session_meta": self._meta,
            "turn_context": self._context,
            "response_item": self._items.add,
            "event_msg": self._event,
            "compacted": self._compacted,
        }
        last = max((number for number, kind, _, _ in self._lines if kind == "response_item"), default=None)
        for number, kind, payload, body in self._lines:
            # The item that an event repeats may come after it, and may not be written yet.
            self._is_end = last is not None and number > last
            self._draft.at(body.get("timestamp"))
            self._items.key = str(number)
            reader = readers.get(kind)
            if reader is not None and reader(payload):
                self._account.understood(number)
            else:
                self._draft.keep(str(number), body)
                self._account.foreign(number)
        return self._draft.sessions(str(self._file))

    def _meta(self, payload: RawObject) -> bool:
        if self._is_begun:
            return False  # A copy of the one of the session that this one was forked from.
        self._is_begun = True
        draft = self._draft
        draft.at(payload.get("timestamp"))
        draft.directory = word(payload.get("cwd"))
        self._items.provider = word(payload.get("model_provider")) or self._items.provider
        git = shapes.as_object(payload.get("git"))
        facts = {"version": payload.get("cli_version"), "gitBranch": git.get("branch")}
        draft.facts |= {name: fact for name, fact in facts.items() if isinstance(fact, str)}
        if isinstance(forked := payload.get("forked_from_id"), str) and forked:
            draft.origin = Origin(session_id=derived_session_id(PROGRAM, forked))
        source = shapes.as_object(shapes.as_object(payload.get("source")).get("subagent"))
        spawn = shapes.as_object(source.get("thread_spawn"))
        parent = payload.get("parent_thread_id", spawn.get("parent_thread_id"))
        if isinstance(parent, str) and _THREAD.fullmatch(parent) and self._has(parent):
            draft.parent = derived_session_id(PROGRAM, parent)
        draft.keep("meta", payload)
        return True

    def _has(self, thread: str) -> bool:
        """Whether the history of another thread is here, in the folder of this day or of another."""
        above = self._file.parents
        days = len(above) > 3 and all(one.name.isdecimal() for one in above[:3])
        place, pattern = (above[3], "*/*/*/rollout-*") if days else (above[0], "rollout-*")
        return any(place.glob(f"{pattern}{thread}*"))

    def _context(self, payload: RawObject) -> bool:
        self._items.model = word(payload.get("model")) or self._items.model
        self._draft.directory = self._draft.directory or word(payload.get("cwd"))
        self._draft.keep(self._items.key, payload)
        return True

    def _event(self, payload: RawObject) -> bool:
        kind = payload.get("type")
        match kind:
            case "user_message" | "agent_message" | "agent_reasoning":
                return self._repeated(_REPEATING[kind], payload.get("message", payload.get("text")))
            case "token_count":
                return self._count(shapes.as_object(payload.get("info")))
            case "turn_aborted":
                turn = self._last_turn()
                if turn is None or turn is not self._draft.messages[-1]:
                    return False
                reason = word(payload.get("reason")) or "interrupted"
                turn.info["error"] = {"name": "MessageAbortedError", "data": {"message": reason}}
                self._items.close()
                return True
            case "thread_rolled_back":
                return self._rolled_back(count(payload.get("num_turns")))
            case _:
                return False

    def _last_turn(self) -> RawMessage | None:
        return next((one for one in reversed(self._draft.messages) if one.info["role"] == "assistant"), None)

    def _repeated(self, kind: str, text: object) -> bool:
        """Add the text of an event, unless a response item has it."""
        if not isinstance(text, str):
            return False
        if self._known[kind, text.strip()] > 0:
            self._known[kind, text.strip()] -= 1
        elif self._is_end:
            return False
        elif text.strip():
            self._items.say(kind, text)
        return True

    def _count(self, info: RawObject) -> bool:
        spent, total = shapes.as_object(info.get("last_token_usage")), info.get("total_token_usage")
        turn = self._last_turn()
        if not spent or turn is None:
            return False
        if total is not None and total == self._spent:
            return True  # The same counts again, with other limits of the account.
        self._spent = total
        cached, thought = count(spent.get("cached_input_tokens")), count(spent.get("reasoning_output_tokens"))
        found = usage(
            max(0, count(spent.get("input_tokens")) - cached),
            max(0, count(spent.get("output_tokens")) - thought),
            thought,
            cached,
        )
        before = turn.info["tokens"]
        cache = {"read": before["cache"]["read"] + cached, "write": 0}
        kinds = ("input", "output", "reasoning")
        turn.info["tokens"] = {**{kind: before[kind] + found[kind] for kind in kinds}, "cache": cache}
        return True

    def _rolled_back(self, turns: int) -> bool:
        prompts = [nth for nth, one in enumerate(self._draft.messages) if self._items.is_prompt(one)]
        if not 0 < turns <= len(prompts):
            return False
        self._items.close()
        self._draft.rewind(prompts[-turns])
        return True

    def _compacted(self, payload: RawObject) -> bool:
        history = objects(payload.get("replacement_history"))
        text = word(payload.get("message")).strip() or "\n\n".join(one for item in history for one in texts_of(item))
        if not text:
            return False
        self._items.close()
        items = self._items
        self._draft.summary(f"compacted {items.key}", text, items.provider, items.model, {"compacted": payload})
        return True


def _said(payload: RawObject) -> list[tuple[str, str]]:
    """The kinds and texts of a response item that an event may repeat."""
    match payload.get("type"):
        case "message":
            texts = texts_of(payload)
            whole = ["\n".join(texts)] if len(texts) > 1 else []
            return [(word(payload.get("role")), text.strip()) for text in (*texts, *whole)]
        case "reasoning":
            return [("reasoning", text.strip()) for text in texts_of(payload)]
        case _:
            return []
