"""What commands print fits a terminal of 80 columns, and shows what matters there."""

import pytest
from workshop import Shop

COLUMNS = 80
WORDS = "read tides.py and tell me at length what each of its lines does, and why it is there"


def shown(shop: Shop, *words: str) -> list[str]:
    """The lines of a command on a terminal."""
    with shop.terminal(*words, columns=COLUMNS) as seat:
        return seat.read_until("").splitlines()


def test_a_tree_and_a_log_fit_the_screen(shop: Shop) -> None:
    shop.run("--title", WORDS, WORDS)
    [session] = shop.sessions()
    [drawn] = shown(shop, "session", "tree", session["id"])
    assert "read tides.py and" in drawn
    logged = shown(shop, "session", "log", session["id"])
    [admitted] = [line for line in logged if "prompt.admitted" in line]
    assert "steer read tides.py and" in admitted
    assert all(len(line) <= COLUMNS for line in (drawn, *logged))


def test_a_terminal_of_one_column_ends_no_command(shop: Shop) -> None:
    shop.run("read tides.py")
    [session] = shop.sessions()
    for words in (("session", "messages", session["id"]), ("run", "-c", "-m", "offline/tk-1", "read README.md")):
        with shop.terminal(*words, columns=1) as seat:
            assert seat.end() == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("session", "delete", "--older-than", "soon"), "as 30d or 12h. Try --help."),
        (("run", "--yolo"), "Did you mean --model? Try --help."),
        (("run", "/reviw"), "begin the message with a space to send it as it is"),
        (("session", "tree", "nope"), "`turnkeeper session list --all` shows all of them"),
    ],
)
def test_a_refusal_is_wrapped_between_words(shop: Shop, words: tuple[str, ...], said: str) -> None:
    lines = shown(shop, *words)
    assert all(len(line) < COLUMNS for line in lines)
    assert said in " ".join(lines)
