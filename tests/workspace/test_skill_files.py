"""Skill files: where they are found, which of two wins, and what is skipped with a word about it."""

import os
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from turnkeeper.core.limits import SKILL_BYTES_MAX, SKILL_FILES_SHOWN, SKILL_FOLDERS_MAX
from turnkeeper.model.config import Config, SkillsConfig
from turnkeeper.workspace.project import ProjectPlace, identify
from turnkeeper.workspace.setting_files import code_directories
from turnkeeper.workspace.skill_files import FoundSkills, beside
from turnkeeper.workspace.skills import SkillLibrary
from turnkeeper.workspace.trust import TrustedDirectories


class Project:
    """A home, and a project in it with a folder for the session."""

    def __init__(self, root: Path) -> None:
        self.home, self.top = root / "home", root / "home" / "project"
        self.inner = self.top / "pkg"
        self.inner.mkdir(parents=True)
        (self.top / ".git").mkdir()
        self.environ = {"HOME": str(self.home)}
        self.library = SkillLibrary(self.environ)
        self.place = ProjectPlace(
            id="p",  # type: ignore[arg-type] # Any id will do.
            directory=self.inner,
            worktree=self.top,
            main_worktree=self.top,
            vcs="git",
            path="pkg",
        )

    async def find(self, *paths: str, **environ: str) -> FoundSkills:
        library = SkillLibrary({**self.environ, **environ}) if environ else self.library
        directories = code_directories(self.inner, self.top, {**self.environ, **environ})
        return await library.skills(self.place, Config(skills=SkillsConfig(paths=paths)), directories)

    async def names(self, *paths: str, **environ: str) -> list[str]:
        return [one.name for one in (await self.find(*paths, **environ)).skills]

    def trust(self) -> None:
        TrustedDirectories(self.environ).add(self.top)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path.resolve())


def put(folder: Path, name: str = "tide", description: str = "Tides") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_text(f"---\nname: {name}\ndescription: {description}\n---\nFrom {folder}.\n")
    return file


PLACES = [
    "home/.claude/skills/a",
    "home/.agents/skills/a",
    "home/project/.claude/skills/a",
    "home/project/.agents/skills/deep/er/a",
    "home/project/pkg/.claude/skills/a",
    "home/project/pkg/.agents/skills/a",
    "home/.config/opencode/skill/a",
    "home/.config/opencode/skills/a",
    "home/.config/turnkeeper/skill/a",
    "home/.config/turnkeeper/skills/a",
    "home/project/.opencode/skill/a",
    "home/project/.opencode/skills",
    "home/project/.turnkeeper/skills/a",
    "home/project/pkg/.opencode/skills/a",
    "home/project/pkg/.turnkeeper/skill/a",
    "home/shared/a",
    "home/project/pkg/own/a",
]
"""Every place, weakest first. The last two are configured."""


async def test_later_places_replace_earlier_ones_with_a_word_about_it(project: Project, tmp_path: Path) -> None:
    project.trust()
    found = [put(tmp_path.resolve() / folder) for folder in PLACES]
    for nth in reversed(range(len(found))):
        skills, problems, _ = await project.find("~/shared", "own")
        [skill] = skills
        assert skill.location == str(found[nth])
        assert problems == tuple(
            f"{after}: the skill 'tide' replaces that of {before}" for before, after in pairwise(found[: nth + 1])
        )
        found[nth].unlink()
    assert await project.find("~/shared", "own") == FoundSkills()


@pytest.mark.parametrize(
    ("environ", "names"),
    [
        ({}, ["agents", "claude", "home", "own"]),
        ({"OPENCODE_DISABLE_EXTERNAL_SKILLS": "1"}, ["own"]),
        ({"OPENCODE_DISABLE_CLAUDE_CODE": "true"}, ["agents", "own"]),
        ({"OPENCODE_DISABLE_CLAUDE_CODE_SKILLS": "TRUE"}, ["agents", "own"]),
        ({"OPENCODE_DISABLE_CLAUDE_CODE_SKILLS": "0"}, ["agents", "claude", "home", "own"]),
        ({"OPENCODE_DISABLE_PROJECT_CONFIG": "1"}, ["home"]),
    ],
)
async def test_variables_switch_places_off(project: Project, environ: dict[str, str], names: list[str]) -> None:
    put(project.home / ".claude/skills/a", "home")
    put(project.top / ".claude/skills/b", "claude")
    put(project.top / ".agents/skills/c", "agents")
    put(project.top / ".turnkeeper/skills/d", "own")
    assert await project.names(**environ) == names


def _linked_out(folder: Path) -> None:
    outside = put(folder.parents[4] / "elsewhere")
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(outside)


def _pipe(folder: Path) -> None:
    folder.mkdir(parents=True)
    os.mkfifo(folder / "SKILL.md")


