"""The commands about skills: which there are, where each comes from, and what one says."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, note
from turnkeeper.cli.screen import Column, Screen, fields, harmless, one_line, table
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.model.agent import Agent
    from turnkeeper.model.skill import Skill

Agent_ = Annotated[str | None, Parameter(name="--agent", metavar="NAME", help="For this agent, not the default one.")]


async def list_skills(*, agent: Agent_ = None, options: Options) -> None:
    """List the skills of the working directory, and where each comes from.

    Skills are SKILL.md files in `skill` and `skills` folders of your configuration
    directory, of .turnkeeper and .opencode, in .claude/skills and .agents/skills,
    and where the setting `skills` says. The model is told of those with a
    description, and loads one when it needs it. RULE is what happens then.

    With --json the answer is {"items": [{"name", "description", "rule",
    "location"}], "agent", "problems"}; "problems" are files that were skipped or
    replaced.

    For example:
      turnkeeper skill list
      turnkeeper skill list --agent plan --json | jq -r '.items[].name'
    """
    found = await _known(options.environ, agent)
    rows = [
        {"name": one.name, "description": one.description, "rule": found.rule(one), "location": one.location}
        for one in found.skills
    ]
    answer_items(options, rows, found.table, agent=found.agent.name, problems=found.problems)
    if not options.json:
        for problem in found.problems:
            note(harmless(problem))


async def show(
    name: Annotated[str, Parameter(metavar="NAME", help="The name of the skill.")], /, *, options: Options
) -> None:
    """Show a skill: where it is, its other files, and its text.

    With --json the answer is {"name", "description", "location", "content",
    "files"}; "files" are the first of its further files.

    For example:
      turnkeeper skill show release-notes
    """
    from turnkeeper.workspace.skill_files import beside

    found = await _known(options.environ, None)
    skill = next((one for one in found.skills if one.name == name), None)
    if skill is None:
        known = ", ".join(one.name for one in found.skills)
        raise NotFound(f"there is no skill {name!r}; {f'the skills are: {known}' if known else 'there are none here'}")
    others = beside(skill).names
    value = {
        "name": skill.name,
        "description": skill.description,
        "location": skill.location,
        "content": skill.content,
        "files": others,
    }
    answer(options, value, lambda screen: _described(screen, skill, others))


class _Known(NamedTuple):
    """The skills of a directory, and the agent that is to use them."""

    skills: "tuple[Skill, ...]"
    problems: tuple[str, ...]
    agent: "Agent"

    def rule(self, skill: "Skill") -> str:
        """Whether the agent may load a skill: allow, ask or deny."""
        from turnkeeper.core.permission import evaluate
        from turnkeeper.core.skills import TOOL

        return evaluate(self.agent.permission, TOOL, skill.name)

    def table(self, screen: Screen) -> str:
        """The list as a table."""
        if not self.skills:
            return "There are no skills here. A skill is a file .turnkeeper/skills/NAME/SKILL.md."
        return table(
            screen,
            Column("SKILL", [harmless(one.name) for one in self.skills], ("cyan",)),
            Column("RULE", [self.rule(one) for one in self.skills]),
            Column("DESCRIPTION", [_purpose(one) for one in self.skills], least=16, is_optional=True),
            Column("FROM", [screen.path(one.location) for one in self.skills], ("dim",), least=12, keep_end=True),
        )


async def _known(environ: Mapping[str, str], agent: str | None) -> _Known:
    from turnkeeper.core.agents import default_agent, find_agent
    from turnkeeper.run.configured import configured_agents
    from turnkeeper.workspace.config import load
    from turnkeeper.workspace.project import identify
    from turnkeeper.workspace.skills import SkillLibrary

    place = await identify(Path.cwd())
    loaded = load(place.directory, place.worktree, environ)
    config = loaded.config
    agents = configured_agents(config, environ)
    try:
        chosen = find_agent(agents, agent) if agent is not None else default_agent(agents, config)
    except Invalid as error:
        raise UsageError(str(error)) from error
    found = await SkillLibrary(environ).skills(place, config, loaded.directories)
    return _Known(found.skills, found.problems, chosen)


def _purpose(skill: "Skill") -> str:
    return one_line(skill.description or "(no description: the model is not told of it)")


def _described(screen: Screen, skill: "Skill", others: tuple[str, ...]) -> str:
    head = fields(
        screen,
        [
            ("Skill", screen.paint(harmless(skill.name), "bold")),
            ("For", _purpose(skill)),
            ("From", screen.path(skill.location)),
            *(("Files" if nth == 0 else "", screen.path(one)) for nth, one in enumerate(others)),
        ],
    )
    return "\n\n".join([head, "\n".join(map(harmless, skill.content.splitlines()))])
