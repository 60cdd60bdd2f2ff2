"""Seed: the first index of a shadow repository, made from the index of the project's own repository.

A file that the project's repository stores as it is on the disk need not be read again. Left out are files that git
changes on their way into that repository (filters, line ends, encodings), because a snapshot holds the bytes of the
disk, the commits of submodules, because nested repositories are projects of their own, and files that a sparse
checkout leaves out, because they are not there.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace import files, git, kept_permissions
from turnkeeper.workspace.git_work import GitFailed, GitWork
from turnkeeper.workspace.shadow import ShadowGit, ShadowPlace

_IGNORE_BYTES_MAX: Final = 1024 * 1024
_ALWAYS: Final = (b"filter", b"ident", b"working-tree-encoding")
_LINE_ENDS: Final = (b"text", b"crlf", b"eol")
_UNSET: Final = (b"unspecified", b"unset")


class SourceSettings(NamedTuple):
    """The settings of a project's repository that concern its snapshots."""

    object_format: str = "sha1"
    converts_line_ends: bool = False
    excludes_file: Path | None = None


def settings(place: ShadowPlace, environ: Mapping[str, str], work: GitWork) -> SourceSettings:
    """The settings of the project's repository that concern its snapshots; the defaults if git fails."""
    given: dict[bytes, bytes] = {}
    if place.source is not None:
        with suppress(GitFailed):
            lines = _asked(place, environ, work, "config", "--list", "-z").split(b"\0")
            given = dict(line.partition(b"\n")[::2] for line in lines)
    return SourceSettings(
        object_format=given.get(b"extensions.objectformat", b"sha1").decode("ascii", "replace").lower(),
        converts_line_ends=given.get(b"core.autocrlf", b"false").lower() not in (b"false", b"no", b"off", b"0"),
        excludes_file=_excludes_file(given.get(b"core.excludesfile"), place.root, environ),
    )


def stamps(place: ShadowPlace, environ: Mapping[str, str]) -> list[tuple[int, ...] | None]:
    """The stamps of the files that the settings come from, which change with them."""
    home = environ.get("HOME", "")
    user = environ.get("GIT_CONFIG_GLOBAL") or f"{home}/.gitconfig"
    shared = f"{environ.get('XDG_CONFIG_HOME') or f'{home}/.config'}/git/config"
    watched = [user, shared, "/etc/gitconfig"]
    if place.source is not None:
        watched += [f"{place.source.common}/config", f"{place.source.git_dir}/config.worktree"]
    return [files.stamp(file) for file in watched]


def ignore_rules(place: ShadowPlace, found: SourceSettings) -> bytes:
    """The rules for ignored files from outside the project, in increasing order of precedence."""
    sources = [found.excludes_file, place.source.common / "info" / "exclude" if place.source else None]
    return b"".join(_content(file) + b"\n" for file in sources if file is not None)


def tracked(place: ShadowPlace, environ: Mapping[str, str], work: GitWork, *arguments: str) -> set[bytes]:
    """The names that the project's repository tracks, as ``ls-files`` selects them; none if git cannot say."""
    if place.source is not None:
        with suppress(GitFailed):
            return {name for name in _asked(place, environ, work, "ls-files", "-z", *arguments).split(b"\0") if name}
    return set()


def seed(shadow: ShadowGit, found: SourceSettings) -> None:
    """Fill the index of a new shadow repository. Without a usable index of the project it stays empty."""
    source = shadow.place.source
    index = shadow.place.git_dir / "index"
    if source is None:
        return
    try:
        _copy(source.git_dir / "index", index)
        entries = list(_entries(shadow.read("ls-files", "-s", "-v", "-z")))
        kept = [entry for entry in entries if entry.mode != b"160000" and not entry.is_skipped]
        gone = {entry.name for entry in entries} - {entry.name for entry in kept}
        gone |= _converted(shadow, kept, found)
        _update(shadow, gone, "--force-remove")
        # Git would not look at these files again, however they change.
        _update(shadow, {entry.name for entry in kept if entry.tag.islower()} - gone, "--no-assume-unchanged")
        kept_permissions.note(shadow.place, dict(_modes(shadow.place, kept)))
    except (OSError, GitFailed):
        index.unlink(missing_ok=True)


