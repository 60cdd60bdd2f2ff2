"""Reach: resolves the paths of models, and asks before a path outside the project is used."""

import errno
import fnmatch
import glob
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, count, islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from anyio import to_thread

from turnkeeper.core.sandbox import Confinement
from turnkeeper.text import wildcard
from turnkeeper.text.shell_paths import ShellPath
from turnkeeper.text.shell_rules import CommandAsk
from turnkeeper.tools.tool import ToolContext, ToolFailure
from turnkeeper.tools.wanted import Wanted, ask_all
from turnkeeper.workspace import files, path_steps, ripgrep
from turnkeeper.workspace.files import CheckedPath

MATCHES_MAX: Final = 10_000
"""Files that the wildcards of one word of a command are resolved to. A word with more of them is asked about."""
ENTRIES_MAX: Final = 30_000
"""Entries of directories that are looked at for the wildcards of one command."""

_DEVICE: Final = re.compile(
    r"/dev/(null|zero|full|random|urandom|tty|ptmx|stdin|stdout|stderr|console|fd/\d+|pts/\d+|(tcp|udp)/.*)"
)
"""Devices without stored data. A disk counts as a normal path."""
_PROGRAM: Final = re.compile(r"(/usr(/local)?|/opt/homebrew)?/s?bin/[^/]+")


class ShellPlaces(NamedTuple):
    """The resolved paths of a command: directories outside the project, and files inside it that are written.

    ``unknown`` are words with wildcards that may lead anywhere: there was too much to look at.
    """

    outside: list[Path]
    edited: list[str]
    unknown: list[str]


def located(given: str, context: ToolContext) -> Path:
    """The absolute path, ``~`` and dots resolved; links are as they were written."""
    if "\0" in given:
        raise ToolFailure(f"{given!r} is no path: it has a NUL character in it.")
    return Path(os.path.normpath(os.path.join(context.directory, _at_home(given, context))))


async def search_confinement(place: CheckedPath, context: ToolContext) -> Confinement | None:
    """How the kernel confines a search below a place. None: not at all.

    Ripgrep opens files by their names. A directory that becomes a link meanwhile must not lead it to what commands may
    not read either.
    """
    confined = await to_thread.run_sync(context.confine)
    return None if confined is None else confined.reading(str(place.place), os.path.realpath(ripgrep.program()))


async def reach(
    given: str, context: ToolContext, kind: Literal["file", "directory"] = "file", *, then: str | None = None
) -> CheckedPath:
    """The path a call may use; Denied or Rejected if it lies outside and may not be reached.

    ``then`` is the permission that the call asks for next with the path. If that is denied nothing is asked.
    """
    return (await reach_all([given], context, kind, then=then))[given]


async def reach_all(
    given: Sequence[str], context: ToolContext, kind: Literal["file", "directory"] = "file", *, then: str | None = None
) -> dict[str, CheckedPath]:
    """The paths of a call by the given texts, each as from ``reach``."""
    # Not on a thread: a few looks at directories cost less than the way there and back.
    paths = {one: CheckedPath.of(located(one, context)) for one in given}
    wanted: list[Wanted] = []
    for path in paths.values():
        if path in context.services.secrets:
            raise ToolFailure(f"{str(path)!r} holds keys or permissions of the user. No tool may open it; do without.")
        if then is not None:
            context.refuse_denied(then, patterns(path, context))
        if _is_loop(path):
            raise ToolFailure(f"{str(path)!r} is a loop of symbolic links, so there is no file. Name another path.")
        if not files.is_inside(path, context.directory, context.worktree):
            parent = path.place if kind == "directory" or os.path.isdir(path.place) else path.place.parent
            wanted += outside([parent], {"filepath": str(path), "parentDir": str(parent)})
    await ask_all(wanted, context)
    return paths


def _is_loop(path: Path) -> bool:
    """Whether the links of a path form a loop."""
    try:
        os.stat(path)
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def outside(directories: Sequence[Path], metadata: dict[str, object], unknown: Sequence[str] = ()) -> list[Wanted]:
    """The permissions for directories outside the project. ``unknown`` are words that may lead to any directory."""
    places = [f"{str(directory).rstrip('/')}/*" for directory in dict.fromkeys(directories)]
    found = [*places, *unknown]
    always = [*places, *map(wildcard.literal, unknown)]
    return [Wanted("external_directory", found, always, metadata)] if found else []


def patterns(path: Path, context: ToolContext) -> list[str]:
    """The texts that rules about a file are matched against: its path from the top of the project, and its link target.

    Outside of the project the path is absolute.

    Otherwise a link named ``notes.txt`` would get around a rule about ``.env``. Where the file system takes two
    spellings for one name, the other spellings are there too.
    """
    place, root = str(files.real(path)), os.path.realpath(context.top)
    found = [_from_top(str(path), str(context.top))]
    if place != str(path) or root != str(context.top):
        found.append(_from_top(place, root))
    composed = [unicodedata.normalize("NFC", name) for name in found]
    if path_steps.folds_case(root):
        composed += [path_steps.spelled(name, root) for name in composed if not os.path.isabs(name)]
        composed += [name.casefold() for name in composed]
    return list(dict.fromkeys([*found, *composed]))


