"""Snapshots: the shadow repositories of projects, and the reasons why a project has none."""

import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from turnkeeper.core import retention
from turnkeeper.model.config import Config
from turnkeeper.workspace import paths
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.shadow import ShadowPlace
from turnkeeper.workspace.shadow_repository import Protected, ShadowRepository, no_undo_pends
from turnkeeper.workspace.tree_listing import TreeEntry

log = logging.getLogger(__name__)

__all__ = ["ShadowRepository", "Snapshots", "TreeEntry"]


class Snapshots:
    """The shadow repositories of one process. ``now`` is in milliseconds."""

    def __init__(
        self,
        environ: Mapping[str, str],
        now: Callable[[], int],
        protected: Protected = no_undo_pends,
        store: tuple[Path, ...] = (),
    ) -> None:
        """``store`` are the files or folders in which the sessions are stored: no snapshot has them."""
        self._environ, self._now, self._protected, self._store = environ, now, protected, store
        self._known: dict[Path, ShadowRepository] = {}
        self._warned: set[str] = set()

    @property
    def opened(self) -> tuple[ShadowRepository, ...]:
        """The shadow repositories that were opened so far."""
        return tuple(self._known.values())

    async def of(self, place: ProjectPlace, config: Config) -> "ShadowRepository | None":
        """The shadow repository of a project; None if snapshots are switched off, or impossible there."""
        limits = retention.limits(config)
        if limits is None:
            return None
        root = place.top
        reason = self._reason_against(root)
        if reason is not None:
            self._warn(f"no snapshots of {str(root)!r}: {reason}")
            return None
        shadow = ShadowPlace.of(paths.data(self._environ), place.id, root, self._store)
        known = self._known.get(shadow.git_dir)
        if known is None or known.place.source != shadow.source:
            known = self._known[shadow.git_dir] = ShadowRepository(shadow, self._environ, self._now, self._protected)
        known.limits = limits
        return known

    def _reason_against(self, root: Path) -> str | None:
        home = self._environ.get("HOME")
        try:
            paths.data(self._environ)
        except ValueError as error:
            return str(error)
        if shutil.which("git", path=self._environ.get("PATH")) is None:
            return "git is not installed; without it changes of files are neither shown nor undone"
        if root == Path(root.anchor) or (home and Path(os.path.realpath(home)).is_relative_to(root)):
            return "it is, or contains, the home directory; start in the directory of a project"
        if any(os.path.realpath(place) == os.path.realpath(root) for place in self._store):
            return "the store lies in this very directory; give the store a directory of its own"
        return None

    def _warn(self, text: str) -> None:
        if text not in self._warned:
            self._warned.add(text)
            log.warning("%s", text)
