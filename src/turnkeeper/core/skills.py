"""Skills: the parsing of SKILL.md files, the skills that an agent may use, and their texts for models."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import accumulate
from typing import Final

from turnkeeper.core.limits import SKILL_DESCRIPTION_CHARS_MAX, SKILLS_LISTED_CHARS_MAX
from turnkeeper.core.permission import evaluate, hides
from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.skill import Skill
from turnkeeper.text import frontmatter

TOOL: Final = "skill"
"""The name of the tool, and of its permission."""

_NAME: Final = re.compile(r"\w[\w.:-]{0,63}")


def is_name(name: str) -> bool:
    """Whether a skill can have this name."""
    return _NAME.fullmatch(name) is not None


def parsed(content: bytes, location: str) -> Skill:
    """The skill of a file. Raises Invalid, which says what is wrong with the file."""
    if b"\0" in content:
        raise Invalid("it is a binary file")
    try:
        values, body = frontmatter.parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Invalid("it is not UTF-8 text") from error
    except frontmatter.FrontmatterError as error:
        raise Invalid(f"its front matter cannot be read: {error}") from error
    name, description = values.get("name"), values.get("description")
    if name is None:
        raise Invalid("it has no name; put `name: ...` between two lines of --- at its top")
    if not isinstance(name, str) or not is_name(name):
        raise Invalid(
            f"{name!r:.80} cannot name a skill; use up to 64 letters, digits, '-', '_', '.' and ':', and no spaces"
        )
    if description is not None and not isinstance(description, str):
        raise Invalid(f"its description is {description!r:.80} and not a text")
    return Skill(name=name, description=_short(description or "") or None, location=location, content=body)


def usable(skills: Iterable[Skill], rules: Sequence[Rule]) -> tuple[Skill, ...]:
    """The skills that rules do not deny, by name; none if they deny the tool altogether."""
    if hides(rules, TOOL):
        return ()
    return tuple(sorted((one for one in skills if is_usable(one, rules)), key=lambda one: one.name))


def is_usable(skill: Skill, rules: Sequence[Rule]) -> bool:
    """Whether rules let an agent use a skill, possibly only after asking the user."""
    return evaluate(rules, TOOL, skill.name) != "deny"


def listing(skills: Iterable[Skill]) -> str | None:
    """The list that a model is shown of skills it may use; None if none of them is described."""
    entries = [_entry(one) for one in skills if one.description is not None]
    if not entries:
        return None
    lengths = accumulate(map(len, entries))
    shown = [entry for entry, length in zip(entries, lengths, strict=True) if length <= SKILLS_LISTED_CHARS_MAX]
    rest = len(entries) - len(shown)
    more = [f"  (and {rest} more, for which there is no room here)"] if rest else []
    return "\n".join(["<available_skills>", *shown, *more, "</available_skills>"])


def output(skill: Skill, files: Sequence[str], *, has_more: bool) -> str:
    """A skill as a model reads it. ``files`` are paths of further files of the skill."""
    listed = [f"<file>{escape(one, quote=False)}</file>" for one in files]
    beside = ["<skill_files>", *listed, *(["(and more)"] if has_more else []), "</skill_files>"] if files else []
    lines = [
        f'<skill_content name="{escape(skill.name)}">',
        skill.content,
        "",
        f"Base directory of this skill: {skill.directory}",
        "Relative paths in the text begin there. Read a file of the skill when the text sends you to it.",
        *beside,
        "</skill_content>",
    ]
    return "\n".join(lines)


def _entry(skill: Skill) -> str:
    fields = (("name", skill.name), ("description", skill.description or ""), ("location", skill.location))
    lines = [f"    <{key}>{escape(value, quote=False)}</{key}>" for key, value in fields]
    return "\n".join(["  <skill>", *lines, "  </skill>"])


def _short(description: str) -> str:
    """A description in one line and of bounded length: models read it in every request."""
    line = " ".join(description.split())
    return line if len(line) <= SKILL_DESCRIPTION_CHARS_MAX else f"{line[: SKILL_DESCRIPTION_CHARS_MAX - 1]}…"
