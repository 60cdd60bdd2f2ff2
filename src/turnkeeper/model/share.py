"""Share: the content that a link shows of a session, and the stored record of the link, without its secret."""

from typing import Final, Literal, TypeAlias

from turnkeeper.model.redaction import KnownSecret, RedactionReport
from turnkeeper.model.value import Value

ShareItem: TypeAlias = Literal["messages", "tools", "diffs", "todos", "reasoning", "outputs", "files", "usage"]
"""The kinds of content. ``tools`` are calls with bounded outputs, ``outputs`` whole ones, ``files`` attachments."""

INCLUDED: Final[tuple[ShareItem, ...]] = ("messages", "tools", "diffs", "todos")
"""The default content of a link."""


class RemoteShare(Value):
    """A share on another host. Its secret is stored, because changes and the removal must prove it."""

    base: str
    id: str
    secret: str

    def __repr__(self) -> str:
        return f"RemoteShare(base={self.base!r})"


class HostedShare(Value):
    """A link as it is stored: the hash of its secret, its content, and its expiry (milliseconds since 1970)."""

    id: str
    secret_hash: str
    include: tuple[ShareItem, ...]
    created: int
    expires: int | None = None
    masks: tuple[KnownSecret, ...] = ()
    """Secrets in the session that the process knew which made the link: a server may not have them in its environment.

    They are in the log of the session anyway.
    """
    remote: RemoteShare | None = None


class ShareLink(Value):
    """A new link. ``secret`` is returned here only; ``url`` has it after a ``#``, a part that no server is sent."""

    id: str
    session_id: str
    secret: str
    url: str
    include: tuple[ShareItem, ...]
    expires: int | None = None
    report: RedactionReport = RedactionReport()

    def __repr__(self) -> str:
        return f"ShareLink(session_id={self.session_id!r})"
