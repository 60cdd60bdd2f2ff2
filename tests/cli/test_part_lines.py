"""Calls on one line: what they are about."""

import pytest

from turnkeeper.cli.part_lines import arguments, subject
from turnkeeper.model.value import JsonObject
from turnkeeper.testing.builders import a_call, a_user, an_assistant, completed


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"questions": [{"question": "Which colour?", "options": []}, {"question": "And why?"}]}, "Which colour?"),
        ({"sides": 6}, "6"),
        ({"is_fair": True}, "true"),
        ({"name": "ada"}, "ada"),
        ({"names": ["ada", "bob"]}, '["ada", "bob"]'),
        ({"sides": 6, "times": 2}, '{"sides": 6, "times": 2}'),
        ({}, ""),
    ],
)
def test_arguments_are_said_in_the_words_of_the_call(given: JsonObject, said: str) -> None:
    assert arguments(given) == said


def test_a_title_that_is_the_name_of_the_tool_says_nothing() -> None:
    answer = an_assistant("ses_1", "msg_2", a_user("ses_1", "msg_1").id)
    state = completed().but(title="dice", input={"sides": 6})
    assert subject(a_call(answer, "prt_1", state, tool="dice")) == "6"
