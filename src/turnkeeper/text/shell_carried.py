"""Commands that run other commands: the inner commands, parsed from the words of the outer one.

``sudo rm x`` runs ``rm x``; ``sh -c 'rm x'`` and ``git -c alias.y='!rm x' y`` run a text. A text that is
computed when the command runs is given as it is written, so that a question can show it.
"""

import re
from collections.abc import Callable, Collection, Sequence
from itertools import dropwhile, pairwise
from typing import Final, NamedTuple

from turnkeeper.text.sed_script import only_edits
from turnkeeper.text.shell_tables import (
    GIT_OPTIONS,
    GIT_RUNS,
    INTERPRETERS,
    NAMING_VARIABLES,
    OPTIONS,
    PREFIXES,
    RUNNERS,
    SHELLS,
)
from turnkeeper.text.shell_words import SOMETHING, Piece, Word, literal_word

_INPUTS: Final = frozenset(["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"])
_SHELL_FLAGS: Final = ("-o", "-O", "+o", "+O", "--rcfile", "--init-file")
"""Flags of shells that take a value."""


class Carried(NamedTuple):
    """The commands that a command runs: commands as words, texts for a shell, and texts known only when it runs."""

    commands: tuple[tuple[Word, ...], ...] = ()
    texts: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    runs_input: bool = False
    """Whether the command runs code from its input."""
    removed: tuple[Word, ...] = ()
    """The equivalent ``rm`` command: ``rm`` and the places in which files are removed."""


def short_option(value: str, letters: Collection[str]) -> tuple[str, int] | None:
    """The first option of a group such as ``-euo`` that takes a value, and the index of its value in the word.

    ``letters`` are those options without their dash. The value is the next word if nothing is left of this one.
    """
    found = (at for at, letter in enumerate(value) if at and letter in letters) if re.match(r"[-+][^-]", value) else ()
    at = next(iter(found), None)
    return None if at is None else (f"{value[0]}{value[at]}", at + 1)


def program(words: Sequence[Word]) -> str:
    """The name of the program, without its directory."""
    return words[0].value.rsplit("/", 1)[-1] if words else ""


def carried(words: tuple[Word, ...]) -> Carried:
    """The commands that a command runs."""
    if not words or words[0].is_dynamic:
        return Carried()
    name, rest = program(words), words[1:]
    found = _SPECIAL[name](rest) if name in _SPECIAL else Carried()
    if name in NAMING_VARIABLES:
        found = _subscripts(rest)
    if name in PREFIXES and not found.texts:
        found = _after_prefix(name, rest)
    if (count := runner_words(words)) and name in RUNNERS:
        found = found._replace(commands=(*found.commands, *_one(words[count:])))
    if re.fullmatch(r"(python|pypy|ruby|perl|lua|php|node)[\d.]*", name) or name in INTERPRETERS:
        found = Carried(runs_input=not any(_is_operand(word) or word.value.startswith("-") for word in rest[:1]))
        found = found._replace(runs_input=found.runs_input or any(word.value == "-" for word in rest))
    options = _option_values(rest, OPTIONS.get(name, "").split())
    texts, computed = _split_known(options)
    return found._replace(texts=(*found.texts, *texts), computed=(*found.computed, *computed))


def runner_words(words: Sequence[Word]) -> int:
    """The number of words before the inner command of a runner, as in ``poetry run pytest``; 0 for other commands."""
    verbs = RUNNERS.get(program(words), {})
    if len(words) < 3 or words[1].value not in verbs:
        return 0
    place, with_value = 2, verbs[words[1].value].split()
    while place < len(words) and words[place].value.startswith("-"):
        if words[place].value == "--":
            return place + 1
        place += 2 if words[place].value in with_value else 1
    return place


