"""Whether the tides are right."""

import unittest

from tides import hours_until_high, minutes_until_high


class Tides(unittest.TestCase):
    def test_the_next_high_water_is_found(self):
        self.assertEqual(minutes_until_high(5, 0), 42)
        self.assertEqual(minutes_until_high(23, 42), 360)

    def test_an_hour_has_sixty_minutes(self):
        self.assertEqual(hours_until_high(4, 42), 1)


if __name__ == "__main__":
    unittest.main()
