"""Commands: what is one, which name is meant, and the prompt that a template expands to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core import commands
from turnkeeper.core.commands import ACTIONS, Called, ShellPiece, called, find, hints, joined, of_file, pieces
from turnkeeper.model.command import Command
from turnkeeper.model.refusal import NotFound

KNOWN = ("review", "test", "team/fix", "undo")


def said(template: str, arguments: str) -> str:
    return joined(pieces(template, arguments), ())


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("A=$1 B=$2", "a b c", "A=a B=b c"),
        ("A=$1 B=$2", "a", "A=a B="),
        ("$2 before $1", "one two three", "two three before one"),
        ("$1 and $1", "one two", "one two and one two"),
        ("$12 of $2", "a b c", " of b".strip()),
        ("Say $1", "'two words' \"and more\"", "Say two words and more"),
        ("Look at $1", "[Image 1] closely", "Look at [Image 1] closely"),
        ("All: $ARGUMENTS.", "a 'b c'", "All: a 'b c'."),
        ("$ARGUMENTS then $1", "a b", "a b then a b"),
        ("Cost: $0", "", "Cost: $0"),
        ("Review it", "x", "Review it\n\nx"),
        ("Review it\n", "  ", "Review it"),
        ("$1", "$ARGUMENTS", "$ARGUMENTS"),
        ("$2 $1", "$2 x", "x $2"),
        ("", "only this", "only this"),
    ],
)
def test_words_are_put_in_their_places(template: str, arguments: str, expected: str) -> None:
    assert said(template, arguments) == expected


@pytest.mark.parametrize(
    ("template", "arguments", "expected"),
    [
        ("Look: !`git status`", "", ("Look: ", ShellPiece("git status", True))),
        ("!`a` !`b`", "", (ShellPiece("a", True), " ", ShellPiece("b", True))),
        ("!`git show $1`", "HEAD", (ShellPiece("git show HEAD", False),)),
        ("!`git $ARGUMENTS`", "log -1", (ShellPiece("git log -1", False),)),
        ("Say $1", "!`rm -rf .`", ("Say !`rm -rf .`",)),
        ("Say !`echo`", "!`rm`", ("Say ", ShellPiece("echo", True), "\n\n!`rm`")),
        ("`code` and !``", "", ("`code` and !``",)),
    ],
)
def test_only_the_template_says_what_is_run(template: str, arguments: str, expected: tuple[object, ...]) -> None:
    assert pieces(template, arguments) == expected


def test_outputs_stand_in_their_places_and_further_text_at_the_end() -> None:
    found = pieces("On !`branch` of !`host`: $1", "go")
    assert joined(found, ("main", "here"), "$1 !`x`\n") == "On main of here: go\n\n$1 !`x`\n"
    assert commands.said(Command(name="x"), found, "go") == "On \n of \n: go", "outputs mention no files"


def test_a_skill_is_said_as_it_is() -> None:
    skill = Command(name="x", source="skill", template="Run !`rm -rf .` on $1 of @secrets")
    found = commands.expansion(skill, "now @here")
    assert found == ("Run !`rm -rf .` on $1 of @secrets", "\n\nnow @here")
    assert commands.said(skill, found, "now @here") == "now @here"
    assert commands.expansion(skill, " ") == ("Run !`rm -rf .` on $1 of @secrets",)


TEXT = st.text(alphabet=st.sampled_from("ab $1`!@\"' \n"), max_size=20)


@given(TEXT, st.lists(st.text(alphabet="xyz$`!12", min_size=1, max_size=6), max_size=4))
def test_arguments_never_add_a_command_or_a_placeholder(template: str, words: list[str]) -> None:
    plain, filled = pieces(template, "q"), pieces(template, " ".join(words) or "q")
    assert [isinstance(one, ShellPiece) for one in plain] == [isinstance(one, ShellPiece) for one in filled]


@given(st.text(max_size=30))
def test_the_whole_text_of_the_arguments_is_inserted_unchanged(arguments: str) -> None:
    assert pieces("<$ARGUMENTS>", arguments) == (f"<{arguments}>",)


def test_the_places_of_a_template_are_told_in_order() -> None:
    assert hints("$10 $2 $2 $ARGUMENTS $0") == ("$2", "$10", "$ARGUMENTS")
    assert hints("none") == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/review", Called("review", "")),
        ("/review  the last commit ", Called("review", "the last commit")),
        ("/review\nmore\nlines", Called("review", "more\nlines")),
        ("/team/fix it", Called("team/fix", "it")),
        ("/etc/hosts is what?", None),
        ("/notes.md says", None),
        ("/usr/bin/fix is gone", None),
        ("/api/users answers 404", None),
        ("/teams.d/fix", None),
        (" /review", None),
        ("/ review", None),
        ("/", None),
        ("", None),
        ("review", None),
        ("//review", None),
    ],
)
def test_the_first_word_says_whether_a_text_is_a_command(text: str, expected: Called | None) -> None:
    assert called(text, KNOWN) == expected


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/revew it", "the nearest are: review"),
        ("/tset", "the nearest are: test"),
        ("/team/other", "the nearest are: team/fix"),
        ("/taem/fix it", "the nearest are: team/fix"),
        ("/tmp is full", "known are: review, team/fix, test, undo"),
    ],
)
def test_an_unknown_command_is_refused_with_the_nearest_names(text: str, words: str) -> None:
    with pytest.raises(NotFound, match=words):
        called(text, KNOWN)


def test_a_command_that_is_not_trusted_is_refused_and_a_path_is_not() -> None:
    with pytest.raises(NotFound, match="until `turnkeeper trust` trusts this project"):
        called("/own/p x", KNOWN, ["own/p"])
    with pytest.raises(NotFound, match="there is no command 'own/q'"):
        called("/own/q x", KNOWN, ["own/p"])
    assert called("/etc/hosts is wrong", KNOWN, ["own/p"]) is None


def test_a_command_is_found_by_its_name_or_refused() -> None:
    known = {"test": Command(name="test", template="t")}
    assert find(known, "test").template == "t"
    with pytest.raises(NotFound, match="known are: none"):
        find({}, "x")
    with pytest.raises(NotFound, match="and 8 more"):
        find({f"a{number}": Command(name="a") for number in range(20)}, "x")


def test_a_file_is_a_template_named_by_its_path() -> None:
    assert of_file(("sub", "t2"), {"agent": "plan"}, "Do $1") == {
        "command": {"sub/t2": {"agent": "plan", "template": "Do $1"}}
    }


def test_the_built_in_actions_are_these() -> None:
    assert list(ACTIONS) == ["help", "compact", "undo", "redo", "share", "unshare", "export"]
    assert {one.kind for one in ACTIONS.values()} == {"action"}
