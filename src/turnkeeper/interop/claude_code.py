"""Claude Code: ``projects/<directory>/<session>.jsonl``, one line for each entry of a tree of messages.

The line that leads to the newest entry is the session; other lines are branches of it, and sessions of their own.
Sidechains, in the file or in ``<session>/subagents``, are Child Sessions.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turnkeeper.core.limits import OUTPUT_KEPT_MAX
from turnkeeper.interop import shapes
from turnkeeper.interop.claude_blocks import (
    HEAD,
    PROGRAM,
    blocks_of,
    count_usage,
    file_of,
    foreign_blocks,
    other_fields,
    text_of,
)
from turnkeeper.interop.claude_tree import Entry, Tree
from turnkeeper.interop.draft import Draft
from turnkeeper.interop.fields import objects, rest, rest_as, word
from turnkeeper.interop.lines import Account, read_lines
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, derived_session_id
from turnkeeper.workspace import paths

PROVIDER: Final = "anthropic"
SYNTHETIC: Final = "<synthetic>"
"""The model of turns that the program wrote itself, as for an error."""
TITLES: Final = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}
"""Types of lines with a title, the strongest last, and their fields."""
_SPILLED = re.compile(r"tool-results/([A-Za-z0-9_][A-Za-z0-9_.-]*)")


def places(environ: Mapping[str, str]) -> list[Path]:
    """The directories of Claude Code's history."""
    given = [Path(one).expanduser() for one in environ.get("CLAUDE_CONFIG_DIR", "").split(",") if one.strip()]
    roots = given or [paths.home(environ) / ".claude", paths.config(environ, "claude")]
    return [root / "projects" for root in roots]


def is_history(file: Path) -> bool:
    """Whether a file may hold a session."""
    return file.suffix == ".jsonl" and file.name not in ("history.jsonl", "journal.jsonl")


def read(file: Path, account: Account) -> list[RawSession]:
    """The sessions of a file. Raises OSError and Unreadable."""
    tree = Tree(account)
    for number, body in read_lines(file, account):
        tree.add(number, body)
    return _File(file, tree, account).sessions()


