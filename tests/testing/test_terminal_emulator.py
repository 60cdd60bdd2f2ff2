"""The emulator shows what a terminal would."""

import pytest

from turnkeeper.testing.terminal_emulator import TerminalEmulator


@pytest.mark.parametrize(
    ("output", "lines"),
    [
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("working\rdone", ["doneing"]),
        ("working\r\x1b[2Kdone", ["done"]),
        ("one\r\ntwo\r\x1b[2K\x1b[1A\x1b[2Kthree", ["three"]),
        ("\x1b[?25l\x1b[31mred\x1b[0m\x1b[?25h", ["red"]),
        ("abcdef", ["abcd", "ef"]),
        ("one\r\n\r\n\r\n", ["one"]),
    ],
)
def test_lines_are_drawn_over_and_taken_away(output: str, lines: list[str]) -> None:
    emulator = TerminalEmulator(width=4 if output == "abcdef" else 80)
    emulator.feed(output)
    assert emulator.lines == lines


def test_colours_stay_with_their_characters() -> None:
    emulator = TerminalEmulator()
    emulator.feed("a\x1b[1m\x1b[31mb\x1b[0mc")
    assert emulator.painted() == ["a\x1b[0m\x1b[1m\x1b[31mb\x1b[0mc"]
    assert emulator.text == "abc"