def _modes(place: ShadowPlace, entries: "list[_Entry]") -> Iterator[tuple[bytes, int]]:
    root = os.fsencode(place.root) + b"/"
    for entry in entries:
        try:
            mode = os.lstat(root + entry.name).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode):
            yield entry.name, mode


class _Entry(NamedTuple):
    tag: bytes
    mode: bytes
    blob: bytes
    name: bytes

    @property
    def is_skipped(self) -> bool:
        """Whether git does not look at the disk for this file: it is outside of a sparse checkout."""
        return self.tag in (b"S", b"s")


def _entries(listing: bytes) -> Iterator[_Entry]:
    for line in listing.split(b"\0"):
        if line:
            facts, _, name = line.partition(b"\t")
            tag, mode, blob, _ = facts.split(b" ")
            yield _Entry(tag, mode, blob, name)


def _copy(file: Path, target: Path) -> None:
    """Copy an index with its time, by which git knows which files may have changed unnoticed since."""
    found = os.stat(file)
    target.write_bytes(file.read_bytes())
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def _update(shadow: ShadowGit, names: set[bytes], how: str) -> None:
    if names:
        shadow.write("update-index", "-z", how, "--stdin", given=b"".join(name + b"\0" for name in sorted(names)))


def _converted(shadow: ShadowGit, entries: list[_Entry], found: SourceSettings) -> set[bytes]:
    """The files whose bytes on the disk are, or may be, others than those that the project's repository stores."""
    if not entries:
        return set()
    names = b"".join(entry.name + b"\0" for entry in entries)
    asked = [name.decode() for name in (*_ALWAYS, *_LINE_ENDS)]
    answers = _asked(
        shadow.place, shadow.environ, shadow.work, "check-attr", "-z", "--stdin", *asked, given=names
    ).split(b"\0")
    given: dict[bytes, dict[bytes, bytes]] = {}
    for name, attribute, value in zip(answers[::3], answers[1::3], answers[2::3], strict=False):
        if value != b"unspecified":
            given.setdefault(name, {})[attribute] = value
    result = {name for name, values in given.items() if any(values.get(one, b"unset") != b"unset" for one in _ALWAYS)}
    suspects = [
        entry
        for entry in entries
        if entry.name not in result and _has_line_ends(given.get(entry.name, {}), found.converts_line_ends)
    ]
    return result | _of_other_size(shadow, suspects)


def _has_line_ends(values: Mapping[bytes, bytes], by_default: bool) -> bool:
    """Whether git may convert the line ends of a file with these attributes."""
    said = [values[one] for one in _LINE_ENDS if one in values]
    return any(value not in _UNSET for value in said) if said else by_default


def _of_other_size(shadow: ShadowGit, entries: list[_Entry]) -> set[bytes]:
    """The files of another size than their blobs. Removing carriage returns makes a blob smaller than its file."""
    if not entries:
        return set()
    blobs = b"".join(entry.blob + b"\n" for entry in entries)
    sizes = shadow.read("cat-file", "--batch-check=%(objectsize)", given=blobs).splitlines()
    root = os.fsencode(shadow.place.root)
    result = set()
    for entry, size in zip(entries, sizes, strict=True):
        with suppress(OSError):
            if size != str(os.lstat(os.path.join(root, entry.name)).st_size).encode():
                result.add(entry.name)
    return result


def _asked(
    place: ShadowPlace, environ: Mapping[str, str], work: GitWork, *arguments: str, given: bytes | None = None
) -> bytes:
    """The output of a git command in the project's own repository."""
    variables = git.environment(environ) | {"GIT_LITERAL_PATHSPECS": "1"}
    with work.started(arguments, place.root, variables, has_input=given is not None) as process:
        return work.finish(process, given)


def _excludes_file(given: bytes | None, root: Path, environ: Mapping[str, str]) -> Path | None:
    home = environ.get("HOME", "")
    if given is None:
        return Path(environ.get("XDG_CONFIG_HOME") or f"{home}/.config", "git", "ignore")
    path = os.fsdecode(given)
    return Path(home, path[2:]) if path.startswith("~/") else root / path if path else None


def _content(file: Path) -> bytes:
    try:
        return files.read_bytes(file, _IGNORE_BYTES_MAX)
    except (OSError, Invalid):
        return b""
