"""The small project of the guided tour: a program with a mistake, and a test that finds it."""

from typing import Final

FILES: Final = {
    "README.md": "# Tides\n\nHow long until the water is high? `tides.py` knows, but for a mistake.\n",
    "tides.py": '''\
"""How long until the water is high."""

HIGH = [(5, 42), (18, 7)]


def minutes_until_high(hour, minute):
    """The minutes from this moment to the next high water."""
    now = hour * 60 + minute
    later = [high * 60 + rest for high, rest in [*HIGH, (24 + HIGH[0][0], HIGH[0][1])]]
    return next(moment - now for moment in later if moment >= now)


def hours_until_high(hour, minute):
    """The same in hours."""
    return minutes_until_high(hour, minute) / 100
''',
    "test_tides.py": '''\
"""Whether the tides are right."""

import unittest

from tides import hours_until_high, minutes_until_high


class Tides(unittest.TestCase):
    def test_the_next_high_water_is_found(self):
        self.assertEqual(minutes_until_high(5, 0), 42)

    def test_an_hour_has_sixty_minutes(self):
        self.assertEqual(hours_until_high(4, 42), 1)
''',
}
