"""The file tree component: the files of the project when an epoch begins. It has no updates."""

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.core.limits import COMPONENT_LOAD_S, TREE_FILES_MAX
from turnkeeper.model.context import Absent, Loaded, Sample, Unavailable
from turnkeeper.workspace import git

HEAD = "Files of the project when this was written; look again before you rely on one:"


async def load(sampling: Sampling) -> Sample:
    """The first files of the project, by path; absent outside of a repository, where a tree may be very large.

    The update text is empty, because a new or deleted file is no reason to send the tree again.
    """
    if not sampling.begins:
        return Unavailable(reason="drawn once, when an epoch begins")
    if sampling.place.vcs is None:
        return Absent()
    found = await git.listed(sampling.place.directory, sampling.environ, COMPONENT_LOAD_S)
    if not found:
        return Absent()
    more = ["  ... and more"] if len(found) > TREE_FILES_MAX else []
    lines = [f"  {path}" for path in found[:TREE_FILES_MAX]]
    return Loaded(baseline="\n".join([HEAD, "<files>", *lines, *more, "</files>"]), update="")


FILES = ContextComponent("core/files", load, waits="begins")
