"""Strand: an immutable sequence that shares its items with the shorter sequences it was made from.

Appending to a history of thousands of messages, or comparing it with an earlier one, touches the newest items one by
one and all others in tuples of LINK items.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar, overload

LINK: Final = 64
"""Items in one shared tuple. Appending costs O(LINK + n / LINK)."""

T = TypeVar("T")


class Strand(Sequence[T]):
    """Items in order: tuples of LINK items each, and the remaining items."""

    __slots__ = ("_links", "_rest")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._links: tuple[tuple[T, ...], ...] = ()
        self._rest: tuple[T, ...] = ()
        whole = tuple(items)
        if len(whole) >= LINK:
            self._links, self._rest = _linked(whole)
        else:
            self._rest = whole

    @classmethod
    def of(cls, items: "Iterable[T]") -> "Strand[T]":
        """The items as a Strand; a Strand is returned as it is."""
        return items if isinstance(items, cls) else cls(items)

    def __len__(self) -> int:
        return len(self._links) * LINK + len(self._rest)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            return self._some(start, stop) if step == 1 else tuple(self)[place]
        linked = len(self._links) * LINK
        place = place + linked + len(self._rest) if place < 0 else place
        if place >= linked:
            return self._rest[place - linked]
        if place < 0:
            raise IndexError("there is nothing before the first item")
        return self._links[place // LINK][place % LINK]

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(self._links), self._rest)

    def __reversed__(self) -> Iterator[T]:
        return chain(reversed(self._rest), chain.from_iterable(map(reversed, reversed(self._links))))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Strand):
            return self._rest == other._rest and self._links == other._links
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Strand({tuple(self)!r})"

    def begins_with(self, other: "Strand[T]") -> bool:
        """Whether the first items equal those of another Strand. Shared tuples are compared by identity."""
        count = len(other._links)
        rest = other._rest
        return (
            len(self) >= len(other)
            and self._links[:count] == other._links
            and self._some(count * LINK, count * LINK + len(rest)) == rest
        )

    def plus(self, items: "Iterable[T]") -> "Strand[T]":
        """A Strand with items appended."""
        rest = (*self._rest, *items)
        if len(rest) < LINK:
            return self if len(rest) == len(self._rest) else _strand(self._links, rest)
        links, rest = _linked(rest)
        return _strand(self._links + links, rest)

    def first(self, count: int) -> "Strand[T]":
        """A Strand of the first ``count`` items."""
        links, over = divmod(count, LINK)
        rest = self._links[links] if links < len(self._links) else self._rest
        return self if count >= len(self) else _strand(self._links[:links], rest[:over])

    def replaced(self, place: int, item: T) -> "Strand[T]":
        """A Strand with the item at one index replaced."""
        link, nth = divmod(place, LINK)
        if link == len(self._links):
            return _strand(self._links, (*self._rest[:nth], item, *self._rest[nth + 1 :]))
        old = self._links[link]
        new = (*old[:nth], item, *old[nth + 1 :])
        return _strand((*self._links[:link], new, *self._links[link + 1 :]), self._rest)

    def inserted(self, place: int, item: T) -> "Strand[T]":
        """A Strand with an item inserted before an index."""
        return self.first(place).plus((item, *self[place:]))

    def _some(self, start: int, stop: int) -> tuple[T, ...]:
        linked = len(self._links) * LINK
        if start >= linked:
            return self._rest[start - linked : max(start, stop) - linked]
        link = start // LINK
        until = -(-min(stop, linked) // LINK)
        held = tuple(chain(chain.from_iterable(self._links[link:until]), self._rest if stop > linked else ()))
        return held[start - link * LINK : max(start, stop) - link * LINK]


def _linked(items: tuple[T, ...]) -> tuple[tuple[tuple[T, ...], ...], tuple[T, ...]]:
    """Items as tuples of LINK, and the remaining items."""
    whole = len(items) - len(items) % LINK
    return tuple(items[begin : begin + LINK] for begin in range(0, whole, LINK)), items[whole:]


def _strand(links: tuple[tuple[T, ...], ...], rest: tuple[T, ...]) -> Strand[T]:
    strand = Strand[T].__new__(Strand)
    strand._links, strand._rest = links, rest
    return strand
