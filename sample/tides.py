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
