"""The paths that a shell command names: those it writes and those it may read.

| Words | What they count as |
|---|---|
| target of ``>``, ``>>``, ``>|``, ``&>``, ``<>`` | a path that is written |
| target of ``<`` | a path that is read |
| operands of commands that work on files (``cat``, ``rm``, ``cp`` ...) | paths that are read or written |
| operands and option values of other commands | paths if something is there |
| the program itself, ``-I/usr/include`` and its like, arguments of ``echo`` | no paths |
"""

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from turnkeeper.model.value import Value
from turnkeeper.text.shell_carried import carried, program, short_option
from turnkeeper.text.shell_expand import Values
from turnkeeper.text.shell_script import CHANGING_DIRECTORY, Script, SimpleCommand
from turnkeeper.text.shell_words import HOME, Piece, Word

_FILE_COMMANDS: Final = (
    "rm cp mv mkdir touch chmod chown cat tee ln install rsync scp unlink rmdir shred truncate dd chgrp head tail less"
    " more tac nl xxd od hexdump strings base64 source ."
)
NAMING_PATHS: Final = CHANGING_DIRECTORY | frozenset(_FILE_COMMANDS.split())
"""Commands whose operands are paths, whether something is there or not."""
_OTHER_COMMANDS: Final = (
    "configure echo printf true false : sleep seq expr basename dirname tr kill killall pkill export unset alias type"
    " which hash exit return break continue shift wait date whoami hostname uname id nproc let read local"
    " declare"
)
NAMING_NONE: Final = frozenset(_OTHER_COMMANDS.split())
"""Commands that open none of their arguments."""

_SCRIPT_COMMANDS: Final = "grep egrep fgrep rg ag sed gsed awk gawk mawk nawk jq yq perl"
_SCRIPT_FIRST: Final = frozenset(_SCRIPT_COMMANDS.split())
"""Commands whose first operand is an expression, unless a flag gave one."""
_GIVES_SCRIPT: Final = re.compile(r"-[a-zA-Z]*[ef]|--(regexp|expression|file|from-file|files)(=.*)?")
_INCLUDING: Final = re.compile(r"-(?:[ILBFDUWlRXO]|isystem|idirafter|iquote|Wl,|Xlinker)")
"""Flags of compilers and others with a joined value that is not a path which the command works on."""
_PLACE_NAMES: Final = "CDPATH HOME GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_COMMON_DIR"
_PLACES: Final = tuple(_PLACE_NAMES.split())
"""Variables that change the directories of a command."""
_JOINED: Final = re.compile(r"-[A-Za-z](?=/.|~/|\.\.(/|$))")
_WRITING_COMMANDS: Final = "tee touch rm unlink shred truncate mv rmdir"
_ALL_WRITTEN: Final = frozenset(_WRITING_COMMANDS.split())
_INTO_LAST: Final = frozenset(["cp", "mv", "ln", "install", "rsync", "scp"])
_VALUE_FLAGS: Final = {
    "truncate": "-s -r --size --reference",
    "touch": "-d -t -r --date --reference",
    "install": "-m -o -g -S --mode --owner --group",
    "cp": "-S --suffix",
    "mv": "-S --suffix",
    "ln": "-S --suffix",
    "mkdir": "-m --mode",
    "shred": "-n -s --iterations --size",
    "rsync": "-e --rsh --exclude --include --filter -f --exclude-from --files-from --bwlimit --max-size --min-size",
    "scp": "-P -o -i -F -l -c",
    "head": "-n -c --lines --bytes",
    "tail": "-n -c --lines --bytes --pid",
    "sed": "-e --expression -l",
    "gsed": "-e --expression -l",
    "perl": "-e -E -M -I",
    "cut": "-d -f -c -b",
    "sort": "-t -k -S",
    "awk": "-F -v",
    "gawk": "-F -v",
    "paste": "-d",
    "column": "-s -o",
    "grep": "-e -A -B -C -m --regexp --include --exclude --max-count --context",
}
_OUTPUT_FLAGS: Final = {
    "curl": "-o --output -D --dump-header -c --cookie-jar --output-dir",
    "wget": "-O --output-document -o --output-file -a -P --directory-prefix",
    "sort": "-o --output",
    "git": "--output",
    "find": "-fprint -fprint0 -fprintf -fls",
    "time": "-o --output",
    "tcpdump": "-w",
}