class _File:
    def __init__(self, file: Path, tree: Tree, account: Account) -> None:
        self._file, self._tree, self._account = file, tree, account
        self._drafts: dict[str, Draft] = {}
        self._turns: dict[tuple[str, str, str], RawMessage] = {}
        self._made: dict[str, RawMessage] = {}
        self._boundary: Entry | None = None
        self._titles: dict[str, str] = {}
        self._models: dict[str, str] = {}
        self._main = self._main_draft()

    def sessions(self) -> list[RawSession]:
        for entry in self._tree.lines:
            draft = self._draft(entry)
            draft.at(entry.body.get("timestamp"))
            draft.directory = draft.directory or word(entry.body.get("cwd"))
            for name in ("version", "gitBranch"):
                if isinstance(entry.body.get(name), str):
                    draft.facts.setdefault(name, entry.body[name])
            self._entry(entry, draft)
        spoken = [draft for draft in (self._main, *self._drafts.values()) if draft.messages]
        for draft in (self._main, *self._drafts.values()):
            if spoken and not draft.messages:
                spoken[0].inherit(draft)
        main, others = self._tree.histories()
        emitted = self._main.messages
        self._main.messages = self._along(emitted, main)
        self._main.branches = [self._along(emitted, other) for other in others]
        self._main.title = next((self._titles[kind] for kind in reversed(TITLES) if self._titles.get(kind)), "")
        found = self._main.sessions(str(self._file))
        for draft in self._drafts.values():
            draft.directory = draft.directory or self._main.directory
            draft.parent = self._main.id if found else ""
            found += draft.sessions(str(self._file))
        return found

    def _along(self, emitted: list[RawMessage], line: set[str]) -> list[RawMessage]:
        chosen = {id(self._made[uuid]) for uuid in line if uuid in self._made}
        return [message for message in emitted if id(message) in chosen]

    def _main_draft(self) -> Draft:
        """The draft of the file: of a session, or of a sidechain in a file of its own."""
        stem = self._file.stem
        if not stem.startswith("agent-"):
            return Draft(PROGRAM, stem)
        above = self._file.parents
        folder = next((above[nth + 1] for nth, one in enumerate(above[:-1]) if one.name == "subagents"), None)
        named = (word(entry.body.get("sessionId")) for entry in self._tree.lines)
        parent = folder.name if folder is not None else next((name for name in named if name), "")
        if not parent:
            return Draft(PROGRAM, stem)
        draft = Draft(PROGRAM, f"{parent}/{stem.removeprefix('agent-')}")
        beside = folder.parent if folder is not None else self._file.parent
        if (beside / f"{parent}.jsonl").is_file():
            draft.parent = derived_session_id(PROGRAM, parent)
        self._tree.is_sidechain_file = True
        return draft

    def _draft(self, entry: Entry) -> Draft:
        chain = self._tree.sidechain(entry)
        if chain is None:
            return self._main
        if chain not in self._drafts:
            self._drafts[chain] = Draft(PROGRAM, f"{self._main.key}/{chain}")
        return self._drafts[chain]

    def _entry(self, entry: Entry, draft: Draft) -> None:
        body, message = entry.body, shapes.as_object(entry.body.get("message"))
        kind = body.get("type")
        if not entry.is_first:
            self._keep(entry, draft)
        elif kind == "user" and body.get("isCompactSummary") is True and message:
            self._summary(entry, message, draft)
        elif kind == "user" and message:
            self._user(entry, message, draft)
        elif kind == "assistant" and message:
            self._assistant(entry, message, draft)
        elif isinstance(kind, str) and kind in TITLES and isinstance(body.get(TITLES[kind]), str):
            self._titles[kind] = body[TITLES[kind]]
            draft.keep(str(entry.number), body)
            self._account.understood(entry.number)
        else:
            self._keep(entry, draft)
            if kind == "system" and body.get("subtype") == "compact_boundary":
                self._boundary = entry

    def _keep(self, entry: Entry, draft: Draft) -> None:
        draft.keep(entry.uuid or str(entry.number), entry.body)
        self._account.foreign(entry.number)

    def _summary(self, entry: Entry, message: RawObject, draft: Draft) -> None:
        boundary = self._boundary.body if self._boundary is not None else {}
        about = shapes.as_object(boundary.get("compactMetadata"))
        text = "\n".join(text_of(block) for block in blocks_of(message))
        kept = {**rest(entry.body, *HEAD), **foreign_blocks(message)}
        is_auto = about.get("trigger") == "auto"
        made = draft.summary(entry.uuid, text, PROVIDER, None, kept, is_auto=is_auto)
        turn = draft.messages[-1]
        turn.info["modelID"] = self._models.get(draft.id, "unknown")
        self._made[entry.uuid] = made
        self._made[f"{entry.uuid}/summary"] = turn
        self._tree.also(entry.uuid, f"{entry.uuid}/summary")
        self._account.understood(entry.number)
        if self._boundary is not None:
            self._account.understood(self._boundary.number)
            self._boundary = None

    def _user(self, entry: Entry, message: RawObject, draft: Draft) -> None:
        self._account.understood(entry.number)
        said: list[tuple[int, RawObject]] = []
        for nth, block in enumerate(blocks_of(message)):
            if block.get("type") != "tool_result" or not self._result(block, entry, draft):
                said.append((nth, block))
        if not said:
            if not objects(message.get("content")):
                draft.keep(entry.uuid, entry.body)
            return
        own = {**rest(entry.body, *HEAD), **rest(message, "role", "content")}
        made = draft.user(entry.uuid, own)
        self._made[entry.uuid] = made
        for nth, block in said:
            key = f"{entry.uuid}/{nth}"
            if block.get("type") == "text" and isinstance(block.get("text"), str):
                synthetic = {"synthetic": True} if entry.body.get("isMeta") is True else {}
                draft.text(made, key, block["text"], {**synthetic, **rest_as("block", block, "type", "text")})
            elif (file := file_of(block)) is not None:
                draft.part(made, key, file)
            else:
                draft.part(made, key, {"type": f"{PROGRAM}-block", "block": block})

    def _result(self, block: RawObject, entry: Entry, draft: Draft) -> bool:
        content = block.get("content")
        blocks = blocks_of({"content": content})
        output = "\n".join(text_of(one) for one in blocks if file_of(one) is None)
        files = [file for one in blocks if (file := file_of(one)) is not None]
        details = entry.body.get("toolUseResult")
        agent = shapes.as_object(details).get("agentId")
        child = derived_session_id(PROGRAM, f"{draft.key}/{agent}") if isinstance(agent, str) else None
        metadata = {
            "toolUseResult": details if details != content else None,
            "sessionId": child,
            "entry": other_fields(entry.body),
            "block": rest(block, "type", "tool_use_id", "content", "is_error") or None,
        }
        is_error, full = block.get("is_error") is True, self._spilled(output)
        return draft.settle(block.get("tool_use_id"), output, files, metadata, is_error=is_error, full=full)

    def _spilled(self, output: str) -> str | None:
        """The whole output of a call whose result only names a file that has it."""
        if (found := _SPILLED.search(output)) is None:
            return None
        file = self._file.with_suffix("") / "tool-results" / found[1]
        try:
            if file.is_symlink() or not file.is_file() or file.stat().st_size > OUTPUT_KEPT_MAX:
                return None
            return file.read_text("utf-8", "replace")
        except OSError:
            return None

    def _assistant(self, entry: Entry, message: RawObject, draft: Draft) -> None:
        self._account.understood(entry.number)
        name = (draft.id, word(message.get("id")) or entry.uuid, word(entry.body.get("requestId")))
        turn = self._turns.get(name)
        if turn is None:
            own = {"requestId": entry.body.get("requestId"), **rest(message, "role", "content", "model", "usage")}
            model = word(message.get("model"))
            if model == SYNTHETIC:
                own |= {"model": model, "usage": message.get("usage")}
            elif model:
                self._models[draft.id] = model
            else:
                own["model"] = message.get("model")
            turn = draft.turn(name[1] + name[2], PROVIDER, self._models.get(draft.id), own)
            self._turns[name] = turn
        self._made[entry.uuid] = turn
        spent = shapes.as_object(message.get("usage"))
        if spent and message.get("model") != SYNTHETIC:  # No provider wrote it, so nothing was billed.
            count_usage(turn, spent)
        if shapes.is_number(entry.body.get("costUSD")):
            turn.info["cost"] = max(turn.info.get("cost", 0), entry.body["costUSD"])
        if entry.body.get("isApiErrorMessage") is True:
            said = " ".join(text_of(block) for block in blocks_of(message))
            turn.info["error"] = {"name": "UnknownError", "data": {"message": said}}
        other = other_fields(entry.body)
        for nth, block in enumerate(blocks_of(message)):
            self._block(turn, f"{entry.uuid}/{nth}", block, draft, {PROGRAM: other} if other and not nth else {})

    def _block(self, turn: RawMessage, key: str, block: RawObject, draft: Draft, other: RawObject) -> None:
        match block.get("type"):
            case "text" if isinstance(block.get("text"), str):
                draft.text(turn, key, block["text"], {**rest_as("block", block, "type", "text"), **other})
            case "thinking" if isinstance(block.get("thinking"), str):
                draft.reasoning(turn, key, block["thinking"], {**rest(block, "type", "thinking"), **other})
            case "redacted_thinking":
                draft.reasoning(turn, key, "", {**rest(block, "type"), **other})
            case "tool_use":
                own = {**rest_as("block", block, "type", "id", "name", "input"), **other}
                draft.call(turn, block.get("id"), block.get("name"), block.get("input"), own)
            case _:
                draft.part(turn, key, {"type": f"{PROGRAM}-block", "block": block, **other})