def _after_prefix(name: str, rest: tuple[Word, ...]) -> Carried:
    """The command behind the flags, assignments and operands of a command such as ``sudo`` or ``timeout``."""
    flags, operands = PREFIXES[name]
    with_value = flags.split()
    place = 0
    while place < len(rest):
        word = rest[place]
        if word.value == "--":
            place += 1
            break
        if name == "command" and re.fullmatch(r"-[pvV]*[vV][pvV]*", word.value):
            return Carried()
        if _takes_next(word, with_value):
            place += 2
        elif word.value.startswith("-") or (name in ("env", "sudo", "doas") and _is_assignment(word)):
            place += 1
        else:
            break
    if name == "setarch" and place:
        operands = 0  # The name of a machine comes before the flags, if at all.
    inner = tuple(dropwhile(lambda word: word.value.startswith("-"), rest[place + operands :]))
    if name == "watch":
        return _texts([inner])
    if name == "parallel":
        end = next((at for at, word in enumerate(inner) if re.fullmatch(r":::\+?|::::\+?", word.value)), len(inner))
        return Carried((*_one((*inner[:end], SOMETHING) if end else ()),), runs_input=end == 0)
    if name == "xargs":
        return Carried(_one((*inner, SOMETHING) if inner else ()), computed=_code_from_input(rest, inner))
    runs_input = name in ("sudo", "doas") and not inner and any(word.value in ("-s", "-i", "-su") for word in rest)
    return Carried(_one(inner), runs_input=runs_input)


def _code_from_input(rest: tuple[Word, ...], inner: tuple[Word, ...]) -> tuple[str, ...]:
    """The code of a shell into which ``xargs -I`` or ``-i`` inserts its input."""
    own = rest[: len(rest) - len(inner)]
    mark = next((word.value for [word] in _option_values(own, ["-I"])), None)
    mark = mark or next(("{}" for word in own if word.value in ("-i", "--replace")), None)
    is_code = mark is not None and program(inner) in SHELLS
    return tuple(word.source for word in inner if is_code and mark is not None and mark in word.value)


def _shell(rest: tuple[Word, ...]) -> Carried:
    """The text after ``-c``, which may be one of several flags in a word, or else the input of the shell."""
    place, letters = 0, ""
    while place < len(rest) and re.match(r"[-+].", rest[place].value) and not rest[place].is_dynamic:
        word = rest[place]
        if word.value == "--":
            place += 1
            break
        letters += "c" if word.value == "--command" else "" if word.value.startswith("--") else word.value
        place += 2 if _takes_next(word, _SHELL_FLAGS) else 1
    if "c" in letters:
        return _texts([rest[place : place + 1]])
    return Carried(runs_input="s" in letters or place >= len(rest) or rest[place].value in _INPUTS)


def _eval(rest: tuple[Word, ...]) -> Carried:
    return _texts([[word for word in rest if word.value != "--"]])


def _trap(rest: tuple[Word, ...]) -> Carried:
    operands = [word for word in rest if not word.value.startswith("-")]
    return _texts([operands[:1]]) if len(operands) > 1 else Carried()


def _source(rest: tuple[Word, ...]) -> Carried:
    return Carried(runs_input=bool(rest) and rest[0].value in _INPUTS)


def _find(rest: tuple[Word, ...]) -> Carried:
    """The commands of ``-exec`` and its like. ``-delete`` counts as ``rm`` of the places that are searched."""
    commands: list[tuple[Word, ...]] = []
    removed: tuple[Word, ...] = ()
    starts = [word for word in rest[: _first_test(rest)] if not word.value.startswith("-")] or [literal_word(".")]
    place = 0
    while place < len(rest):
        if rest[place].value in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((at for at in range(place + 1, len(rest)) if rest[at].value in (";", "+")), len(rest))
            commands += _one([_found_below(word, starts) for word in rest[place + 1 : end]])
            place = end
        elif rest[place].value == "-delete":
            removed = (literal_word("rm"), *starts)
        place += 1
    return Carried(tuple(commands), removed=removed)


def _found_below(word: Word, starts: list[Word]) -> Word:
    """``{}`` stands for files below the places that are searched."""
    if word.value != "{}":
        return word
    return word._replace(pieces=starts[0].pieces if len(starts) == 1 else SOMETHING.pieces, pattern_at=None)


def _first_test(rest: tuple[Word, ...]) -> int:
    tests = (at for at, word in enumerate(rest) if re.match(r"-[a-z]{2}|[(!]", word.value))
    return next(tests, len(rest))


