"""Durations as people write them."""

import pytest

from turnkeeper.text.duration import parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("45s", 45), ("90m", 5400), ("12h", 43_200), ("30d", 2_592_000), ("2w", 1_209_600), (" 1D ", 86_400)],
)
def test_a_number_and_a_unit_are_seconds(text: str, seconds: int) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "d", "-1d", "0d", "1.5h", "1d2h", "30 days", "1y", "٣d", "1" * 10 + "d"])
def test_anything_else_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="30d or 12h"):
        parse_duration(text)
