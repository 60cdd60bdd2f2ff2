"""Snapshot upkeep: what snapshots take on the disk, and the removal of those that are no longer kept."""

import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.core import retention
from turnkeeper.core.limits import SNAPSHOT_GRACE_S, SNAPSHOT_PRESSED_GRACE_S
from turnkeeper.core.retention import KeptTree
from turnkeeper.model.value import Value
from turnkeeper.workspace import claims, files, git, paths
from turnkeeper.workspace.shadow import DIRECTORY, REFS, ROOT_FILE, ShadowGit, ShadowPlace, remove, session_name

Progress = Callable[[int, int, str], None]

_COLLECTED: Final = "collected"
"""The file that says when snapshots were last removed."""
_CLAIMS_MS: Final = 24 * 3600 * 1000
"""How long it is known which session wrote a file."""
_ROOM: Final = 8
"""The share of the quota that is freed at once where packs are written anew, because that takes long."""
STEPS: Final = 3
"""The steps of a removal: forget, pack, meet the quota."""


class SnapshotUsage(Value):
    """What the snapshots of one place take."""

    project_id: str
    directory: str
    bytes: int
    sessions: int
    snapshots: int


class Removed(Value):
    """What a removal did in one place."""

    directory: str
    bytes_before: int
    bytes_after: int
    snapshots: int
    """How many are no longer kept."""


class Policy(NamedTuple):
    """What is kept. ``protected`` sessions keep all that they have: an undo of theirs is pending."""

    now: int
    retention_days: float
    quota_bytes: int
    protected: Collection[str] = ()


def places(data: Path, project_id: str = "*") -> list[ShadowPlace]:
    """The shadow repositories below a data directory, of one project or of all."""
    found = []
    for file in sorted((data / DIRECTORY).glob(f"{project_id}/*/{ROOT_FILE}")):
        root = Path(os.fsdecode(file.read_bytes()))
        if not file.parent.suffix:
            found.append(ShadowPlace(file.parent, root, git.worktree(root)))
    return found


def forget(environ: Mapping[str, str], sessions: Collection[str]) -> None:
    """Keep nothing for sessions that were removed. The space is freed when snapshots are collected."""
    with suppress(ValueError):  # Without a data directory there are no snapshots.
        for place in places(paths.data(environ)):
            for session_id in sessions:
                shutil.rmtree(place.git_dir / REFS / session_name(session_id), ignore_errors=True)
                claims.forget(place, session_id)


def usage(place: ShadowPlace) -> SnapshotUsage:
    """What the snapshots of one place take."""
    kept = kept_trees(place)
    return SnapshotUsage(
        project_id=place.git_dir.parent.name,
        directory=files.printable(str(place.root)),
        bytes=disk_bytes(place.git_dir) + disk_bytes(_broken(place)),
        sessions=len({one.session for one in kept}),
        snapshots=len(kept),
    )


