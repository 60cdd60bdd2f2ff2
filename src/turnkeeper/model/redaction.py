"""Redaction: what is known of secrets before a text is searched, and what was masked."""

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
    """Secrets of one kind that were masked: how often, how many different ones, and how often at which place."""

    kind: str
    count: int
    distinct: int
    places: Mapping[str, int] = {}


class RedactionReport(Value):
    """What a redaction masked, without the secrets themselves."""

    masked: tuple[MaskedKind, ...] = ()
    doubtful: int = 0
    """Long random words that were left as they are. They are as often hashes as secrets: look at them."""
    doubtful_places: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many places were masked."""
        return sum(one.count for one in self.masked)
