"""Skills: what a file says, which of them rules leave, and the list that a model is shown."""

import pytest

from turnkeeper.core.limits import COMPONENT_CHARS_MAX, SKILL_DESCRIPTION_CHARS_MAX
from turnkeeper.core.skills import listing, output, parsed, usable
from turnkeeper.model.permission import Action, Rule
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.skill import Skill

TIDE = Skill(name="tide", description="Tides & <winds>", location="/s/tide/SKILL.md", content="Look.")
REEF = Skill(name="reef", description="Reefs", location="/s/reef/SKILL.md", content="Steer.")
MUTE = Skill(name="mute", location="/s/mute/SKILL.md", content="Hm.")


def rule(pattern: str, action: Action, permission: str = "skill") -> Rule:
    return Rule(permission=permission, pattern=pattern, action=action)


ALLOWED = rule("*", "allow", "*")


def test_a_file_gives_its_name_its_description_in_one_line_and_its_text() -> None:
    text = (
        b"\xef\xbb\xbf---\r\nname: tide\r\ndescription: >\r\n  High: at six,\r\n  low at noon\r\n---\r\n\r\nLook.\r\n"
    )
    assert parsed(text, "/s/SKILL.md") == Skill(
        name="tide", description="High: at six, low at noon", location="/s/SKILL.md", content="Look."
    )
    long = parsed(b"---\nname: a\ndescription: " + b"x" * 5000 + b"\n---\n", "/s").description or ""
    assert (len(long), long[-1]) == (SKILL_DESCRIPTION_CHARS_MAX, "…")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"Just text.", "it has no name"),
        (b"---\ndescription: x\n---\n", "it has no name"),
        (b"---\nname: 7\n---\n", "7 cannot name a skill"),
        (b"---\nname: two words\n---\n", "'two words' cannot name a skill"),
        (b"---\nname: ../up\n---\n", "'../up' cannot name a skill"),
        (b"---\nname: " + b"x" * 65 + b"\n---\n", "cannot name a skill"),
        (b"---\nname: a\ndescription: [1]\n---\n", "its description is [1] and not a text"),
        (b"---\nname: [\n---\n", "its front matter cannot be read: no YAML"),
        (b"---\nname: a\nx: &a [*a]\n---\n", "its front matter cannot be read: references"),
        (b"---\nname: a\nlong: " + b"x" * 20_000 + b"\n---\n", "its front matter cannot be read"),
        (b"---\nname: caf\xe9\n---\n", "it is not UTF-8 text"),
        (b"---\nname: a\n---\n\0", "it is a binary file"),
    ],
)
def test_a_file_that_is_no_skill_is_refused_with_the_reason(content: bytes, why: str) -> None:
    with pytest.raises(Invalid) as refused:
        parsed(content, "/s/SKILL.md")
    assert str(refused.value).startswith(why) or why in str(refused.value)


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        ([ALLOWED], ["mute", "reef", "tide"]),
        ([rule("*", "ask")], ["mute", "reef", "tide"]),
        ([ALLOWED, rule("tide", "deny")], ["mute", "reef"]),
        ([rule("*", "deny"), rule("re*", "allow")], ["reef"]),
        ([ALLOWED, rule("*", "deny")], []),
        ([ALLOWED, rule("*", "deny", "*")], []),
    ],
)
def test_rules_decide_by_name_which_skills_can_be_used(rules: list[Rule], names: list[str]) -> None:
    assert [one.name for one in usable([TIDE, REEF, MUTE], rules)] == names


def test_the_list_has_described_skills_only_and_is_escaped() -> None:
    assert listing([REEF, TIDE, MUTE]) == (
        "<available_skills>\n"
        "  <skill>\n"
        "    <name>reef</name>\n"
        "    <description>Reefs</description>\n"
        "    <location>/s/reef/SKILL.md</location>\n"
        "  </skill>\n"
        "  <skill>\n"
        "    <name>tide</name>\n"
        "    <description>Tides &amp; &lt;winds&gt;</description>\n"
        "    <location>/s/tide/SKILL.md</location>\n"
        "  </skill>\n"
        "</available_skills>"
    )
    assert listing([MUTE]) is None


def test_a_list_that_is_too_long_ends_with_a_whole_entry() -> None:
    found = listing([REEF.but(name=f"s{n:03}", description="x" * 1024) for n in range(200)]) or ""
    assert len(found) < COMPONENT_CHARS_MAX
    assert found.endswith("  </skill>\n  (and 148 more, for which there is no room here)\n</available_skills>")


def test_a_skill_is_read_with_its_directory_and_its_files() -> None:
    assert output(TIDE, ["/s/tide/a&b.py"], has_more=True) == (
        '<skill_content name="tide">\n'
        "Look.\n"
        "\n"
        "Base directory of this skill: /s/tide\n"
        "Relative paths in the text begin there. Read a file of the skill when the text sends you to it.\n"
        "<skill_files>\n"
        "<file>/s/tide/a&amp;b.py</file>\n"
        "(and more)\n"
        "</skill_files>\n"
        "</skill_content>"
    )
    assert "skill_files" not in output(TIDE, [], has_more=False)
