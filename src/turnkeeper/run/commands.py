"""The commands of a directory, from every place that commands come from."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from turnkeeper.context.texts import text
from turnkeeper.core.commands import ACTIONS, hints
from turnkeeper.model.command import Command
from turnkeeper.model.skill import Skill
from turnkeeper.workspace.config import LoadedSettings

INIT: Final = "init"
REVIEW: Final = "review"
SKILL: Final = "{text}\n\nPaths in this text are relative to {directory}."


class CommandPlaces(NamedTuple):
    """The places that the commands of a directory are read from."""

    settings: LoadedSettings
    skills: Sequence[Skill] = ()
    plugins: Sequence[Command] = ()
    """Commands that plugins registered."""
    served: Sequence[Command] = ()
    """The prompts of MCP servers."""


def known_commands(places: CommandPlaces) -> dict[str, Command]:
    """The commands by name. A later source of SOURCES overrides an earlier one."""
    found = {command.name: command for source in SOURCES for command in source(places)}
    return dict(sorted(found.items()))


def _skills(places: CommandPlaces) -> Iterable[Command]:
    for skill in places.skills:
        yield Command(
            name=skill.name,
            template=SKILL.format(text=skill.content, directory=skill.directory),
            description=skill.description,
            source="skill",
            where=skill.location,
        )


def _actions(places: CommandPlaces) -> Iterable[Command]:
    return ACTIONS.values()


def _built_in(places: CommandPlaces) -> Iterable[Command]:
    yield _prompt(Command(name=INIT, template=text(INIT), description="Write or improve AGENTS.md."))
    about = "Review what is not committed, or a commit, a branch or a pull request."
    yield _prompt(Command(name=REVIEW, template=text(REVIEW), description=about, subtask=True))


def _plugged(places: CommandPlaces) -> Iterable[Command]:
    return places.plugins


def _served(places: CommandPlaces) -> Iterable[Command]:
    """Before those of files: a server does not take the place of a command that the user wrote."""
    return places.served


def _configured(places: CommandPlaces) -> Iterable[Command]:
    """The commands of the configuration and of markdown files. Untrusted ones are not among the settings."""
    for name, given in places.settings.config.command.items():
        source = places.settings.setting_sources("command", name)[-1]
        command = Command(
            name=name,
            template=given.template,
            description=given.description,
            agent=given.agent,
            model=given.model,
            variant=given.variant,
            subtask=given.subtask,
            where=source.where,
            is_own=source.is_own,
        )
        yield _prompt(command)


def _prompt(command: Command) -> Command:
    return command.but(hints=hints(command.template))


SOURCES: Final[tuple[Callable[[CommandPlaces], Iterable[Command]], ...]] = (
    _skills,
    _actions,
    _built_in,
    _plugged,
    _served,
    _configured,
)
"""The sources of commands, weakest first."""
