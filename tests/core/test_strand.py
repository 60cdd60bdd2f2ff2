"""A strand is a tuple that is cheap to grow: held against tuples in everything it does."""

from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.strand import LINK, Strand

lengths = st.one_of(st.integers(0, 5), st.integers(0, 3 * LINK + 2), st.sampled_from([LINK - 1, LINK, 2 * LINK]))
items = lengths.map(lambda length: tuple(range(length)))


@given(items, st.integers(-4 * LINK, 4 * LINK), st.integers(-4 * LINK, 4 * LINK), st.sampled_from([None, 1, 2, -1, -3]))
def test_it_reads_like_a_tuple(whole: tuple[int, ...], start: int, stop: int, step: int | None) -> None:
    strand = Strand(whole)
    assert (len(strand), tuple(strand), tuple(reversed(strand))) == (len(whole), whole, whole[::-1])
    assert strand[start:stop:step] == whole[start:stop:step]
    assert (strand[start:], strand[:stop]) == (whole[start:], whole[:stop])
    assert strand == whole == strand
    assert hash(strand) == hash(whole)
    assert [strand[place] for place in range(-len(whole), len(whole))] == [*whole, *whole]
    for place in (len(whole), -len(whole) - 1):
        try:
            strand[place]
        except IndexError:
            continue
        raise AssertionError(place)


@given(items, st.data())
def test_what_is_made_of_it_leaves_it_as_it_was(whole: tuple[int, ...], data: st.DataObject) -> None:
    strand = Strand(whole)
    more = data.draw(items)
    place = data.draw(st.integers(0, len(whole)))
    assert strand.plus(more) == whole + more
    assert strand.first(place) == whole[:place]
    assert strand.inserted(place, -1) == (*whole[:place], -1, *whole[place:])
    if place < len(whole):
        assert strand.replaced(place, -1) == (*whole[:place], -1, *whole[place + 1 :])
    assert tuple(strand) == whole
    # However they came about, equal items are equal strands.
    assert strand.plus(more) == Strand(whole + more)
    assert Strand(whole).first(place).plus(whole[place:]) == strand


@given(items, items, st.data())
def test_it_knows_what_it_begins_with(whole: tuple[int, ...], more: tuple[int, ...], data: st.DataObject) -> None:
    strand = Strand(whole).plus(more)
    assert strand.begins_with(Strand(whole))
    assert strand.begins_with(Strand((*whole, *more)))
    assert not strand.begins_with(Strand((*whole, *more, 0)))
    if whole:
        place = data.draw(st.integers(0, len(whole) - 1))
        assert not strand.begins_with(Strand(whole).replaced(place, -1))


class Counted:
    """An item that knows how often it was compared."""

    seen = 0

    def __eq__(self, other: object) -> bool:
        Counted.seen += 1
        return self is other

    def __hash__(self) -> int:
        return id(self)


def test_what_two_strands_share_is_not_compared() -> None:
    strand = Strand([Counted() for _ in range(3 * LINK + 5)])
    assert strand.plus([Counted()]).begins_with(strand)
    assert strand.plus([Counted()] * 2 * LINK).begins_with(strand)
    assert Counted.seen == 0
    assert Strand.of(strand) is strand
    assert strand.plus(()) is strand
