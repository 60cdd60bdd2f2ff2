"""What a typed line is."""

import pytest

from turnkeeper.cli.chat.lines import Line, PromptLine, ShellLine, SlashLine, UnknownSlash, nearest, parse

KNOWN = ("model", "agent", "undo", "redo", "quit", "queue")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("  \n ", None),
        ("hello", PromptLine("hello")),
        ("  hello \n", PromptLine("hello")),
        ("two\nlines", PromptLine("two\nlines")),
        (" /undo", PromptLine("/undo")),
        ("is a/b a path?", PromptLine("is a/b a path?")),
        ("!ls -l", ShellLine("ls -l")),
        ("! ls", ShellLine("ls")),
        ("!", PromptLine("!")),
        ("/undo", SlashLine("undo", "")),
        ("/undo  ", SlashLine("undo", "")),
        ("/model  offline/tk-1 ", SlashLine("model", "offline/tk-1")),
        ("/queue two\nlines", SlashLine("queue", "two\nlines")),
        ("/model\noffline/tk-1", SlashLine("model", "offline/tk-1")),
        ("/und", UnknownSlash("und", ("undo",))),
        ("/UNDO", UnknownSlash("UNDO", ("undo", "redo"))),
        ("/quti now", UnknownSlash("quti", ("quit",))),
        ("/usr/bin is full", PromptLine("/usr/bin is full")),
        ("/", PromptLine("/")),
        ("/ model", PromptLine("/ model")),
    ],
)
def test_a_line_is_a_prompt_a_command_or_refused(text: str, expected: Line | None) -> None:
    assert parse(text, KNOWN) == expected


def test_a_command_of_a_project_that_is_not_trusted_is_refused_as_such() -> None:
    refused = parse("/zzzz now", KNOWN, ["zzzz"])
    assert isinstance(refused, UnknownSlash)
    assert refused.message == (
        "There is no /zzzz until `turnkeeper trust` trusts this project. "
        "To send the line as it is, begin it with a space."
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [("q", ("queue", "quit")), ("modle", ("model",)), ("zzzz", ()), ("", ()), ("reundo", ("undo", "redo"))],
)
def test_the_nearest_names_are_those_it_begins_and_those_that_look_like_it(
    name: str, expected: tuple[str, ...]
) -> None:
    assert nearest(name, KNOWN) == expected


def test_a_refused_name_says_what_was_meant_and_how_to_send_it_nevertheless() -> None:
    assert UnknownSlash("q", ("queue", "quit")).message == (
        "There is no /q. Did you mean /queue or /quit? /help lists them. "
        "To send the line as it is, begin it with a space."
    )
    assert UnknownSlash("zzzz", ()).message.startswith("There is no /zzzz. /help lists them.")
