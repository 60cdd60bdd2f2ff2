"""Which words of a text are names of files or agents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.mentions import mentions, path_mentions


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("look at @src/app.py please", ("src/app.py",)),
        ("@README.md", ("README.md",)),
        ("read @a.txt, then @b.txt.", ("a.txt", "b.txt")),
        ("@.env and @.github/workflows/ci.yml", (".env", ".github/workflows/ci.yml")),
        ("@./here @../there @~/notes.md", ("./here", "../there", "~/notes.md")),
        ("(@explore)", ("explore)",)),
        ("ask @explore\nthen @plan", ("explore", "plan")),
        ("@same.py and @same.py again", ("same.py",)),
        ("@archive.tar.gz", ("archive.tar.gz",)),
        ("@C#/notes.txt", ("C#/notes.txt",)),
        ('read @"my notes/a, b.txt", then @c.txt', ("my notes/a, b.txt", "c.txt")),
        ('@"my notes.py"#10-20 and @"my notes.py"#App.run.', ("my notes.py#10-20", "my notes.py#App.run")),
    ],
)
def test_a_name_after_an_at_sign_is_a_mention(text: str, names: tuple[str, ...]) -> None:
    assert mentions(text) == names


@pytest.mark.parametrize(
    "text", ["", "no names", "ada@example.org", "`@decorator`", "an @ alone", "@", "@.", "@...", "x_@y"]
)
def test_other_signs_are_left_alone(text: str) -> None:
    assert mentions(text) == ()


@given(st.text(alphabet="@. `,ab/~\n"))
def test_a_name_has_no_space_comma_or_backtick_and_does_not_end_in_a_dot(text: str) -> None:
    for name in mentions(text):
        assert not set(name) & set(" \n,`")
        assert not name.endswith(".")
        assert f"@{name}" in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see @src/gone and @gone.py.", ("src/gone", "gone.py")),
        ("(@gone.md)? '@gone.txt'", ("gone.md", "gone.txt")),
        ("@gone.py#10-20 @gone.py:7, @gone.ts#App.run", ("gone.py", "gone.ts")),
        ('see @"my gone.py"#10-20, @"gone notes/" and @"Ada Lovelace"', ("my gone.py", "gone notes/")),
        ("@.env @~/notes @../up", (".env", "~/notes", "../up")),
        ("why @property, @app.route, @app.get('/x') and @pytest.mark.parametrize?", ()),
        ("mail me@example.com or @bob, @bob@host.com", ()),
        ("https://example.com/@bob/post.md and `@gone.py`", ()),
        ("@docs:readme.md of a server, @explore", ()),
        ("@ @. @.. @/ @...", ()),
        ("-@gone.py, then (@gone.py", ("gone.py",)),
    ],
)
def test_names_that_are_clearly_paths_are_told_from_others(text: str, expected: tuple[str, ...]) -> None:
    assert path_mentions(text) == expected


def test_a_text_with_very_many_names_is_read_once() -> None:
    names = tuple(f"src/a{number}.py" for number in range(20_000))
    assert path_mentions(" ".join(f"(@{name})" for name in names)) == names
