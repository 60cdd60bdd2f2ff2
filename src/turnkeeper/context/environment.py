"""The environment component: where the session works and on what machine."""

import platform

from turnkeeper.workspace.project import ProjectPlace


def environment(place: ProjectPlace) -> str:
    """What a model must know of its surroundings."""
    return "\n".join(
        [
            "<env>",
            f"  Working directory: {place.directory}",
            f"  Project root: {place.worktree}",
            f"  Is a git repository: {'yes' if place.vcs else 'no'}",
            f"  Platform: {platform.system().lower()}",
            "</env>",
        ]
    )
