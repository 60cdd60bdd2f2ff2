"""Commands about the snapshots of files: what they take on the disk, and the removal of old ones."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.failures import OK, REFUSED
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer_items, note
from turnkeeper.cli.progress import progress
from turnkeeper.cli.screen import Column, Screen, plural, size, table
from turnkeeper.model.refusal import Invalid, Refusal

if TYPE_CHECKING:
    from turnkeeper.api import Turnkeeper
    from turnkeeper.workspace.shadow import ShadowPlace
    from turnkeeper.workspace.snapshot_upkeep import Removed, SnapshotUsage
    from turnkeeper.workspace.snapshots import ShadowRepository

All = Annotated[bool, Parameter(name=("--all", "-a"), help="Those of every project, not of this one alone.")]


async def du(*, all_: All = False, options: Options) -> None:
    """Show what the snapshots of files take on the disk.

    A snapshot is taken before and after each step of a model, so that its changes
    can be shown and undone. Files that did not change are stored once. With --json
    the answer is {"items": [{"projectID", "directory", "bytes", "sessions",
    "snapshots"}], "bytes"}.

    For example:
      turnkeeper snapshot du
      turnkeeper snapshot du --all --json | jq .bytes
    """
    from turnkeeper.workspace import snapshot_upkeep

    found = [snapshot_upkeep.usage(place) for place in await _places(options, all_)]
    total = sum(one.bytes for one in found)
    answer_items(options, found, lambda screen: _usage(screen, found), empty="There are no snapshots.", bytes=total)


async def gc(*, all_: All = False, options: Options) -> int:
    """Remove snapshots that are no longer kept, and pack the others.

    The snapshots of a session are kept for 7 days after its last one, and the
    oldest go first when a project has more than 2 GiB; `snapshot` in the
    configuration sets both. A session with a pending undo keeps its snapshots.
    Turns that run meanwhile may go without a snapshot. With --json the answer is
    {"items": [{"directory", "bytesBefore", "bytesAfter", "snapshots"}], "bytes"};
    "bytes" is what was freed. Snapshots that cannot be reached are named, and the
    exit code is then 1.

    For example:
      turnkeeper snapshot gc
      turnkeeper snapshot gc --all
    """
    places = await _places(options, all_)
    removed: list[Removed] = []
    refused: list[Refusal] = []
    async with options.read() as tk:
        with progress("Removing snapshots") as moved:
            for number, place in enumerate(places):

                def tell(done: int, of: int, what: str, number: int = number) -> None:
                    moved(number * of + done, len(places) * of, what)

                try:
                    removed.append(await _shadow(options, place, tk).collect(progress=tell))
                except Refusal as refusal:  # Those of the other directories are no reason to stop.
                    refused.append(refusal)
    if refused and not removed:
        raise refused[0]
    freed = sum(one.bytes_before - one.bytes_after for one in removed)
    answer_items(
        options, removed, lambda screen: _removed(screen, removed), empty="There are no snapshots.", bytes=freed
    )
    for one in refused:
        note(f"Left as they are: {one}")
    return REFUSED if refused else OK


async def _places(options: Options, all_: bool) -> "list[ShadowPlace]":
    """The shadow repositories of the working directory's project, or all."""
    from turnkeeper.workspace import paths, snapshot_upkeep
    from turnkeeper.workspace.project import GLOBAL, identify

    try:
        data = paths.data(options.environ)
    except ValueError as error:
        raise Invalid(str(error)) from error
    if all_:
        return snapshot_upkeep.places(data)
    here = await identify(Path.cwd(), environ=options.environ)
    # Directories without commits are one project, and have nothing to do with each other. A directory becomes another
    # project by its first commit, and its older snapshots are still used.
    found = [] if here.id == GLOBAL else snapshot_upkeep.places(data, here.id)
    return found + [place for place in snapshot_upkeep.places(data) if place.root == here.top and place not in found]


def _shadow(options: Options, place: "ShadowPlace", tk: "Turnkeeper") -> "ShadowRepository":
    """A shadow repository with the limits that its project configures. The store knows which undos are pending."""
    from turnkeeper.core import retention
    from turnkeeper.mint import Mint
    from turnkeeper.run.snapshot_collection import with_pending_undo
    from turnkeeper.workspace import config
    from turnkeeper.workspace.snapshots import ShadowRepository

    found = ShadowRepository(place, options.environ, Mint().now, partial(with_pending_undo, tk.store))
    # Snapshots that were taken before they were switched off are kept as long as others.
    found.limits = retention.limits(config.load(place.root, place.root, options.environ).config) or found.limits
    return found


def _usage(screen: Screen, found: "Sequence[SnapshotUsage]") -> str:
    rows = table(
        screen,
        Column("ON DISK", [size(one.bytes) for one in found]),
        Column("SNAPSHOTS", [f"{one.snapshots:,}" for one in found]),
        Column("SESSIONS", [f"{one.sessions:,}" for one in found]),
        Column("DIRECTORY", [screen.path(one.directory) for one in found], ("cyan",), least=20, keep_end=True),
    )
    total = f"{size(sum(one.bytes for one in found))} in all"
    return f"{rows}\n{screen.paint(total, 'dim')}" if len(found) > 1 else rows


def _removed(screen: Screen, removed: "Sequence[Removed]") -> str:
    return "\n".join(
        f"{screen.path(one.directory)}: {plural(one.snapshots, 'snapshot')} removed,"
        f" {size(one.bytes_before)} → {size(one.bytes_after)}"
        for one in removed
    )
