"""Scripts of sed: whether one only changes text, or also runs commands and opens files by itself."""

import re
from typing import Final

_ADDRESS: Final = re.compile(r"[\d$+~]+")
_TEXT: Final = re.compile(r"(?:[^\n\\]|\\[\s\S])*")
_COMMENT: Final = re.compile(r"[^\n]*")
_LABEL: Final = re.compile(r"[ \t]*[^\s;}]*")
_BRACKETS: Final = re.compile(r"\[\^?\]?[^\]\n]*\]")
_CASE: Final = re.compile(r"[IM]*")
_NUMBER: Final = re.compile(r"[ \t]*\d*")
_FLAGS: Final = re.compile(r"[gpiImM0-9]*")
_PLAIN: Final = frozenset("{}dDgGhHnNpPxz=F")
_HARMLESS_FILES: Final = ("/dev/stdout", "/dev/stderr")


def only_edits(script: str) -> bool:
    """Whether a script neither runs commands (``e``, ``s///e``) nor opens files (``r``, ``w``, ``s///w``).

    False also for a script that is not understood.
    """
    place = 0
    while place < len(script):
        begin = _after_addresses(script, place)
        found = _after_command(script, begin) if begin is not None else None
        if found is None:
            return False
        place = found
    return True


def _after_addresses(script: str, place: int) -> int | None:
    """The index of the command after blanks and addresses; None if an address does not end."""
    while place < len(script):
        if script[place] in " \t\n;,!":
            place += 1
        elif number := _ADDRESS.match(script, place):
            place = number.end()
        elif script[place] in "/\\":
            begin = place + (script[place] == "\\")
            end = _end_of_part(script, begin)
            if end is None:
                return None
            place = _past(script, end, _CASE)
        else:
            break
    return place


def _after_command(script: str, place: int) -> int | None:
    """The index after a harmless command; None for any other command."""
    if place == len(script):
        return place
    command, place = script[place], place + 1
    if command in _PLAIN:
        return place
    for commands, rest in (("aic", _TEXT), ("#", _COMMENT), (":btT", _LABEL), ("qQlL", _NUMBER)):
        if command in commands:
            return _past(script, place, rest)
    if command in "sy":
        first = _end_of_part(script, place)
        second = _end_of_part(script, first - 1) if first is not None else None
        if second is None:
            return None
        place = _past(script, second, _FLAGS) if command == "s" else second
        return place if not re.match(r"[ew]", script[place:]) else _written(script, place)
    return _written(script, place - 1)


def _written(script: str, place: int) -> int | None:
    """The index after ``w`` if its file is standard output or standard error; else None."""
    name = re.match(r"w[ \t]*([^\n]*)", script[place:])
    return place + name.end() if name is not None and name[1] in _HARMLESS_FILES else None


def _end_of_part(script: str, place: int) -> int | None:
    """The index after a part that begins and ends with the character at ``place``; None if the part does not end."""
    if place >= len(script):
        return None
    limit, place = script[place], place + 1
    while place < len(script) and script[place] not in (limit, "\n"):
        brackets = _BRACKETS.match(script, place)
        if brackets is not None and limit in brackets[0]:
            return None  # Some versions end the part there and some do not.
        place = brackets.end() if brackets is not None else place + (2 if script[place] == "\\" else 1)
    return place + 1 if place < len(script) and script[place] == limit else None


def _past(script: str, place: int, pattern: re.Pattern[str]) -> int:
    found = pattern.match(script, place)
    return found.end() if found is not None else place