def _fd(rest: tuple[Word, ...]) -> Carried:
    for place, word in enumerate(rest):
        if word.value in ("-x", "-X", "--exec", "--exec-batch"):
            return Carried(_one((*rest[place + 1 :], SOMETHING)))
    return Carried()


def _git(rest: tuple[Word, ...]) -> Carried:
    """The settings that git runs as commands, and the commands of ``bisect run`` and ``submodule foreach``."""
    settings: list[Word] = []
    place = 0
    while place < len(rest) and rest[place].value.startswith("-"):
        settings += rest[place + 1 : place + 2] if rest[place].value == "-c" else ()
        place += 2 if rest[place].value in ("-c", "-C", "--git-dir", "--work-tree", "--namespace") else 1
    command = [word.value for word in rest[place : place + 2]]
    if command[:1] == ["clone"]:
        settings += [word for [word] in _option_values(rest[place + 1 :], ["-c", "--config"])]
    keys = [(word, word.value.partition("=")) for word in settings]
    values = [_part_of(word, value) for word, (key, _, value) in keys if value and GIT_RUNS.fullmatch(key)]
    if command[:1] == ["config"]:
        operands = [word for word in rest[place + 1 :] if not word.value.startswith("-")]
        values += [value for key, value in pairwise(operands) if GIT_RUNS.fullmatch(key.value)]
    aliases = [word for word in values if word.is_dynamic or re.match(r"[!/\w.~-]", word.value)]
    texts, computed = _split_known([[_part_of(word, word.value.removeprefix("!"))] for word in aliases])
    inner: tuple[tuple[Word, ...], ...] = ()
    if command and command[0] in GIT_OPTIONS:
        more, unknown = _split_known(_option_values(rest[place + 1 :], [GIT_OPTIONS[command[0]]]))
        texts, computed = (*texts, *more), (*computed, *unknown)
    if command == ["bisect", "run"]:
        inner = _one(rest[place + 2 :])
    elif command == ["submodule", "foreach"]:
        more, unknown = _split_known([[word for word in rest[place + 2 :] if not word.value.startswith("-")]])
        texts, computed = (*texts, *more), (*computed, *unknown)
    return Carried(inner, texts, computed)


def _make(rest: tuple[Word, ...]) -> Carried:
    values = [word for word in rest if re.match(r"(SHELL|\.SHELLFLAGS|MAKE)=", word.value)]
    return _texts([[_part_of(word, word.value.partition("=")[2])] for word in values])


def _tar(rest: tuple[Word, ...]) -> Carried:
    actions = [word for [word] in _option_values(rest, ["--checkpoint-action"]) if word.value.startswith("exec=")]
    return _texts([[_part_of(word, word.value.removeprefix("exec="))] for word in actions])


def _sed(rest: tuple[Word, ...]) -> Carried:
    """Scripts that run commands or open files, as they are written."""
    flags = tuple(word for word in rest if not re.match(r"-[nErsuz]*i", word.value))  # What follows ``-i`` is a suffix.
    scripts = [word for [word] in _option_values(flags, ["-e", "-f", "--expression", "--file"])]
    scripts = scripts or [word for word in rest if _is_operand(word)][:1]
    is_file = any(re.match(r"-[a-zA-Z]*f|--file", word.value) for word in rest)
    return Carried(computed=tuple(word.source for word in scripts if is_file or not only_edits(_sed_script(word))))


def _sed_script(word: Word) -> str:
    """A script with ``x`` in the place of each expansion."""
    if not word.is_dynamic:
        return word.value
    return re.sub(r"\$\{[^}]*\}|\$\w+|\$\([^)]*\)", "x", word.source.strip('"'))


def _subscripts(rest: tuple[Word, ...]) -> Carried:
    """Commands in quoted subscripts: ``printf -v 'a[$(rm x)]' y`` runs ``rm x``."""
    found = [(word, subscript_commands(word.value)) for word in rest if not word.is_dynamic]
    texts = tuple(text for _, texts in found for text in texts)
    return Carried(texts=texts, computed=tuple(word.source for word, texts in found if texts))


def subscript_commands(text: str) -> list[str]:
    """The commands of substitutions inside the subscript of a variable, where quotes do not keep them from running."""
    found = re.findall(r"\[[^\]]*?(?:\$\((.*)\)|`(.*)`)", text, re.DOTALL)
    return [inner for pair in found for inner in pair if inner]


def _su(rest: tuple[Word, ...]) -> Carried:
    return Carried(runs_input=not any(word.value in ("-c", "--command") for word in rest))


def _ssh(rest: tuple[Word, ...]) -> Carried:
    return _copied(rest)._replace(runs_input=len([word for word in rest if _is_operand(word)]) <= 1)


def _copied(rest: tuple[Word, ...]) -> Carried:
    """The commands in the settings of ``ssh`` and its relatives."""
    values = [word for found in _option_values(rest, ["-o"]) for word in found]
    settings = [(word, re.match(r"(?i)(proxy|local|remote|knownhosts)command[ =]", word.value)) for word in values]
    return _texts([[_part_of(word, word.value[key.end() :])] for word, key in settings if key is not None])


def _runs_input(rest: tuple[Word, ...]) -> Carried:
    return Carried(runs_input=True)


_SPECIAL: Final[dict[str, Callable[[tuple[Word, ...]], Carried]]] = {
    **dict.fromkeys(SHELLS, _shell),
    "eval": _eval,
    "trap": _trap,
    "source": _source,
    ".": _source,
    "find": _find,
    "gfind": _find,
    "fd": _fd,
    "fdfind": _fd,
    "git": _git,
    "make": _make,
    "gmake": _make,
    "tar": _tar,
    "su": _su,
    "ssh": _ssh,
    "scp": _copied,
    "sftp": _copied,
    "sed": _sed,
    "gsed": _sed,
    "at": _runs_input,
    "batch": _runs_input,
    "crontab": _runs_input,
}


def _option_values(rest: tuple[Word, ...], options: list[str]) -> list[list[Word]]:
    """The values of options: ``--rsh=x``, ``--rs x``, ``-e x``, ``-ex``, and ``-ave x``, where ``-e`` comes last."""
    found = []
    for place, word in enumerate(rest):
        name, has_value, value = word.value.partition("=")
        letter = short_option(word.value, _letters(options))
        if has_value and _is_option(name, options):
            found.append([_part_of(word, value)])
        elif _is_option(word.value, options) or (letter is not None and letter[1] == len(word.value)):
            found.append(list(rest[place + 1 : place + 2]))
        elif letter is not None:
            found.append([_part_of(word, word.value[letter[1] :])])
    return [values for values in found if values]


def _is_option(name: str, options: list[str]) -> bool:
    """Whether a name is one of these options, or a long one that is cut short."""
    is_long = name.startswith("--") and len(name) > 3
    return name in options or (is_long and any(option.startswith(name) for option in options))


def _takes_next(word: Word, options: Sequence[str]) -> bool:
    """Whether the value of an option is the next word."""
    letter = short_option(word.value, _letters(options))
    return word.value in options or (letter is not None and letter[0] in options and letter[1] == len(word.value))


def _letters(options: Sequence[str]) -> list[str]:
    return [option[1] for option in options if len(option) == 2]


def _part_of(word: Word, value: str) -> Word:
    """A part of a word as a word: computed if the word is."""
    return word._replace(source=value, value=value, pieces=(Piece(value, "computed" if word.is_dynamic else "quoted"),))


def _texts(values: Sequence[Sequence[Word]]) -> Carried:
    texts, computed = _split_known(values)
    return Carried(texts=texts, computed=computed)


def _split_known(values: Sequence[Sequence[Word]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts that are known, and those that are computed. The words of one text are joined with blanks."""
    known, computed = [], []
    for words in values:
        if any(word.is_dynamic for word in words):
            computed.append(" ".join(word.source for word in words))
        elif words:
            known.append(" ".join(word.value for word in words))
    return tuple(known), tuple(computed)


def _one(words: Sequence[Word]) -> tuple[tuple[Word, ...], ...]:
    return (tuple(words),) if words else ()


def _is_operand(word: Word) -> bool:
    return word.is_dynamic or not word.value.startswith("-")


def _is_assignment(word: Word) -> bool:
    return re.match(r"[A-Za-z_]\w*=", word.value) is not None
