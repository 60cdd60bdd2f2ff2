"""What completes a typed text."""

import pytest

from turnkeeper.cli.chat.completion import (
    CANDIDATES_MAX,
    Candidate,
    Known,
    candidates,
    file_of_symbol,
    is_mention,
    with_directories,
)

KNOWN = Known(
    commands={"model": "choose", "modes": "", "undo": "", "sessions": ""},
    arguments={"model": "models", "agent": "agents", "sessions": "sessions"},
    models={"offline/tk-1": "Offline", "acme/large": "", "acme/small": ""},
    agents={"build": "works", "plan": ""},
    sessions={"calm-otter": "Tides", "warm-fox": ""},
    mentionable={"explore": "looks"},
)
FILES = ["README.md", "src/app.py", "src/deep/app_test.py", "a name.txt", "x,y.txt", 'a "b".txt', "a`b"]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("", []),
        ("hello", []),
        ("/", ["/model", "/modes", "/undo", "/sessions"]),
        ("/mo", ["/model", "/modes"]),
        ("/do", ["/undo"]),
        ("/model", []),
        ("/zzz", []),
        ("/model ", ["offline/tk-1", "acme/large", "acme/small"]),
        ("/model acme/s", ["acme/small"]),
        ("/model small", ["acme/small"]),
        ("/agent p", ["plan"]),
        ("/sessions fox", ["warm-fox"]),
        ("/undo x", []),
        (
            "see @",
            [
                "@explore",
                "@README.md",
                "@src/",
                "@src/app.py",
                "@src/deep/",
                "@src/deep/app_test.py",
                '@"a name.txt"',
                '@"x,y.txt"',
            ],
        ),
        ("see @nam", ['@"a name.txt"']),
        ('see @"a n', ['@"a name.txt"']),
        ('see @"read', ["@README.md"]),
        ('see @"a name.txt"', []),
        ("see @app", ["@src/app.py", "@src/deep/app_test.py"]),
        ("see @src/d", ["@src/deep/", "@src/deep/app_test.py"]),
        ("see @readme", ["@README.md"]),
        ("see @exp", ["@explore"]),
        ("see @README.md", []),
        ("me@READ", []),
        ("`@READ", []),
        ("/queue look at @READ", ["@README.md"]),
    ],
)
def test_candidates_fit_what_stands_before_the_cursor(before: str, expected: list[str]) -> None:
    assert [one.text for one in candidates(before, KNOWN, FILES)] == expected


def test_a_candidate_replaces_what_was_typed_and_says_what_it_is() -> None:
    assert candidates("/mod", KNOWN)[0] == Candidate("/model", -4, "choose")
    assert candidates("/model off", KNOWN) == [Candidate("offline/tk-1", -3, "Offline")]
    assert candidates("ask @expl", KNOWN) == [Candidate("@explore", -5, "looks")]
    assert candidates('ask @"a n', KNOWN, FILES) == [Candidate('@"a name.txt"', -5)]


def test_there_are_never_more_than_people_read() -> None:
    many = [f"file{number}.txt" for number in range(10 * CANDIDATES_MAX)]
    assert len(candidates("@file", KNOWN, many)) == CANDIDATES_MAX


def test_names_that_a_mention_cannot_have_are_not_offered() -> None:
    usual = ["README.md", "src/", "src/app.py", "src/deep/", "src/deep/app_test.py"]
    assert list(with_directories(FILES)) == [*usual, "a name.txt", "x,y.txt"]


@pytest.mark.parametrize(
    ("before", "file", "expected"),
    [
        ("see @src/app.py#", "src/app.py", ["@src/app.py#App", "@src/app.py#App.run", "@src/app.py#main"]),
        ("see @src/app.py#ru", "src/app.py", ["@src/app.py#App.run"]),
        ("see @src/app.py#zz", "src/app.py", []),
        ("see @src/app.py", None, []),
        ("see @#", None, []),
    ],
)
def test_symbols_are_offered_behind_a_hash(before: str, file: str | None, expected: list[str]) -> None:
    assert file_of_symbol(before) == file
    assert [one.text for one in candidates(before, KNOWN, FILES, ["App", "App.run", "main"])] == expected


@pytest.mark.parametrize(("before", "expected"), [("@", True), ("a @b/c", True), ("a@b", False), ("@a b", False)])
def test_files_are_looked_for_only_in_a_mention(before: str, expected: bool) -> None:
    assert is_mention(before) is expected