def _from_top(path: str, top: str) -> str:
    is_below = path == top or path.startswith(f"{top.rstrip('/')}/")
    return os.path.relpath(path, top) if is_below else path


def shown(path: Path, context: ToolContext) -> str:
    """The path for a title: relative to the top of the project if it is inside."""
    name, top = str(path), f"{str(context.top).rstrip('/')}/"
    return name.removeprefix(top) if name.startswith(top) else "." if path == context.top else name


def shell_places(asked: CommandAsk, directory: Path, context: ToolContext) -> ShellPlaces:
    """The resolved paths of a command that runs in a directory, without devices."""
    outside: dict[Path, None] = {}
    edited: dict[str, None] = {}
    unknown: dict[str, None] = {}
    entries = count()
    if not files.is_inside(directory, context.directory, context.worktree):
        outside[files.real(directory)] = None
    for path in asked.paths:
        found = list(islice(_places(path, directory, context, entries), MATCHES_MAX + 1))
        if path.glob is not None and (len(found) > MATCHES_MAX or next(entries) > ENTRIES_MAX):
            unknown[path.glob] = None
            edited |= {path.glob: None} if path.is_written else {}
        for place in found:
            for end in [] if _DEVICE.fullmatch(os.path.normpath(place)) else _ends(place):
                if not files.is_inside(end, context.directory, context.worktree):
                    if path.is_certain or _is_there(end):
                        outside[end if os.path.isdir(end) else end.parent] = None
                elif path.is_written and not (path.glob and os.path.isdir(place) and place.endswith("/")):
                    names = patterns(end, context)
                    edited |= dict.fromkeys([*names, *(f"{name}/" for name in names if os.path.isdir(end))])
    return ShellPlaces(list(outside), [*edited, *asked.computed_writes], list(unknown))


def _places(path: ShellPath, directory: Path, context: ToolContext, entries: Iterator[int]) -> Iterator[str]:
    """The absolute paths of a command's path: the matches of its wildcards, and the files written to its directory.

    The directory before a wildcard ends in a slash: it is passed, and nothing is done to it.
    """
    place = os.path.join(directory, _at_home(path.path, context))
    if path.glob is not None:
        yield place if os.path.isdir(place) and place.endswith("/") else f"{os.path.dirname(place)}/"
        # The pattern itself stands for files that are made meanwhile.
        pattern = os.path.join(glob.escape(str(directory)), _at_home(path.glob, context))
        yield pattern
        yield from _matches("/", pattern.split("/"), entries)
    elif path.names and os.path.isdir(place):
        yield from (os.path.join(place, name) for name in path.names)
    else:
        yield place


def _matches(place: str, steps: Sequence[str], entries: Iterator[int]) -> Iterator[str]:
    """The files below a place that a pattern matches now, as far as ``entries`` may still be looked at."""
    for at, step in enumerate(steps):
        if not glob.has_magic(step):
            place = os.path.join(place, step)
            continue
        # A pattern such as ``.*`` also matches the directory above.
        names = chain([".."], _names(place)) if step.startswith(".") else _names(place)
        for name in names:
            if next(entries) > ENTRIES_MAX:
                return
            if fnmatch.fnmatchcase(name, step) and (step.startswith(".") or not name.startswith(".")):
                yield from _matches(os.path.join(place, name), steps[at + 1 :], entries)
        return
    if os.path.lexists(place):
        yield place


def _names(directory: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(directory) as found:
        for entry in found:
            yield entry.name


def _at_home(path: str, context: ToolContext) -> str:
    home = context.environ.get("HOME")
    if home is not None and (path == "~" or path.startswith("~/")):
        return home + path[1:]
    return os.path.expanduser(path)


def _ends(place: str) -> list[Path]:
    """The targets of a path: with its links resolved, and by its text alone, as for ``cd``.

    A path through /proc is taken to lie there: ``/proc/self/cwd`` leads elsewhere for the command than for us.
    """
    texts = dict.fromkeys([place, os.path.normpath(place)])
    if any(step.startswith("/proc/") for text in texts for step in path_steps.steps(text)):
        return [Path("/proc")]
    return list(dict.fromkeys(files.real(Path(text)) for text in texts))


def _is_there(place: Path) -> bool:
    """Whether an argument is a path: it exists, or could exist. A program is no path, nor is ``/re/d``."""
    if _PROGRAM.fullmatch(str(place)) and os.path.isfile(place):
        return False
    return os.path.lexists(place) or (str(place.parent) != place.anchor and os.path.isdir(place.parent))
