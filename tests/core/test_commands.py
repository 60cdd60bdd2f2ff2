"""Commands with templates: what is said for which arguments."""

import pytest

from turnkeeper.core.commands import expanded, find, hints
from turnkeeper.model.config import CommandConfig
from turnkeeper.model.refusal import Invalid, NotFound


@pytest.mark.parametrize(
    ("template", "arguments", "said"),
    [
        ("A=$1 B=$2", "a b c", "A=a B=b c"),
        ("A=$1 B=$2", "a", "A=a B="),
        ("$2 before $1", "one two three", "two three before one"),
        ("Say $1", "'two words' \"and more\"", "Say two words and more"),
        ("Look at $1", "[Image 1] closely", "Look at [Image 1] closely"),
        ("All: $ARGUMENTS.", "a 'b c'", "All: a 'b c'."),
        ("Review it", "x", "Review it\n\nx"),
        ("Review it\n", "  ", "Review it"),
    ],
)
def test_words_are_put_in_their_places(template: str, arguments: str, said: str) -> None:
    assert expanded(template, arguments) == said


def test_a_template_that_runs_a_program_is_refused() -> None:
    with pytest.raises(Invalid, match="does not do yet"):
        expanded("Look: !`git status`", "")


def test_the_places_of_a_template_are_told_in_order() -> None:
    assert hints("$10 $2 $2 $ARGUMENTS") == ("$2", "$10", "$ARGUMENTS")
    assert hints("none") == ()


def test_an_unknown_command_is_refused_with_those_there_are() -> None:
    with pytest.raises(NotFound, match="known are: review, test"):
        find({"test": CommandConfig(template="t"), "review": CommandConfig(template="r")}, "tset")
    with pytest.raises(NotFound, match="there are none"):
        find({}, "x")
