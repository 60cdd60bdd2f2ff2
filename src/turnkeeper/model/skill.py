"""Skill: a text with know-how for one kind of work, which a model reads when it needs it."""

import posixpath

from turnkeeper.model.value import Value


class Skill(Value):
    """What a ``SKILL.md`` file gives: its name, what it is for, and the text."""

    name: str
    description: str | None = None
    """What it is for. Models are told only of skills that have one."""
    location: str
    """The path of the file."""
    content: str
    """The text below the front matter."""

    @property
    def directory(self) -> str:
        """The directory of the file, with the other files of the skill."""
        return posixpath.dirname(self.location)
