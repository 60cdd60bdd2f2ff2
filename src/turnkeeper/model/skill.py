"""Skill: a text with know-how for one kind of work, which a model reads when it needs it."""

import posixpath

from turnkeeper.model.value import Value


class Skill(Value):
    """The content of a ``SKILL.md`` file: its name, its purpose and its text."""

    name: str
    description: str | None = None
    """The purpose of the skill. Models are told only of skills with a description."""
    location: str
    """The path of the file."""
    content: str
    """The text below the front matter."""

    @property
    def directory(self) -> str:
        """The directory of the file, with the other files of the skill."""
        return posixpath.dirname(self.location)
