"""Completions of a typed text: slash commands, their arguments, and mentions after ``@``. Pure functions."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

Kind: TypeAlias = Literal["models", "agents", "sessions"]
"""The kind of name that the argument of a slash command takes."""
CANDIDATES_MAX: Final = 50

# As in core.mentions: not inside a word, and not in code.
_MENTION: Final = re.compile(r"(?<![\w`])@(?:\"(?P<quoted>[^\"`\n]*)|(?P<plain>[^\s`,]*))\Z")
_UNMENTIONABLE: Final = re.compile(r"[\"`\n]")
_QUOTED: Final = re.compile(r"[\s,]")


@dataclass(frozen=True)
class Candidate:
    """A completion: it replaces the text between ``start``, relative to the cursor, and the cursor."""

    text: str
    start: int
    about: str = ""


@dataclass(frozen=True)
class Known:
    """The names for completions. A mapping has a description for each name."""

    commands: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Kind] = field(default_factory=dict)
    """The kind of argument of slash commands, by the name of the command."""
    models: Mapping[str, str] = field(default_factory=dict)
    agents: Mapping[str, str] = field(default_factory=dict)
    sessions: Mapping[str, str] = field(default_factory=dict)
    mentionable: Mapping[str, str] = field(default_factory=dict)
    """The agents that a prompt can mention."""


def is_mention(before: str) -> bool:
    """Whether the cursor is in a name after ``@``, which files can complete."""
    return _MENTION.search(before) is not None


def file_of_symbol(before: str) -> str | None:
    """The file whose symbols can complete a mention, if the cursor is behind its ``#``."""
    found = _MENTION.search(before)
    file, mark, _ = _typed(found).rpartition("#") if found is not None else ("", "", "")
    return file if mark and file else None


def candidates(before: str, known: Known, files: Iterable[str] = (), symbols: Iterable[str] = ()) -> list[Candidate]:
    """The completions of the text before the cursor, best first, up to a maximum number."""
    found = _MENTION.search(before)
    if before.startswith("/") and not (found and " " in before):
        return _slash(before, known)[:CANDIDATES_MAX]
    if found is None:
        return []
    typed, start = _typed(found), -len(found[0])
    file, mark, symbol = typed.rpartition("#")
    if mark and file and (meant := _matching(symbol, symbols, lambda name: name.rpartition(".")[2])):
        return [Candidate(f"@{file}#{one}", start) for one in meant][:CANDIDATES_MAX]
    agents = _matching(typed, known.mentionable, lambda name: name)
    paths = _matching(typed, with_directories(files), _last_name)
    named = [Candidate(f"@{one}", start, known.mentionable[one]) for one in agents]
    return [*named, *(Candidate(_mention(one), start) for one in paths)][:CANDIDATES_MAX]


def _typed(found: re.Match[str]) -> str:
    return found["plain"] if found["quoted"] is None else found["quoted"]


def _mention(path: str) -> str:
    return f'@"{path}"' if _QUOTED.search(path) else f"@{path}"


def with_directories(files: Iterable[str]) -> dict[str, str]:
    """Paths that can be mentioned, and their directories with a slash at the end, in order."""
    found: dict[str, str] = {}
    for file in files:
        if _UNMENTIONABLE.search(file):
            continue
        parts = file.split("/")
        for depth in range(1, len(parts)):
            found.setdefault("/".join(parts[:depth]) + "/", "")
        found[file] = ""
    return found


def _slash(before: str, known: Known) -> list[Candidate]:
    name, gap, argument = before[1:].partition(" ")
    if not gap:
        names = _matching(name, known.commands, lambda one: one)
        return [Candidate(f"/{one}", -len(before), known.commands[one]) for one in names]
    values: Mapping[str, str] = {}
    match known.arguments.get(name):
        case "models":
            values = known.models
        case "agents":
            values = known.agents
        case "sessions":
            values = known.sessions
    typed = argument.lstrip()
    return [Candidate(one, -len(typed), values[one]) for one in _matching(typed, values, lambda one: one)]


def _matching(typed: str, names: Iterable[str], last: Callable[[str], str]) -> list[str]:
    """The names that match a text: by their beginning, then that of their last part, then anywhere; no equal name."""
    wanted = typed.lower()
    ranked: list[tuple[int, str]] = []
    for name in names:
        lower = name.lower()
        if lower == wanted:
            continue
        if lower.startswith(wanted):
            ranked.append((0, name))
        elif last(lower).startswith(wanted):
            ranked.append((1, name))
        elif wanted in lower:
            ranked.append((2, name))
    return [name for _, name in sorted(ranked, key=lambda one: one[0])]


def _last_name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]