_VALUE_LETTERS: Final = {
    "curl": "AbcCdDeEFhHKmoPQrtTuUwxXyYz",
    "wget": "aABDeiIloOPQRtTUwX",
    "sort": "koStT",
    "time": "fo",
    "tcpdump": "BcCEFGijrsTVwWyzZ",
}
"""Letters of commands with output flags that take a value: ``-sSLo x`` is ``-o x``, and ``-uroot`` is ``-u``."""


class ShellPath(Value):
    """A path that a command names, relative to its working directory unless it begins with ``/`` or ``~``.

    ``is_certain``: it is a path whether something is there or not. ``glob`` has its wildcards, if it has any, and
    ``path`` is then the text before them. Where a directory is written, ``names`` are the files that land in it.
    """

    path: str
    is_written: bool = False
    is_certain: bool = False
    glob: str | None = None
    names: tuple[str, ...] = ()


class Named(Value):
    """The paths of a script, and the words whose paths are only known when it runs.

    ``computed_writes`` are those of them that are written, or that may be.
    """

    paths: tuple[ShellPath, ...]
    computed: tuple[str, ...]
    computed_writes: tuple[str, ...]


def named_paths(script: Script, environ: Mapping[str, str]) -> Named:
    """Every path that the commands of a script name."""
    values = Values(script, environ)
    paths: dict[ShellPath, None] = {}
    computed: dict[str, None] = {}
    writes: dict[str, None] = {}
    for simple in script.commands:
        if simple.is_opaque and not simple.words:
            computed[simple.source] = writes[simple.source] = None
        bases = _bases(simple, values.at(simple))
        for use in _uses(simple):
            found = _found(use, values)
            if found is None and use.is_certain:
                computed[use.word.source or simple.source] = None
                writes |= {use.word.source or simple.source: None} if use.is_written else {}
            paths |= dict.fromkeys(_joined(base, path) for path in found or () for base in bases)
    for name in _PLACES:
        for word in script.variables.get(name, ()):
            texts = values.texts(word)
            if texts is None:
                computed[f"{name}={word.source}"] = None
            paths |= {
                ShellPath(path=one, is_certain=True): None for text in texts or () for one in text.split(":") if one
            }
    return Named(paths=tuple(paths), computed=tuple(computed), computed_writes=tuple(writes))


class _Use(Value):
    """A word that may name a path, and how the command uses it."""

    word: Word
    is_written: bool = False
    is_certain: bool = False
    is_unknown: bool = False
    is_remote: bool = False
    """Whether ``host:path`` is a path on another machine."""
    names: tuple[Word, ...] = ()
    after: int = 0
    """The number of characters of the value before the path."""


