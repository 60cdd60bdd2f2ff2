"""Kinds of typed lines: a prompt, a shell command, or a slash command. Pure functions."""

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, TypeAlias

from turnkeeper.core.commands import called
from turnkeeper.model.refusal import NotFound

NEAREST: Final = 3


@dataclass(frozen=True)
class PromptLine:
    """Text for the model."""

    text: str


@dataclass(frozen=True)
class ShellLine:
    """A shell command of the user, which runs without a request to a model."""

    command: str


@dataclass(frozen=True)
class SlashLine:
    """A known slash command with its argument."""

    name: str
    argument: str


@dataclass(frozen=True)
class UnknownSlash:
    """An unknown slash command. It is not sent, because a request for a typing error would cost money."""

    name: str
    nearest: tuple[str, ...]
    is_left_out: bool = False
    """Whether the command belongs to an untrusted project."""

    @property
    def message(self) -> str:
        """The error message, with advice."""
        as_it_is = "To send the line as it is, begin it with a space."
        if self.is_left_out:
            return f"There is no /{self.name} until `turnkeeper trust` trusts this project. {as_it_is}"
        near = f" Did you mean {_listed(self.nearest)}?" if self.nearest else ""
        return f"There is no /{self.name}.{near} /help lists them. {as_it_is}"


Line: TypeAlias = PromptLine | ShellLine | SlashLine | UnknownSlash


def parse(text: str, known: Collection[str], left_out: Collection[str] = ()) -> Line | None:
    """Parse a typed text; None for a blank one. A text that begins with a space is always a prompt.

    ``left_out`` are the commands of an untrusted project.
    """
    if not text.strip():
        return None
    if text.startswith("!") and text[1:].strip():
        return ShellLine(text[1:].strip())
    if not text.startswith("/"):
        return PromptLine(text.strip())
    try:
        found = called(text, known, left_out)
    except NotFound:
        name = text[1:].split(maxsplit=1)[0]
        return UnknownSlash(name, nearest(name, known), is_left_out=name in left_out)
    return SlashLine(found.name, found.arguments) if found is not None else PromptLine(text.strip())


def nearest(name: str, known: Collection[str]) -> tuple[str, ...]:
    """The nearest known names: those that begin with the name, then those that are similar to it."""
    lower = {one.lower(): one for one in sorted(known)}
    begun = [one for one in lower if name and one.startswith(name.lower())]
    alike = get_close_matches(name.lower(), lower, n=NEAREST, cutoff=0.5)
    return tuple(lower[one] for one in dict.fromkeys([*begun, *alike]))[:NEAREST]


def _listed(names: tuple[str, ...]) -> str:
    *first, last = [f"/{name}" for name in names]
    return f"{', '.join(first)} or {last}" if first else last
