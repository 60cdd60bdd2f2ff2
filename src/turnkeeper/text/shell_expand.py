"""Expansion of the words of a shell command: braces, tildes, and variables whose values are known."""

import re
from collections.abc import Mapping
from itertools import product
from math import prod
from typing import Final, NamedTuple

from turnkeeper.text.shell_braces import EXPANSIONS_MAX, braced
from turnkeeper.text.shell_script import Script, SimpleCommand
from turnkeeper.text.shell_syntax import DEPTH_MAX, LENGTH_MAX
from turnkeeper.text.shell_words import Piece, Word

LOOKUPS_MAX: Final = 10_000
"""Values of variables that are looked up for one text, each of which may name others. After them none is known."""

_SPECIAL: Final = {"{": "\ue000", ",": "\ue001", "}": "\ue002", "*": "\ue003", "?": "\ue004", "[": "\ue005"}
"""Replacements for characters without a special meaning, because they were quoted."""
_TO_SPECIAL: Final = str.maketrans(_SPECIAL)
_FROM_SPECIAL: Final = str.maketrans({stand_in: character for character, stand_in in _SPECIAL.items()})
_HARMLESS: Final = re.compile(
    r"\$[$?#!]|\$\(\([\s\w+*/%-]*\)\)|\$\((?:date|whoami|hostname|uname|nproc|arch)(?: [^/.$`;|&<>()\\]*)?\)"
)
_CUT: Final = re.compile(
    r"\$\{(?P<name>[A-Za-z_]\w*)(?:(?P<operator>%%?|##?)(?P<pattern>\.\*|\*/|[^}$`*?\[\]\\'\"{]+))\}"
)
_HERE: Final = re.compile(r"\$\((?:pwd(?: -[LP])?|git rev-parse --show-toplevel)\)")
_TEMPORARY: Final = re.compile(r"\$\(mktemp(?: -[dqu]+)*\)")
_KEPT_BY_BASH: Final = re.compile(r"BASH\w*|OLDPWD|DIRSTACK|OPTARG|REPLY|MAPFILE|COPROC|PIPESTATUS|FUNCNAME|IFS|_|PS\d")
_NUMBER_NAMES: Final = "RANDOM SECONDS LINENO UID EUID PPID SRANDOM EPOCHSECONDS OPTIND SHLVL COLUMNS LINES"
_NUMBERS: Final = frozenset(_NUMBER_NAMES.split())


class Expanded(NamedTuple):
    """One value of a word: ``text`` up to its first wildcard, and ``glob`` with its wildcards if it has any."""

    text: str
    glob: str | None


class Values:
    """The variables that a script may use: those of the environment and those that it sets itself."""

    def __init__(self, script: Script, environ: Mapping[str, str]) -> None:
        self._script, self._environ = script, environ
        self._under_way: set[str] = set()
        self._lookups = 0
        self._assigned: frozenset[str] = frozenset()

    def at(self, simple: SimpleCommand) -> "Values":
        """These variables with the values that they have where a command runs."""
        self._assigned = simple.assigned
        return self

    def texts(self, word: Word) -> list[str] | None:
        """Every text that a word may become, wildcards as they stand; None if that is not known."""
        raw = self._raw(word)
        return None if raw is None else [_plain(text) for text in raw]

    def expanded(self, word: Word) -> list[Expanded] | None:
        """Every path that a word may become; None if that is not known."""
        raw = self._raw(word)
        return None if raw is None else [_expanded(text, word) for text in raw]

    def _raw(self, word: Word) -> list[str] | None:
        """Every value of a word, with replacements for quoted characters."""
        if re.match(r"~[-+]", word.source):
            return None
        choices = [self._choices(piece) for piece in word.pieces]
        known = [choice for choice in choices if choice is not None]
        if len(known) < len(choices) or prod(map(len, known)) > EXPANSIONS_MAX:
            return None
        if sum(max(map(len, choice), default=0) for choice in known) > LENGTH_MAX:
            return None
        joined = ["".join(pieces) for pieces in product(*known)]
        if any(text.count("{") > EXPANSIONS_MAX for text in joined):
            return None
        found = [expanded for text in joined for expanded in braced(text)]
        return found if len(found) <= EXPANSIONS_MAX else None

    def _choices(self, piece: Piece) -> list[str] | None:
        match piece.kind:
            case "bare":
                return [piece.text]
            case "quoted":
                return [piece.text.translate(_TO_SPECIAL)]
            case "computed":
                return self._computed(piece.text)
            case "variable" | "split":
                values = self._variable(piece.text)
                if piece.kind == "split" and any(re.search(r"\s", value) for value in values or ()):
                    return None
                return values

    def _variable(self, name: str) -> list[str] | None:
        """Every value that a variable may have; None if they are not known."""
        variables = self._script.variables
        if "*" in variables or name in self._under_way or _KEPT_BY_BASH.fullmatch(name):
            return None
        if name in _NUMBERS:
            return ["0"]
        found = []
        if name not in self._assigned:
            # A variable that is set nowhere may still be set by a file that the shell reads first.
            if name != "PWD" and name not in self._environ:
                return None
            found.append("." if name == "PWD" else self._environ[name].translate(_TO_SPECIAL))
        words = variables.get(name, ())
        self._lookups += 1 + len(words)
        if self._lookups > LOOKUPS_MAX or len(self._under_way) > DEPTH_MAX:
            return None
        self._under_way.add(name)
        try:
            for word in words:
                values = self._raw(word)
                if values is None:
                    return None
                found += values
        finally:
            self._under_way.discard(name)
        return list(dict.fromkeys(found))

    def _computed(self, text: str) -> list[str] | None:
        """Every value of a substitution that gives a harmless name or a known directory; None for any other."""
        if self._script.functions:
            return None
        if _HARMLESS.fullmatch(text):
            return ["0"]
        if cut := _CUT.fullmatch(text):
            values = self._variable(cut["name"])
            shorter = [_without(value, cut["operator"], cut["pattern"]) for value in values or ()]
            known = [value for value in shorter if value is not None]
            return known if values is not None and len(known) == len(values) else None
        if _HERE.fullmatch(text):
            return ["."]
        return [f"{self._environ.get('TMPDIR', '/tmp')}/tmp.0"] if _TEMPORARY.fullmatch(text) else None


def _expanded(text: str, word: Word) -> Expanded:
    """A value as an Expanded. A quoted ``~`` is a file of that name."""
    if text.startswith("~") and not (word.source.startswith("~") or word.pieces[0].kind in ("variable", "split")):
        text = f"./{text}"
    found = re.search(r"[*?\[]", text)
    if found is None:
        return Expanded(_plain(text), None)
    escaped = re.sub(r"[\ue003-\ue005]", lambda one: f"[{one[0].translate(_FROM_SPECIAL)}]", text)
    return Expanded(_plain(text[: found.start()]), _plain(escaped))


def _without(value: str, operator: str, pattern: str) -> str | None:
    """A value without its suffix, its prefix, or the directories before its name; None if that is not known."""
    if pattern == "*/":
        return value.rsplit("/", 1)[-1] if operator == "##" else None
    if pattern == ".*":
        return re.sub(r"\.[^./]*$", "", value) if operator == "%" else None
    if "#" in operator:
        return None if re.search(r"[*?\[]", value) else value.removeprefix(pattern)
    return value.removesuffix(pattern)


def _plain(text: str) -> str:
    return text.translate(_FROM_SPECIAL)