def _uses(simple: SimpleCommand) -> Iterator[_Use]:
    for target in simple.targets:
        yield _Use(word=target.word, is_written=target.is_written, is_certain=True)
    name = program(simple.words)
    if not simple.words or name in NAMING_NONE:
        # The shell itself reads a directory to expand a wildcard.
        yield from (_Use(word=word) for word in simple.words[1:] if _has_wildcard(word))
        return
    if name in CHANGING_DIRECTORY:
        yield from _directories(simple)
        return
    flags, operands = _arguments(name, _own(simple.words))
    is_into = name in _INTO_LAST and not any(_is_target(flag) for flag, *_ in flags)
    for flag, word, after in flags:
        if name in _INTO_LAST and _is_target(flag):
            yield _Use(word=word, is_written=True, is_certain=True, names=tuple(operands), after=after)
        else:
            is_output = flag in _OUTPUT_FLAGS.get(name, "").split()
            yield _Use(word=word, is_written=is_output, is_certain=is_output, after=after)
    is_edited = name in _ALL_WRITTEN or _edits_in_place(name, simple.words[1:])
    for place, word in enumerate(operands):
        is_target = is_into and place == len(operands) - 1 > 0
        of_dd = name == "dd" and word.value[:3] in ("of=", "if=")
        yield _Use(
            word=word,
            is_written=is_edited or is_target or (of_dd and word.value.startswith("of=")),
            is_certain=is_edited or name in NAMING_PATHS,
            is_remote=name in ("rsync", "scp"),
            names=tuple(operands[:-1]) if is_target else (),
            after=3 if of_dd else 0,
        )


def _has_wildcard(word: Word) -> bool:
    return any(piece.kind == "bare" and re.search(r"[*?\[]", piece.text) for piece in word.pieces)


