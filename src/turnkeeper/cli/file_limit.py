"""The limit of open files: a process with too few of them fails at any place, even where it imports a module."""

import resource
from typing import Final

from turnkeeper.model.refusal import Forbidden

FILES_MIN: Final = 64
"""What a process that runs sessions needs: some twenty for itself, and the rest for programs and connections."""


def require_files() -> None:
    """Refuse to run sessions with too few files. Raises Forbidden."""
    if 0 <= allowed() < FILES_MIN:
        raise Forbidden(
            f"this process may have {allowed()} files open, and needs at least {FILES_MIN}; "
            "raise the limit, for example with `ulimit -n 1024`"
        )


def advice() -> str:
    """What to do when all files are in use."""
    return (
        f"no further file can be opened: this process may have {allowed()} at once; raise the limit, for example with "
        "`ulimit -n 1024`"
    )


def allowed() -> int:
    """The number of files that this process may have open; negative without a limit."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft
