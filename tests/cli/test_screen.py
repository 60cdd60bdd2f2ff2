"""How text, times and tables look on a screen."""

import pytest

from turnkeeper.cli.screen import Column, Screen, cells, harmless, plural, shortened, size, table

NOW = 1_794_767_525_690
SECOND = 1000


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "now"),
        (-30, "now"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3599, "59 min ago"),
        (3600, "1 h ago"),
        (86_399, "23 h ago"),
        (86_400, "1 d ago"),
        (6 * 86_400, "6 d ago"),
    ],
)
def test_a_recent_moment_is_told_by_its_distance(seconds: int, said: str) -> None:
    assert Screen(now=NOW).ago(NOW - seconds * SECOND) == said


def test_an_older_moment_and_one_to_come_are_told_by_their_date() -> None:
    screen = Screen(now=NOW)
    assert screen.ago(NOW - 30 * 86_400 * SECOND) == screen.date(NOW - 30 * 86_400 * SECOND)[:10]
    assert screen.ago(NOW + 86_400 * SECOND) == screen.date(NOW + 86_400 * SECOND)


def test_a_number_that_is_no_date_is_shown_as_it_is() -> None:
    assert Screen().date(10**30) == str(10**30)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("bell\a back\b", "bell␇ back␈"),
        ("\x9b31m", "�31m"),
        ("\u202eesrever", "�esrever"),
        ("a\tb\nc", "a   b\nc"),
    ],
)
def test_text_cannot_take_over_the_terminal(text: str, shown: str) -> None:
    assert harmless(text) == shown


@pytest.mark.parametrize(
    ("text", "width", "keep_end", "shown"),
    [
        ("wind", 4, False, "wind"),
        ("windy", 4, False, "win…"),
        ("/home/user/bay", 8, True, "…ser/bay"),
        ("日本語", 6, False, "日本語"),
        ("日本語", 5, False, "日本…"),
        ("日本語", 4, False, "日…"),
    ],
)
def test_text_is_cut_to_columns(text: str, width: int, *, keep_end: bool, shown: str) -> None:
    assert shortened(text, width, keep_end=keep_end) == shown
    assert cells(shown) <= width


def test_letters_are_as_wide_as_they_are_shown() -> None:
    assert [cells(text) for text in ("ab", "日本", "e\u0301", "…")] == [2, 4, 1, 1]


def test_a_path_at_home_begins_with_a_tilde() -> None:
    screen = Screen(home="/home/user")
    assert [screen.path(text) for text in ("/home/user", "/home/user/x", "/home/username")] == [
        "~",
        "~/x",
        "/home/username",
    ]


def test_counts_and_sizes_read_well() -> None:
    assert [plural(1, "part"), plural(2, "part"), plural(1234, "child", "children")] == [
        "1 part",
        "2 parts",
        "1,234 children",
    ]
    assert [size(999), size(1500), size(2_500_000), size(3_000_000_000_000)] == [
        "999 B",
        "1.5 KB",
        "2.5 MB",
        "3000.0 GB",
    ]


COLUMNS = [
    Column("ID", ["ses_1", "ses_22"]),
    Column("", ["", "child"]),
    Column("TITLE", ["Wind over the bay", "日本語のタイトル"], least=6),
    Column("PLACE", ["/home/user/bay", "/bay"], least=8, is_optional=True, keep_end=True),
]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            None,
            [
                "ID             TITLE              PLACE",
                "ses_1          Wind over the bay  /home/user/bay",
                "ses_22  child  日本語のタイトル   /bay",
            ],
        ),
        (
            42,
            [
                "ID             TITLE              PLACE",
                "ses_1          Wind over the bay  …ser/bay",
                "ses_22  child  日本語のタイトル   /bay",
            ],
        ),
        (
            32,
            ["ID             TITLE    PLACE", "ses_1          Wind o…  …ser/bay", "ses_22  child  日本語…  /bay"],
        ),
        (22, ["ID             TITLE", "ses_1          Wind o…", "ses_22  child  日本語…"]),
    ],
)
def test_a_table_fits_the_screen_and_never_cuts_an_id(width: int | None, lines: list[str]) -> None:
    assert table(Screen(width=width), *COLUMNS).splitlines() == lines


def test_a_column_in_which_nothing_stands_is_left_out() -> None:
    columns = [Column("ID", ["ses_1"]), Column("MARK", [""])]
    assert table(Screen(), *columns) == "ID\nses_1"
    assert table(Screen(), Column("ID", [])) == ""


def test_colours_are_used_only_where_there_are_some() -> None:
    assert Screen(has_colors=True).paint("x", "bold", "red") == "\x1b[1;31mx\x1b[0m"
    assert Screen().paint("x", "bold", "red") == "x"
