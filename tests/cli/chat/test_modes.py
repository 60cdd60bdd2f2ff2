"""How a chat uses its terminal."""

import pytest

from turnkeeper.cli.chat.modes import Mode, mode


@pytest.mark.parametrize(
    ("environ", "size", "is_plain", "has_textual", "expected"),
    [
        ({"TERM": "xterm-256color"}, (80, 24), False, True, "screen"),
        ({"TERM": "xterm-256color"}, (80, 24), False, False, "editor"),
        ({"TERM": "xterm-256color"}, (80, 24), True, True, "editor"),
        ({"TERM": "xterm", "TURNKEEPER_PLAIN": "1"}, (80, 24), False, True, "editor"),
        ({"TERM": "xterm", "ACCESSIBLE": "1"}, (80, 24), False, True, "editor"),
        ({"TERM": "xterm"}, (39, 24), False, True, "editor"),
        ({"TERM": "xterm"}, (40, 9), False, True, "editor"),
        ({"TERM": "xterm"}, (40, 10), False, True, "screen"),
        ({"TERM": "dumb"}, (80, 24), False, True, "lines"),
        ({"TERM": "dumb"}, (80, 24), True, True, "lines"),
        ({}, (80, 24), False, True, "lines"),
    ],
)
def test_a_chat_takes_the_screen_where_it_can_and_nobody_wants_lines(
    environ: dict[str, str], size: tuple[int, int], is_plain: bool, has_textual: bool, expected: Mode
) -> None:
    assert mode(environ, *size, is_plain=is_plain, has_textual=has_textual) == expected
