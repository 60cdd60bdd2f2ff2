"""The lines above and below a session, for wide and narrow screens."""

import pytest

from turnkeeper.cli.chat.tui.status import Facts, footer, header, window_percent
from turnkeeper.model.session import CacheTokens, Revert, Session, SessionTime, Summary, Tokens

TOKENS = Tokens(input=1000, output=500, reasoning=0, cache=CacheTokens(read=8000, write=500))
SESSION = Session(
    id="ses_1",
    slug="calm-otter",
    project_id="global",
    directory="/srv",
    title="Tide tables",
    version="1",
    cost=0.41,
    tokens=TOKENS,
    time=SessionTime(created=1, updated=2),
    summary=Summary(additions=120, deletions=8, files=3),
)
FACTS = Facts(SESSION, "build", "offline/tk-1", 0.41, 20_000, TOKENS)


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (100, ["Tide tables · build · offline/tk-1", "window 50 %", "$0.41", "+120 -8"]),
        (60, ["Tide tables", "window 50 %", "$0.41", "+120 -8"]),
        (46, ["Tide", "window 50 % · $0.4100 · +120 -8"]),
        (38, ["Tide", "window 50 % · $0.4100"]),
        (20, ["Tide", "$0.4100"]),
    ],
)
def test_the_header_fits_its_width_and_keeps_the_numbers(width: int, expected: list[str]) -> None:
    line = header(FACTS, width)
    assert line.cell_len <= width
    assert all(one in line.plain for one in expected)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("state", ["idle", "running", "stopping"])
def test_the_footer_fits_its_width(state: str, width: int) -> None:
    assert footer(state, "grep pier " * 20, 38, width).cell_len <= width  # type: ignore[arg-type]  # One of them.


def test_the_window_is_known_only_with_its_size() -> None:
    assert window_percent(TOKENS, 20_000) == 50
    assert window_percent(TOKENS, 1000) == 100
    assert window_percent(TOKENS, 0) is None
    assert window_percent(None, 20_000) is None
    assert "window" not in header(FACTS._replace(window=0), 100).plain


def test_changed_lines_that_were_undone_are_said_to_be() -> None:
    undone = FACTS._replace(session=SESSION.but(revert=Revert(message_id="msg_1")))
    assert header(undone, 100).plain.endswith("undone: +120 -8")


def test_a_new_session_has_neither_title_nor_cost() -> None:
    line = header(Facts(None, "build", "", 0, 0, None), 80).plain
    assert "new session" in line
    assert "$" not in line