def disk_bytes(path: Path) -> int:
    """The bytes that a directory takes on the disk."""
    total, waiting = 0, [str(path)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total


def kept_trees(place: ShadowPlace) -> list[KeptTree]:
    """The trees that sessions keep."""
    found = []
    for file in (place.git_dir / REFS).glob("*/*"):
        with suppress(OSError):
            captured = file.stat().st_mtime_ns // 1_000_000
            found.append(KeptTree(session=file.parent.name, tree=file.name, captured=captured))
    return found


def collected_at(place: ShadowPlace) -> int | None:
    """When snapshots of a place were last removed, in milliseconds; None if that is not known."""
    try:
        return int((place.git_dir / _COLLECTED).read_text())
    except (OSError, ValueError):
        return None


def keep(place: ShadowPlace, session_id: str, tree: str, now: int) -> None:
    """Protect a tree by a ref. The time of its file says when the session last captured it."""
    folder = place.git_dir / REFS / session_name(session_id)
    folder.mkdir(parents=True, exist_ok=True)
    file, new = folder / tree, place.git_dir / "ref.new"
    if not file.exists():
        new.write_text(f"{tree}\n")
        new.rename(file)  # A ref that a kill cut short would make git refuse the whole repository.
    os.utime(file, (now / 1000, now / 1000))


def collect(shadow: ShadowGit, policy: Policy, progress: Progress = lambda *_: None) -> Removed:
    """Remove what is not kept, and pack the rest. If the files themselves are gone and nothing is kept, remove all.

    Other places of the project count for its quota, too, but are not touched. Raises GitFailed and GitStopped.
    """
    place = shadow.place
    with shadow.locked():
        before = usage(place)
        progress(0, STEPS, before.directory)
        for left_over in (_broken(place), place.git_dir.with_suffix(".new")):
            remove(left_over)
        _clear_damage(place)
        claims.forget_old(place, (policy.now - _CLAIMS_MS) * 1_000_000)
        gone = _forget_idle(place, policy)
        progress(1, STEPS, before.directory)
        if place.root.exists() or kept_trees(place):
            _sweep(shadow, policy.now - SNAPSHOT_GRACE_S * 1000, packs=True)
            progress(2, STEPS, before.directory)
            gone += _press(shadow, policy, policy.now, packs=True)
            if disk_bytes(place.git_dir.parent) > policy.quota_bytes:
                # What only the index needs is captured again, if the files are still there.
                remove(place.git_dir / "index")
                _sweep(shadow, policy.now, packs=True)
            with files.replacing(place.git_dir / _COLLECTED) as file:
                file.write(b"%d\n" % policy.now)
        else:
            remove(place.git_dir)
        progress(STEPS, STEPS, before.directory)
        after = disk_bytes(place.git_dir)
    return Removed(directory=before.directory, bytes_before=before.bytes, bytes_after=after, snapshots=gone)


def make_room(shadow: ShadowGit, policy: Policy) -> None:
    """Remove idle and then old snapshots until the quota is met. Nothing is packed that was not; the caller locks."""
    _forget_idle(shadow.place, policy)
    if any(_pack_folder(shadow).iterdir()):
        policy = policy._replace(quota_bytes=policy.quota_bytes - policy.quota_bytes // _ROOM)
    _press(shadow, policy, policy.now - SNAPSHOT_PRESSED_GRACE_S * 1000, packs=False)


def _forget_idle(place: ShadowPlace, policy: Policy) -> int:
    kept = kept_trees(place)
    return _forget(place, retention.idle(kept, policy.now, policy.retention_days, protected=policy.protected))


def _press(shadow: ShadowGit, policy: Policy, until: float, *, packs: bool) -> int:
    """Remove what nothing needs; ask which trees are too many, forget them, and ask again; how many were forgotten.

    What is newer than ``until`` stays, with its trees: another process may need it.
    """
    place, gone = shadow.place, 0
    if disk_bytes(place.git_dir.parent) > policy.quota_bytes:
        _sweep(shadow, until, packs=packs)
    while True:
        used, kept = disk_bytes(place.git_dir.parent), kept_trees(place)
        surplus = retention.surplus(kept, used, policy.quota_bytes, until=until, protected=policy.protected)
        if not surplus:
            return gone
        gone += _forget(place, surplus)
        _sweep(shadow, until, packs=packs)


def _forget(place: ShadowPlace, trees: Sequence[KeptTree]) -> int:
    for one in trees:
        folder = place.git_dir / REFS / one.session
        (folder / one.tree).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()
    return len(trees)


def _clear_damage(place: ShadowPlace) -> None:
    """Remove objects that a power cut left empty; the index, which may name them, is made anew by the next capture."""
    empty = [file for file in _loose(place) if not file.stat().st_size]
    for file in empty:
        file.unlink()
    if empty:
        remove(place.git_dir / "index")


def _sweep(shadow: ShadowGit, until: float, *, packs: bool) -> None:
    """Remove the objects that nothing needs, of those that are not in a pack only what is older than ``until``.

    ``packs`` puts all that are needed in one pack. Borrowed objects are not looked at.
    """
    needed = _needed(shadow)
    if packs:
        _pack(shadow, needed)
    elif (packed := _packed(shadow)) - needed:
        _pack(shadow, packed & needed)
    for file in _loose(shadow.place):
        is_needed = file.parent.name + file.name in needed
        if packs if is_needed else file.stat().st_mtime * 1000 < until:
            file.unlink()


def _pack(shadow: ShadowGit, names: Collection[str]) -> None:
    """Put these objects in one pack. The old packs go after the new one is there, so a kill loses nothing."""
    folder = _pack_folder(shadow)
    old = list(folder.iterdir())
    given = b"".join(os.fsencode(one) + b"\n" for one in names)
    new = os.fsdecode(shadow.write("pack-objects", "-q", str(folder / "pack"), given=given).strip()) or None
    # Without its index git does not look for a pack: it goes first.
    for file in sorted(old, key=lambda file: file.suffix != ".idx"):
        if new is None or new not in file.name:
            file.unlink(missing_ok=True)


def _packed(shadow: ShadowGit) -> set[str]:
    """The objects in packs."""
    lists = (shadow.write("show-index", given=file.read_bytes()) for file in _pack_folder(shadow).glob("*.idx"))
    return {line.split()[1].decode("ascii") for listing in lists for line in listing.splitlines()}


def _pack_folder(shadow: ShadowGit) -> Path:
    return shadow.place.stored / "pack"


def _needed(shadow: ShadowGit) -> set[str]:
    """The stored objects of all trees that are kept, and of the index, on which the next capture builds."""
    asked = ("--objects", "--no-object-names", "--missing=allow-any", "--indexed-objects", f"--glob={REFS}/*")
    return set(shadow.write("rev-list", *asked).decode("ascii").split())


def _loose(place: ShadowPlace) -> Iterator[Path]:
    """The files that hold one object each, and what was left over while such a file was written."""
    return (file for folder in place.stored.glob("[0-9a-f][0-9a-f]") for file in folder.iterdir())


def _broken(place: ShadowPlace) -> Path:
    return place.git_dir.with_suffix(".broken")
