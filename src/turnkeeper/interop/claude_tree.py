"""The tree that the lines of a Claude Code session form by ``uuid`` and ``parentUuid``. Cycles and gaps are mended."""

from dataclasses import dataclass

from turnkeeper.core.limits import BRANCH_MESSAGES_MAX
from turnkeeper.interop.lines import Account
from turnkeeper.interop.raw import RawObject

_SPOKEN = ("user", "assistant")


@dataclass
class Entry:
    """A line. ``uuid`` is empty for a line that has no place in the tree."""

    number: int
    body: RawObject
    uuid: str = ""
    is_first: bool = True
    """Whether no earlier line has its uuid."""


class Tree:
    """The lines of a file in order, and their parents."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self.lines: list[Entry] = []
        self.is_sidechain_file = False
        self._entries: dict[str, Entry] = {}
        self._parents: dict[str, str | None] = {}
        self._last: dict[bool, str] = {}
        self._also: dict[str, str] = {}
        self._chains: dict[str, str] = {}

    def add(self, number: int, body: RawObject) -> None:
        """Add the next line."""
        uuid = body.get("uuid")
        if not isinstance(uuid, str) or not uuid:
            self.lines.append(Entry(number, body))
            return
        if uuid in self._entries:
            if self._entries[uuid].body == body:
                self._account.understood(number)
                return
            self._account.report(number, "repeats a uuid with another content; it is kept as it is", is_expected=True)
            self.lines.append(Entry(number, body, uuid, is_first=False))
            return
        entry = Entry(number, body, uuid)
        self.lines.append(entry)
        self._parents[uuid] = self._parent(entry)  # Before it is known itself: no entry is its own parent.
        self._entries[uuid] = entry
        self._last[body.get("isSidechain") is True] = uuid

    def also(self, uuid: str, other: str) -> None:
        """A second message belongs to the place of an entry."""
        self._also[uuid] = other

    def sidechain(self, entry: Entry) -> str | None:
        """The name of the sidechain of an entry; None if it is of the session itself."""
        if entry.body.get("isSidechain") is not True or self.is_sidechain_file:
            return None
        agent = entry.body.get("agentId")
        if isinstance(agent, str) and agent:
            return agent
        if not entry.uuid:
            return None
        parent = self._parents.get(entry.uuid)
        self._chains[entry.uuid] = self._chains.get(parent, entry.uuid) if parent is not None else entry.uuid
        return self._chains[entry.uuid]

    def histories(self) -> tuple[set[str], list[set[str]]]:
        """The uuids of the line to the newest entry, and those of each other line."""
        leaves = [entry.uuid for entry in self.lines if entry.uuid and entry.is_first and self._is_main(entry)]
        spoken = [uuid for uuid in leaves if self._entries[uuid].body.get("type") in _SPOKEN]
        covered: set[str] = set()
        found: list[set[str]] = []
        for uuid in reversed(spoken):
            if uuid not in covered:
                whole = sum(map(len, found)) < BRANCH_MESSAGES_MAX or not found
                line = set(self._above(uuid, set() if whole else covered))
                if not whole:
                    number = self._entries[uuid].number
                    self._account.report(number, "is on a branch that begins without its head", is_expected=True)
                covered |= line
                found.append(line | {self._also[one] for one in line if one in self._also})
        return (found[0], found[1:]) if found else (set(), [])

    def _parent(self, entry: Entry) -> str | None:
        body = entry.body
        given = body.get("parentUuid")
        if given is None and body.get("logicalParentUuid") is not None:
            given = body["logicalParentUuid"]
        if given is None and body.get("subtype") != "compact_boundary":
            return None
        if isinstance(given, str) and given in self._entries:
            return given
        # The parent comes later, was lost or never named: the entry follows the one before it.
        if given is not None:
            reason = "has a parent that is not before it; it follows the entry before it"
            self._account.report(entry.number, reason, is_expected=True)
        return self._last.get(body.get("isSidechain") is True)

    def _above(self, uuid: str, until: set[str]) -> list[str]:
        """An entry and its ancestors, up to those of a set."""
        found, here = [uuid], self._parents[uuid]
        while here is not None and here not in until:  # Parents are earlier lines, so this ends.
            found.append(here)
            here = self._parents[here]
        return found

    def _is_main(self, entry: Entry) -> bool:
        return self.is_sidechain_file or entry.body.get("isSidechain") is not True
