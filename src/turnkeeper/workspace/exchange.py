"""Exchange: an atomic exchange of the files of two names in a folder."""

import ctypes
import errno
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Final, TypeAlias

Exchange: TypeAlias = Callable[[str, str, int], bool]
"""Exchanges the files of two names of an open folder; False if the system or the file system cannot."""

_FUNCTION: Final = "renameatx_np" if sys.platform == "darwin" else "renameat2"
_SWAP: Final = ctypes.c_uint(2)
"""The flag RENAME_EXCHANGE of Linux, and RENAME_SWAP of macOS."""
_UNABLE: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.ENOTSUP})


def exchange(one: str, other: str, parent: int) -> bool:
    """Exchange the files of two names. Raises OSError if one of them is missing."""
    rename = _rename()
    if rename is None:
        return False
    if rename(parent, os.fsencode(one), parent, os.fsencode(other), _SWAP) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNABLE:
        return False
    raise OSError(number, os.strerror(number), one)


@cache
def _rename() -> "Callable[..., int] | None":
    found: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), _FUNCTION, None)
    return found
