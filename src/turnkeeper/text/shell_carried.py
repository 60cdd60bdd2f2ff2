"""Commands that run other commands: which ones they run, read off their words.

``sudo rm x`` runs ``rm x``; ``sh -c 'rm x'`` and ``git -c alias.y='!rm x' y`` run a text. What is computed when the
command runs is given as it is written, so that a question can show it.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from turnkeeper.text.shell_words import SOMETHING, Piece, Word, literal_word

_SHELL_NAMES: Final = "sh bash dash zsh ksh mksh fish ash rbash"
SHELLS: Final = frozenset(_SHELL_NAMES.split())
_INTERPRETER_NAMES: Final = (
    "python python2 python3 pypy pypy3 perl ruby node nodejs php lua luajit tclsh Rscript osascript awk gawk"
    " mawk nawk expect"
)
INTERPRETERS: Final = frozenset(_INTERPRETER_NAMES.split())
"""Programs that run code from their arguments or their input. The code is not looked into."""

# Words that follow a flag as its value, and how many words stand before the command.
_PREFIXES: Final[dict[str, tuple[str, int]]] = {
    "sudo": ("-u -g -h -p -C -T -U -r -t -D -R --user --group --host --prompt --chdir --chroot --role --type", 0),
    "doas": ("-u -C", 0),
    "env": ("-u -C --unset --chdir", 0),
    "nohup": ("", 0),
    "setsid": ("", 0),
    "nice": ("-n --adjustment", 0),
    "ionice": ("-c -n -p --class --classdata", 0),
    "chrt": ("", 1),
    "taskset": ("", 1),
    "time": ("-f -o --format --output", 0),
    "timeout": ("-s -k --signal --kill-after", 1),
    "gtimeout": ("-s -k --signal --kill-after", 1),
    "stdbuf": ("-i -o -e --input --output --error", 0),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("-a", 0),
    "chroot": ("", 1),
    "strace": ("-e -o -p -s -u -E -P -a -b -I -O -S -X", 0),
    "ltrace": ("-e -o -p -s -u -n -a", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "flock": ("-w -E --timeout --conflict-exit-code", 1),
    "chronic": ("", 0),
    "unbuffer": ("", 0),
    "caffeinate": ("-t -w", 0),
    "systemd-run": ("-p -u --unit --property --slice --uid --gid", 0),
    "entr": ("", 0),
    "xargs": (
        "-I -n -P -L -d -E -s -a -i --max-args --max-procs --max-lines --delimiter --arg-file --max-chars --replace",
        0,
    ),
    "watch": ("-n --interval", 0),
    "parallel": ("-j -N -n -L -a -S --jobs --delay --retries --joblog --results --arg-file --colsep --sshlogin", 0),
}
_GIT_RUNS: Final = re.compile(
    r"(alias\..*|core\.(pager|editor|sshcommand|fsmonitor|askpass|hookspath|gitproxy)|pager\..*|.*\.(helper|command"
    r"|cmd|driver|clean|smudge|process|textconv|external|program|editor|path|sshcommand|vcs|uploadpack|receivepack))",
    re.IGNORECASE,
)
# Options whose value is a command, by the program that takes them.
_OPTIONS: Final = {
    "tar": "--to-command --use-compress-program --rsh-command --info-script --new-volume-script -I -F",
    "rsync": "--rsh -e --rsync-path",
    "rg": "--pre --hostname-bin",
    "sort": "--compress-program",
    "man": "-P --pager",
    "git": "--upload-pack --receive-pack --exec --exec-path --tree-filter --index-filter --msg-filter --env-filter"
    " --extcmd --open-files-in-pager",
    "su": "-c --command",
    "script": "-c --command",
    "flock": "-c --command",
    "env": "-S --split-string",
    "zip": "-TT --unzip-command",
    "make": "--eval -E",
}


class Carried(NamedTuple):
    """What a command runs besides itself: commands as words, texts for a shell, and texts that are not known yet."""

    commands: tuple[tuple[Word, ...], ...] = ()
    texts: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()
    runs_input: bool = False
    """Whether it runs what it reads from its input."""
    removed: tuple[Word, ...] = ()
    """``rm`` and the places in which it removes files."""


def program(words: Sequence[Word]) -> str:
    """The name of the program, without its directory."""
    return words[0].value.rsplit("/", 1)[-1] if words else ""


def carried(words: tuple[Word, ...]) -> Carried:
    """What a command runs besides itself."""
    if not words or words[0].is_dynamic:
        return Carried()
    name, rest = program(words), words[1:]
    found = _SPECIAL[name](rest) if name in _SPECIAL else Carried()
    if name in _PREFIXES and not found.texts:
        found = _after_prefix(name, rest)
    if re.fullmatch(r"(python|pypy|ruby|perl|lua|php|node)[\d.]*", name) or name in INTERPRETERS:
        found = Carried(runs_input=not any(_is_operand(word) or word.value.startswith("-") for word in rest[:1]))
        found = found._replace(runs_input=found.runs_input or any(word.value == "-" for word in rest))
    options = _option_values(rest, _OPTIONS.get(name, "").split())
    texts, computed = _split_known(options)
    return found._replace(texts=(*found.texts, *texts), computed=(*found.computed, *computed))


def _after_prefix(name: str, rest: tuple[Word, ...]) -> Carried:
    """The command behind the flags, assignments and operands of a command such as ``sudo`` or ``timeout``."""
    flags, operands = _PREFIXES[name]
    with_value = flags.split()
    place = 0
    while place < len(rest):
        word = rest[place]
        if word.value == "--":
            place += 1
            break
        if name == "command" and re.fullmatch(r"-[pvV]*[vV][pvV]*", word.value):
            return Carried()
        if word.value in with_value:
            place += 2
        elif word.value.startswith("-") or (name in ("env", "sudo", "doas") and _is_assignment(word)):
            place += 1
        else:
            break
    inner = rest[place + operands :]
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
    """The code of a shell into which ``xargs -I`` puts what it reads."""
    flags = [word.value for word in rest]
    mark = next((flags[at + 1] for at, flag in enumerate(flags[:-1]) if flag == "-I"), None)
    mark = mark or next((flag[2:] for flag in flags if flag.startswith("-I") and len(flag) > 2), None)
    is_code = mark is not None and program(inner) in SHELLS
    return tuple(word.source for word in inner if is_code and mark is not None and mark in word.value)


def _shell(rest: tuple[Word, ...]) -> Carried:
    """The text behind ``-c``, which may be one of several flags in a word."""
    for place, word in enumerate(rest):
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word.value) or word.value == "--command":
            operands = [one for one in rest[place + 1 :] if not one.value.startswith(("-", "+")) or one.is_dynamic]
            return _texts([operands[:1]])
        if not word.value.startswith(("-", "+")):
            return Carried()
    return Carried(runs_input=True)


def _eval(rest: tuple[Word, ...]) -> Carried:
    return _texts([[word for word in rest if word.value != "--"]])


def _trap(rest: tuple[Word, ...]) -> Carried:
    operands = [word for word in rest if not word.value.startswith("-")]
    return _texts([operands[:1]]) if len(operands) > 1 else Carried()


def _source(rest: tuple[Word, ...]) -> Carried:
    return Carried(runs_input=bool(rest) and rest[0].value in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"))


def _find(rest: tuple[Word, ...]) -> Carried:
    """The commands of ``-exec`` and its like. ``-delete`` is told as ``rm`` of the places that are searched."""
    commands: list[tuple[Word, ...]] = []
    removed: tuple[Word, ...] = ()
    starts = [word for word in rest[: _first_test(rest)] if not word.value.startswith("-")] or [literal_word(".")]
    place = 0
    while place < len(rest):
        if rest[place].value in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = [at for at in range(place + 1, len(rest)) if rest[at].value in (";", "+")]
            end = ends[0] if ends else len(rest)
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
    """What ``-c`` sets where git runs it; the command of ``bisect run`` and ``submodule foreach``."""
    values: list[Word] = []
    place = 0
    while place < len(rest) and rest[place].value.startswith("-"):
        setting = rest[place + 1] if rest[place].value == "-c" and place + 1 < len(rest) else None
        if setting is not None and (key := setting.value.partition("="))[1] and _GIT_RUNS.fullmatch(key[0]):
            values.append(_part_of(setting, key[2]))
        place += 2 if rest[place].value in ("-c", "-C", "--git-dir", "--work-tree", "--namespace") else 1
    command = [word.value for word in rest[place : place + 2]]
    if command[:1] == ["config"]:
        operands = [word for word in rest[place + 1 :] if not word.value.startswith("-")]
        if len(operands) > 1 and _GIT_RUNS.fullmatch(operands[0].value):
            values.append(operands[1])
    aliases = [word for word in values if word.is_dynamic or re.match(r"[!/\w.~-]", word.value)]
    texts, computed = _split_known([[_part_of(word, word.value.removeprefix("!"))] for word in aliases])
    inner: tuple[tuple[Word, ...], ...] = ()
    if command[:1] == ["rebase"]:
        more, unknown = _split_known(_option_values(rest, ["-x"]))
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
    actions = [word for word in rest if word.value.startswith("--checkpoint-action=exec=")]
    return _texts([[_part_of(word, word.value.partition("exec=")[2])] for word in actions])


def _su(rest: tuple[Word, ...]) -> Carried:
    return Carried(runs_input=not any(word.value in ("-c", "--command") for word in rest))


def _ssh(rest: tuple[Word, ...]) -> Carried:
    return Carried(runs_input=len([word for word in rest if _is_operand(word)]) <= 1)


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
    "at": _runs_input,
    "batch": _runs_input,
    "crontab": _runs_input,
}


def _option_values(rest: tuple[Word, ...], options: list[str]) -> list[list[Word]]:
    found = []
    for place, word in enumerate(rest):
        name, has_value, value = word.value.partition("=")
        if name in options and has_value:
            found.append([_part_of(word, value)])
        elif word.value in options:
            found.append(list(rest[place + 1 : place + 2]))
    return found


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
