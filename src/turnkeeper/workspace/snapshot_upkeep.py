"""Snapshot upkeep: the disk usage of snapshots, and the removal of those that are no longer kept."""

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
"""The file with the time of the last removal."""
_CLAIMS_MS: Final = 24 * 3600 * 1000
"""Time for which claims are kept."""
_ROOM: Final = 8
"""Divisor of the quota: this share is freed at once if packs must be rewritten, because that is slow."""
STEPS: Final = 3
"""The steps of a removal: forget, pack, meet the quota."""


class SnapshotUsage(Value):
    """The disk usage of the snapshots of one place."""

    project_id: str
    directory: str
    bytes: int
    sessions: int
    snapshots: int


class Removed(Value):
    """The result of removing snapshots in one place."""

    directory: str
    bytes_before: int
    bytes_after: int
    snapshots: int
    """The number of removed snapshots."""


class Policy(NamedTuple):
    """The rules for keeping snapshots. Those of ``protected`` sessions are all kept: their undo is pending."""

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
    """Stop keeping the snapshots of removed sessions. The space is freed when snapshots are collected."""
    with suppress(ValueError):  # Without a data directory there are no snapshots.
        for place in places(paths.data(environ)):
            for session_id in sessions:
                shutil.rmtree(place.git_dir / REFS / session_name(session_id), ignore_errors=True)
                claims.forget(place, session_id)


def usage(place: ShadowPlace) -> SnapshotUsage:
    """The disk usage of the snapshots of one place."""
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
    """The time of the last removal in a place, in milliseconds; None if it is not known."""
    try:
        return int((place.git_dir / _COLLECTED).read_text())
    except (OSError, ValueError):
        return None


def keep(place: ShadowPlace, session_id: str, tree: str, now: int) -> None:
    """Protect a tree by a ref. The time of its file is that of the session's last capture of the tree."""
    folder = place.git_dir / REFS / session_name(session_id)
    folder.mkdir(parents=True, exist_ok=True)
    file, new = folder / tree, place.git_dir / "ref.new"
    if not file.exists():
        new.write_text(f"{tree}\n")
        new.rename(file)  # A ref that a kill cut short would make git refuse the whole repository.
    os.utime(file, (now / 1000, now / 1000))


def collect(shadow: ShadowGit, policy: Policy, progress: Progress = lambda *_: None) -> Removed:
    """Remove objects that are not kept, and pack the rest. If the files are gone and no snapshot is kept, remove all.

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
                # Objects that only the index needs are captured again if the files still exist.
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
    """Remove idle and then old snapshots until the quota is met. Loose objects stay loose; the caller locks."""
    _forget_idle(shadow.place, policy)
    if any(_pack_folder(shadow).iterdir()):
        policy = policy._replace(quota_bytes=policy.quota_bytes - policy.quota_bytes // _ROOM)
    _press(shadow, policy, policy.now - SNAPSHOT_PRESSED_GRACE_S * 1000, packs=False)


def _forget_idle(place: ShadowPlace, policy: Policy) -> int:
    kept = kept_trees(place)
    return _forget(place, retention.idle(kept, policy.now, policy.retention_days, protected=policy.protected))


def _press(shadow: ShadowGit, policy: Policy, until: float, *, packs: bool) -> int:
    """Remove surplus trees and unneeded objects until the quota is met; returns the number of removed trees.

    Trees and objects newer than ``until`` are kept: another process may need them.
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
    """Remove objects that a power cut left empty, and the index, which may name them; the next capture rebuilds it."""
    empty = [file for file in _loose(place) if not file.stat().st_size]
    for file in empty:
        file.unlink()
    if empty:
        remove(place.git_dir / "index")


def _sweep(shadow: ShadowGit, until: float, *, packs: bool) -> None:
    """Remove unneeded objects; of those that are not in a pack only the ones older than ``until``.

    ``packs`` puts all needed objects in one pack. Borrowed objects are not touched.
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
    """Put these objects in one pack. Old packs are removed only after that, so a kill loses nothing."""
    folder = _pack_folder(shadow)
    old = list(folder.iterdir())
    given = b"".join(os.fsencode(one) + b"\n" for one in names)
    new = os.fsdecode(shadow.write("pack-objects", "-q", str(folder / "pack"), given=given).strip()) or None
    # The index of a pack is removed first: git ignores a pack without one.
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
    """The files with one object each, and leftover temporary files of such objects."""
    return (file for folder in place.stored.glob("[0-9a-f][0-9a-f]") for file in folder.iterdir())


def _broken(place: ShadowPlace) -> Path:
    return place.git_dir.with_suffix(".broken")