def _own(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """The arguments of a command without those of the command that it runs, and without paths inside a container."""
    name, rest = program(words), words[1:]
    runs = carried(words)
    inner = {word.source for command in runs.commands for word in command}
    if name in ("env", "sudo", "doas"):
        rest = tuple(word for word in rest if not re.match(r"[A-Za-z_]\w*=", word.value))
    if name in ("docker", "podman", "nerdctl") and any(word.value in ("run", "create", "exec") for word in rest[:2]):
        rest = tuple(_mounted(rest))
    if name in ("kubectl", "docker", "podman") and any(word.value == "--" for word in rest):
        rest = rest[: [word.value for word in rest].index("--")]
    return tuple(word for word in rest if word.source not in inner and word.value not in runs.texts)


def _mounted(rest: tuple[Word, ...]) -> Iterator[Word]:
    """The paths of this machine that a container gets: the first part of ``-v``, the source of ``--mount``."""
    for place, word in enumerate(rest):
        flag, has_value, _ = word.value.partition("=")
        given = word if has_value else rest[place + 1] if place + 1 < len(rest) else None
        if flag in ("-v", "--volume", "--mount", "--env-file") and given is not None:
            yield given._replace(pieces=_before_colon(given.pieces))


def _before_colon(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    kept: list[Piece] = []
    for piece in pieces:
        if piece.kind in ("bare", "quoted") and (found := re.search(r":|,(target|dst|destination)=", piece.text)):
            return (*kept, piece._replace(text=piece.text[: found.start()]))
        kept.append(piece)
    return tuple(kept)


def _directories(simple: SimpleCommand) -> Iterator[_Use]:
    """The target directories of ``cd``. In a loop or a function it may go up any number of times."""
    operands = [word for word in simple.words[1:] if not re.fullmatch(r"[-+][LPe@n\d]*|--", word.value)]
    for word in operands or ([HOME] if len(simple.words) == 1 and simple.words[0].value in ("cd", "chdir") else []):
        yield _Use(word=word, is_certain=True, is_unknown=simple.is_repeated and ".." in word.value)


def _arguments(name: str, words: tuple[Word, ...]) -> tuple[list[tuple[str, Word, int]], list[Word]]:
    """Flags that have a value, with the word that holds it and where in the word it begins; and the operands."""
    flags: list[tuple[str, Word, int]] = []
    operands: list[Word] = []
    skipped, outputs = _VALUE_FLAGS.get(name, "").split(), _OUTPUT_FLAGS.get(name, "").split()
    rest = list(words)
    while rest:
        word = rest.pop(0)
        flag, has_value, _ = word.value.partition("=")
        if word.value == "--":
            operands += rest
            break
        if not word.value.startswith("-") or word.value == "-" or word.pieces[0].kind not in ("bare", "quoted"):
            operands.append(word)
        elif word.value in skipped or (name in _SCRIPT_FIRST and re.fullmatch(r"-[a-zA-Z0]+[eE]", word.value)):
            del rest[:1]
        elif word.value in outputs or (name in _INTO_LAST and word.value in ("-t", "--target-directory")):
            flags += [(word.value, rest.pop(0), 0)] if rest else []
        elif flag.startswith("--") and has_value:
            flags.append((flag, word, len(flag) + 1))
        elif (letter := short_option(word.value, _VALUE_LETTERS.get(name, ""))) and letter[0] in outputs:
            joined = letter[1] < len(word.value)
            flags += [(letter[0], word, letter[1])] if joined else [(letter[0], rest.pop(0), 0)] if rest else []
        elif _JOINED.match(word.value) and not _INCLUDING.match(word.value):
            flags.append((word.value[:2], word, 2))
    flags = [one for one in flags if one[1].value[one[2] :] != "-"]
    operands = [word for word in operands if word.value or word.is_dynamic]
    if name in _SCRIPT_FIRST and not any(_GIVES_SCRIPT.fullmatch(word.value) for word in words):
        del operands[:1]
    return flags, operands


def _is_target(flag: str) -> bool:
    return flag in ("-t", "--target-directory")


def _edits_in_place(name: str, words: tuple[Word, ...]) -> bool:
    flags = [word.value for word in words if word.value.startswith("-")]
    if name in ("sed", "gsed"):
        return any(re.match(r"-[nErsuz]*i|--in-place", flag) for flag in flags)
    return name in ("perl", "ruby") and any(re.match(r"-[pnlaw0]*i", flag) for flag in flags)


def _found(use: _Use, values: Values) -> list[ShellPath] | None:
    """The paths that a word may be; None if they are not known."""
    expanded = values.expanded(use.word)
    if expanded is None or use.is_unknown:
        return None
    basenames = [posixpath.basename(text.rstrip("/")) for word in use.names for text in values.texts(word) or ()]
    paths = []
    for one in expanded:
        text, glob = one.text[use.after :], one.glob and one.glob[use.after :]
        if use.is_remote and re.match(r"[^/]*:", text):
            continue
        texts = [text] if use.is_certain or glob else _candidates(text)
        for candidate in texts:
            if candidate or glob:
                paths.append(
                    ShellPath(
                        path=candidate or ".",
                        glob=glob,
                        is_written=use.is_written,
                        is_certain=use.is_certain,
                        names=tuple(dict.fromkeys(basenames)),
                    )
                )
    return paths


def _candidates(text: str) -> list[str]:
    """The possible paths in an argument: the whole, a ``file:`` URL, the text after ``=``, ``:`` or ``@``."""
    if re.match(r"file:/", text, re.IGNORECASE):
        return [unquote(re.sub(r"^file:(//[^/]*)?", "", text, flags=re.IGNORECASE))]
    if re.match(r"\w+://", text):
        return []
    pieces = re.split(r"[=:,@]", text)
    return [text, *(piece for piece in pieces[len(pieces) == 1 :] if re.match(r"/.|~|\.\.?(/|$)", piece))]


def _bases(simple: SimpleCommand, values: Values) -> list[str]:
    """The directories in which a command may run. ``cd`` forgets links where it goes up, other programs do not."""
    bases: dict[str, None] = {}
    for way in sorted(simple.directories, key=lambda way: [word.source for word in way]):
        places = {""}
        for word in way:
            found = values.expanded(word)
            if found is not None:
                joined = {posixpath.join(place, one.text or ".") for place in places for one in found}
                places = joined | {posixpath.normpath(place) for place in joined if not place.startswith("~")}
        bases |= dict.fromkeys(sorted(places))
    return list(bases)


def _joined(base: str, path: ShellPath) -> ShellPath:
    if not base or path.path.startswith(("/", "~")):
        return path
    glob = path.glob and posixpath.join(base, path.glob)
    return path.but(path=posixpath.join(base, path.path), glob=glob)
