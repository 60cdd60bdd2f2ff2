"""An immutable sequence that shares its items with the shorter sequences it was made from.

Appending to a history of thousands of messages, or comparing it with an earlier one, touches the newest items one by
one and all others in tuples of CHUNK items.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final, TypeVar, overload

CHUNK: Final = 64
"""Items in one shared tuple. Appending costs O(CHUNK + n / CHUNK)."""

T = TypeVar("T")


class PersistentList(Sequence[T]):
    """Items in order: tuples of CHUNK items each, and the remaining items."""

    __slots__ = ("_chunks", "_rest")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._chunks: tuple[tuple[T, ...], ...] = ()
        self._rest: tuple[T, ...] = ()
        whole = tuple(items)
        if len(whole) >= CHUNK:
            self._chunks, self._rest = _linked(whole)
        else:
            self._rest = whole

    @classmethod
    def of(cls, items: "Iterable[T]") -> "PersistentList[T]":
        """The items as a PersistentList; a PersistentList is returned as it is."""
        return items if isinstance(items, cls) else cls(items)

    def __len__(self) -> int:
        return len(self._chunks) * CHUNK + len(self._rest)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            return self._some(start, stop) if step == 1 else tuple(self)[place]
        linked = len(self._chunks) * CHUNK
        place = place + linked + len(self._rest) if place < 0 else place
        if place >= linked:
            return self._rest[place - linked]
        if place < 0:
            raise IndexError("there is nothing before the first item")
        return self._chunks[place // CHUNK][place % CHUNK]

    def __iter__(self) -> Iterator[T]:
        return chain(chain.from_iterable(self._chunks), self._rest)

    def __reversed__(self) -> Iterator[T]:
        return chain(reversed(self._rest), chain.from_iterable(map(reversed, reversed(self._chunks))))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PersistentList):
            return self._rest == other._rest and self._chunks == other._chunks
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"PersistentList({tuple(self)!r})"

    def begins_with(self, other: "PersistentList[T]") -> bool:
        """Whether the first items equal those of another PersistentList. Shared tuples are compared by identity."""
        count = len(other._chunks)
        rest = other._rest
        return (
            len(self) >= len(other)
            and self._chunks[:count] == other._chunks
            and self._some(count * CHUNK, count * CHUNK + len(rest)) == rest
        )

    def plus(self, items: "Iterable[T]") -> "PersistentList[T]":
        """A PersistentList with items appended."""
        rest = (*self._rest, *items)
        if len(rest) < CHUNK:
            return self if len(rest) == len(self._rest) else _made(self._chunks, rest)
        chunks, rest = _linked(rest)
        return _made(self._chunks + chunks, rest)

    def first(self, count: int) -> "PersistentList[T]":
        """A PersistentList of the first ``count`` items."""
        chunks, over = divmod(count, CHUNK)
        rest = self._chunks[chunks] if chunks < len(self._chunks) else self._rest
        return self if count >= len(self) else _made(self._chunks[:chunks], rest[:over])

    def replaced(self, place: int, item: T) -> "PersistentList[T]":
        """A PersistentList with the item at one index replaced."""
        chunk, nth = divmod(place, CHUNK)
        if chunk == len(self._chunks):
            return _made(self._chunks, (*self._rest[:nth], item, *self._rest[nth + 1 :]))
        old = self._chunks[chunk]
        new = (*old[:nth], item, *old[nth + 1 :])
        return _made((*self._chunks[:chunk], new, *self._chunks[chunk + 1 :]), self._rest)

    def inserted(self, place: int, item: T) -> "PersistentList[T]":
        """A PersistentList with an item inserted before an index."""
        return self.first(place).plus((item, *self[place:]))

    def _some(self, start: int, stop: int) -> tuple[T, ...]:
        linked = len(self._chunks) * CHUNK
        if start >= linked:
            return self._rest[start - linked : max(start, stop) - linked]
        chunk = start // CHUNK
        until = -(-min(stop, linked) // CHUNK)
        held = tuple(chain(chain.from_iterable(self._chunks[chunk:until]), self._rest if stop > linked else ()))
        return held[start - chunk * CHUNK : max(start, stop) - chunk * CHUNK]


def _linked(items: tuple[T, ...]) -> tuple[tuple[tuple[T, ...], ...], tuple[T, ...]]:
    """Items as tuples of CHUNK, and the remaining items."""
    whole = len(items) - len(items) % CHUNK
    return tuple(items[begin : begin + CHUNK] for begin in range(0, whole, CHUNK)), items[whole:]


def _made(chunks: tuple[tuple[T, ...], ...], rest: tuple[T, ...]) -> PersistentList[T]:
    made = PersistentList[T].__new__(PersistentList)
    made._chunks, made._rest = chunks, rest
    return made
