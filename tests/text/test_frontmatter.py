"""Front matter: YAML as far as JSON can express it, and colons that people do not quote."""

import pytest

from turnkeeper.text.frontmatter import CHARS_MAX, FrontmatterError, parse, write


@pytest.mark.parametrize(
    ("text", "values", "body"),
    [
        ("Just text\n", {}, "Just text"),
        ("", {}, ""),
        ("---\n---\nText\n", {}, "Text"),
        ("---\na: 1\n---\n\n  Text\n\n", {"a": 1}, "Text"),
        ("\ufeff---\r\na: x\r\n---\r\nText\r\n", {"a": "x"}, "Text"),
        ("---\na: x\n---", {"a": "x"}, ""),
        ("---\na: [1, 0.5, true, null]\nb: {c: d}\n---\n", {"a": [1, 0.5, True, None], "b": {"c": "d"}}, ""),
        (
            "---\na: yes\nb: off\nc: 2026-11-17\n1: one\n---\n",
            {"a": "yes", "b": "off", "c": "2026-11-17", "1": "one"},
            "",
        ),
        ("Text\n---\na: 1\n---\n", {}, "Text\n---\na: 1\n---"),
        ("---\ndescription: Use it: always\nmode: all\n---\nT", {"description": "Use it: always", "mode": "all"}, "T"),
        ('---\na: "x: y"\nb: see: http://h\n---\n', {"a": "x: y", "b": "see: http://h"}, ""),
    ],
)
def test_a_document_has_values_and_a_body(text: str, values: object, body: str) -> None:
    assert parse(text) == (values, body)


@pytest.mark.parametrize(
    ("matter", "reason"),
    [
        ("a: [1", "no YAML"),
        ("a: &x 1\nb: *x", "references"),
        ("- one\n- two", "expected lines"),
        ("a: .nan", "JSON does not have"),
        ("a: !!python/none x", "no YAML"),
        ("a: !!binary aGk=", "JSON does not have"),
        ("a: " + "[" * 5000, "YAML|deeply"),
        ("a: " + "x" * CHARS_MAX, "longer than"),
    ],
)
def test_what_is_no_plain_object_is_refused(matter: str, reason: str) -> None:
    with pytest.raises(FrontmatterError, match=reason):
        parse(f"---\n{matter}\n---\nText\n")


def test_front_matter_without_an_end_is_refused_so_that_no_rule_in_it_is_lost() -> None:
    with pytest.raises(FrontmatterError, match="does not end"):
        parse("---\npermission:\n  edit: deny\n\nYou review.\n")
    assert parse("---\n\nA line between paragraphs.").body == "---\n\nA line between paragraphs."


def test_what_is_written_is_read_again() -> None:
    values = {"description": "Tests: all of them", "mode": "all", "permission": {"edit": {"*.py": "ask"}}, "steps": 3}
    assert parse(write(values, "You test.\n\nAlways.\n")) == (values, "You test.\n\nAlways.")
