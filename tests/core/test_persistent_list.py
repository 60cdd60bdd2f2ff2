"""A persistent list is a tuple that is cheap to grow: held against tuples in everything it does."""

from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.persistent_list import CHUNK, PersistentList

lengths = st.one_of(st.integers(0, 5), st.integers(0, 3 * CHUNK + 2), st.sampled_from([CHUNK - 1, CHUNK, 2 * CHUNK]))
sequences = lengths.map(lambda length: tuple(range(length)))


@given(
    sequences,
    st.integers(-4 * CHUNK, 4 * CHUNK),
    st.integers(-4 * CHUNK, 4 * CHUNK),
    st.sampled_from([None, 1, 2, -1, -3]),
)
def test_it_reads_like_a_tuple(whole: tuple[int, ...], start: int, stop: int, step: int | None) -> None:
    items = PersistentList(whole)
    assert (len(items), tuple(items), tuple(reversed(items))) == (len(whole), whole, whole[::-1])
    assert items[start:stop:step] == whole[start:stop:step]
    assert (items[start:], items[:stop]) == (whole[start:], whole[:stop])
    assert items == whole == items
    assert hash(items) == hash(whole)
    assert [items[place] for place in range(-len(whole), len(whole))] == [*whole, *whole]
    for place in (len(whole), -len(whole) - 1):
        try:
            items[place]
        except IndexError:
            continue
        raise AssertionError(place)


@given(sequences, st.data())
def test_what_is_made_of_it_leaves_it_as_it_was(whole: tuple[int, ...], data: st.DataObject) -> None:
    items = PersistentList(whole)
    more = data.draw(sequences)
    place = data.draw(st.integers(0, len(whole)))
    assert items.plus(more) == whole + more
    assert items.first(place) == whole[:place]
    assert items.inserted(place, -1) == (*whole[:place], -1, *whole[place:])
    if place < len(whole):
        assert items.replaced(place, -1) == (*whole[:place], -1, *whole[place + 1 :])
    assert tuple(items) == whole
    # However they came about, equal items are equal lists.
    assert items.plus(more) == PersistentList(whole + more)
    assert PersistentList(whole).first(place).plus(whole[place:]) == items


@given(sequences, sequences, st.data())
def test_it_knows_what_it_begins_with(whole: tuple[int, ...], more: tuple[int, ...], data: st.DataObject) -> None:
    items = PersistentList(whole).plus(more)
    assert items.begins_with(PersistentList(whole))
    assert items.begins_with(PersistentList((*whole, *more)))
    assert not items.begins_with(PersistentList((*whole, *more, 0)))
    if whole:
        place = data.draw(st.integers(0, len(whole) - 1))
        assert not items.begins_with(PersistentList(whole).replaced(place, -1))


class Counted:
    """An item that knows how often it was compared."""

    seen = 0

    def __eq__(self, other: object) -> bool:
        Counted.seen += 1
        return self is other

    def __hash__(self) -> int:
        return id(self)


def test_what_two_lists_share_is_not_compared() -> None:
    items = PersistentList([Counted() for _ in range(3 * CHUNK + 5)])
    assert items.plus([Counted()]).begins_with(items)
    assert items.plus([Counted()] * 2 * CHUNK).begins_with(items)
    assert Counted.seen == 0
    assert PersistentList.of(items) is items
    assert items.plus(()) is items
