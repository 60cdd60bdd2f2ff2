"""ValueIndex: many known values, found in one reading of a text."""

from turnkeeper.text.value_index import ValueIndex


def index(*values: str) -> ValueIndex:
    made = ValueIndex()
    for value in values:
        made.add(value)
    return made


def test_of_two_values_at_one_place_the_longer_one_is_found() -> None:
    assert list(index("lanternharbour", "lanternharbour-7").find("a lanternharbour-7 b")) == [(2, "lanternharbour-7")]


def test_found_values_do_not_overlap() -> None:
    assert list(index("abcdabcdabcd").find("abcdabcdabcdabcd")) == [(0, "abcdabcdabcd")]


def test_a_short_value_is_found_only_as_a_word() -> None:
    found = index("ada", "pierlamp")
    assert list(found.find("Canada, ada and pierlamps")) == [(8, "ada")]
    assert list(found.find("pierlamp")) == [(0, "pierlamp")]
    assert list(found.find("no value")) == []


def test_a_value_is_found_as_soon_as_it_was_added() -> None:
    found = index("first-value-1")
    assert list(found.find("second-value-2")) == []
    found.add("second-value-2")
    assert list(found.find("x first-value-1 second-value-2")) == [(2, "first-value-1"), (16, "second-value-2")]