def _text(content: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_bytes(content)

    return write


def _dangling(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(folder / "nothing")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_text(b"---\nname: [\n---\n"), "its front matter cannot be read"),
        (_text(b"\x7fELF\0\0"), "it is a binary file"),
        (_text(b"---\nname: a\n---\n" + b"x" * SKILL_BYTES_MAX), "is larger than"),
        (_text(b""), "it has no name"),
        (_pipe, "is not a regular file"),
        (lambda folder: (folder / "SKILL.md").mkdir(parents=True), "is a directory, not a file"),
        (_dangling, "it cannot be read: No such file"),
        (_linked_out, "the link leads out of the project"),
    ],
)
async def test_a_file_that_is_wrong_is_skipped_and_named(
    project: Project, make: Callable[[Path], None], why: str
) -> None:
    put(project.top / ".turnkeeper/skills/good")
    make(project.top / ".turnkeeper/skills/bad")
    skills, [problem], _ = await project.find()
    assert [one.name for one in skills] == ["tide"]
    assert problem.startswith(f"{project.top}/.turnkeeper/skills/bad/SKILL.md: skipped: ")
    assert why in problem


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_what_may_not_be_read_is_named(project: Project) -> None:
    put(project.top / ".claude/skills/a").chmod(0)
    locked = project.top / ".agents/skills"
    locked.mkdir(parents=True)
    locked.chmod(0)
    problems = (await project.find()).problems
    locked.chmod(0o700)
    assert problems == (
        f"{project.top}/.claude/skills/a/SKILL.md: skipped: it cannot be read: Permission denied",
        f"{locked}: cannot be searched for skills: Permission denied",
    )


async def test_links_of_the_user_may_lead_anywhere_and_a_loop_of_links_ends(project: Project) -> None:
    file = put(project.home / "elsewhere/tide")
    folder = project.home / ".claude/skills"
    folder.mkdir(parents=True)
    (folder / "tide").symlink_to(file.parent)
    (folder / "loop").symlink_to(folder)
    found = await project.find()
    assert [one.location for one in found.skills] == [str(folder / "tide" / "SKILL.md")]
    assert found.outside == (str(file.parent),)
    assert found.problems == ()


async def test_a_project_that_is_not_trusted_replaces_no_skill_of_the_user(project: Project) -> None:
    mine = put(project.home / ".config/turnkeeper/skills/a")
    other = put(project.top / ".turnkeeper/skills/a")
    put(project.top / ".turnkeeper/skills/b", "reef")
    skills, problems, outside = await project.find()
    assert [one.location for one in skills] == [str(other.parents[1] / "b/SKILL.md"), str(mine)]
    assert problems == (f"{other}: skipped: {mine} has a skill 'tide', which a project replaces only if it is trusted",)
    assert outside == (str(mine.parent),)
    project.trust()
    skills, problems, outside = await project.find()
    assert str(other) in [one.location for one in skills]
    assert problems == (f"{other}: the skill 'tide' replaces that of {mine}",)
    assert outside == ()


async def test_a_link_of_a_project_does_not_hide_what_it_leads_to(project: Project) -> None:
    mine = put(project.home / ".config/turnkeeper/skills/a")
    (project.top / ".claude").mkdir()
    (project.top / ".claude/skills").symlink_to(mine.parents[1])
    (project.top / ".agents/skills/a").mkdir(parents=True)
    (project.top / ".agents/skills/a/SKILL.md").symlink_to(mine)
    found = await project.find()
    assert [one.location for one in found.skills] == [str(mine)]
    assert len(found.problems) == 2


async def test_a_configured_folder_of_the_project_does_not_lead_out_of_it(project: Project) -> None:
    put(project.home / "secret/a")
    (project.inner / "link").symlink_to(project.home / "secret")
    link = f"{project.inner}/link: skipped: the link leads out of the project"
    assert await project.find("link") == FoundSkills(problems=(link,))
    assert await project.names(str(project.home / "secret")) == ["tide"]


async def test_a_changed_file_is_read_again_and_one_that_stays_is_not(project: Project) -> None:
    file = put(project.top / ".turnkeeper/skills/a")
    [first] = (await project.find()).skills
    assert (await project.find()).skills[0] is first
    file.write_text("---\nname: tide\n---\nAnother text.\n")
    assert (await project.find()).skills[0].content == "Another text."


async def test_the_search_is_bounded(project: Project) -> None:
    folder = project.top / ".turnkeeper/skills"
    put(folder.joinpath(*"abcdefgh"), "deep")
    put(folder.joinpath(*"abcdefg"), "seen")
    put(folder / "node_modules/x", "module")
    assert await project.names() == ["seen"]
    for n in range(SKILL_FOLDERS_MAX + 1):
        (folder / f"z{n}").mkdir()
    assert "no further folder is searched" in (await project.find()).problems[0]


async def test_the_files_of_a_skill_are_named_up_to_a_number(project: Project) -> None:
    folder = project.top / ".turnkeeper/skills/a"
    put(folder)
    (folder / "scripts").mkdir()
    for name in ("z.md", "scripts/b.py", "scripts/a.py"):
        (folder / name).write_text("x")
    (folder / "away").symlink_to(project.home)
    [skill] = (await project.find()).skills
    found = beside(skill)
    assert [name.removeprefix(f"{folder}/") for name in found.names] == ["z.md", "scripts/a.py", "scripts/b.py"]
    assert found.has_more is False
    for n in range(SKILL_FILES_SHOWN):
        (folder / f"{n}.txt").write_text("x")
    found = beside(skill)
    assert (len(found.names), found.has_more) == (SKILL_FILES_SHOWN, True)


async def test_without_a_repository_only_the_directory_is_searched(tmp_path: Path) -> None:
    put(tmp_path / ".turnkeeper/skills/a")
    put(tmp_path / "in/.turnkeeper/skills/a", "reef")
    environ, place = {"HOME": str(tmp_path / "home")}, await identify(tmp_path / "in")
    directories = code_directories(place.directory, place.worktree, environ)
    found = await SkillLibrary(environ).skills(place, Config(), directories)
    assert ([one.name for one in found.skills], found.problems) == (["reef"], ())
