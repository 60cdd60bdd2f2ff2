"""The themes of the full screen: the terminal's own colours, and a light and a dark one of ours.

The contrast of text is at least 4.5 on each of its backgrounds.
"""

from typing import Final

from textual.theme import Theme

DEFAULT: Final = "turnkeeper-dark"

THEMES: Final = (
    Theme(
        name="turnkeeper-dark",
        dark=True,
        primary="#82b1ff",
        secondary="#bda8ff",
        accent="#82b1ff",
        foreground="#e7e8eb",
        background="#121316",
        surface="#191b1f",
        panel="#1d2f4d",
        success="#74d394",
        warning="#e6b84f",
        error="#ff8f86",
    ),
    Theme(
        name="turnkeeper-light",
        dark=False,
        primary="#1a5fb4",
        secondary="#6a3fb5",
        accent="#1a5fb4",
        foreground="#1c1c1a",
        background="#fafaf8",
        surface="#ffffff",
        panel="#dbe8fb",
        success="#1a7037",
        warning="#855100",
        error="#b3261e",
    ),
)
