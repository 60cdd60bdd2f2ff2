"""Redaction: the secrets that are known before a text is searched, and the report of those that were masked."""

from collections.abc import Mapping

from turnkeeper.model.value import Value


class KnownSecret(Value):
    """A secret that is known by its value. ``mask`` takes its place; by default its kind and a number."""

    kind: str
    value: str
    mask: str | None = None

    def __repr__(self) -> str:
        return f"KnownSecret(kind={self.kind!r})"


class MaskedKind(Value):
    """The masked secrets of one kind: their count, the count of different ones, and the counts by place."""

    kind: str
    count: int
    distinct: int
    places: Mapping[str, int] = {}


class RedactionReport(Value):
    """The report of a redaction, without the secrets themselves."""

    masked: tuple[MaskedKind, ...] = ()
    doubtful: int = 0
    """Long random words that were left as they are. They are as often hashes as secrets: look at them."""
    doubtful_places: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of masked places."""
        return sum(one.count for one in self.masked)
