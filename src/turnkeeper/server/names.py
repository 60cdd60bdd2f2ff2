"""Syntax of ids and directory names in requests: an invalid one is refused before it reaches the store."""

import re
from typing import Annotated, Final, TypeAlias

from msgspec import Meta

SessionName: TypeAlias = Annotated[str, Meta(pattern="^ses[A-Za-z0-9_-]{0,64}$")]
MessageName: TypeAlias = Annotated[str, Meta(pattern="^msg[A-Za-z0-9_-]{0,64}$")]
ProjectName: TypeAlias = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]

DIRECTORY_BYTES_MAX: Final = 4095
SEGMENT_BYTES_MAX: Final = 255
"""Limits of Linux and macOS for a path, and for one segment of it."""

_WORD: Final = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_FRAGMENT: Final = re.compile(r"(?:#|%(?:25)*23).*", re.DOTALL)
_PREFIXES: Final = {"messageID": "msg", "partID": "prt", "permissionID": "per"}


def masked(path: str) -> str:
    """A path, or a part of one, to log or to answer. The fragment of a shared link is its secret.

    A browser does not send the fragment, but a client that encodes the ``#`` does, perhaps several times encoded.
    """
    return _FRAGMENT.sub("#***", path)


def fault(name: str, value: str, operation: str) -> str | None:
    """Why a value is no valid id for this path variable; None if it is. Whether the id exists is not checked."""
    if not _WORD.fullmatch(value):
        return f"{masked(value)!r} cannot be a {name}"
    # A requestID is that of a question or of a permission request.
    asked = "que" if "question" in operation else "per"
    prefix = asked if name == "requestID" else _PREFIXES.get(name, "")
    return None if value.startswith(prefix) else f"a {name} begins with {prefix!r}; {value!r} does not"


def directory_fault(name: str) -> str | None:
    """Why no directory can have this name; None if one can. Whether it exists is not checked."""
    if "\0" in name:
        return "the name of a directory has no NUL in it"
    try:
        written = name.encode()
    except UnicodeEncodeError:
        return "the name of a directory holds half a character; send whole ones"
    if len(written) > DIRECTORY_BYTES_MAX or any(len(one) > SEGMENT_BYTES_MAX for one in written.split(b"/")):
        return f"the name of a directory is too long: {len(written)} bytes"
    return None
