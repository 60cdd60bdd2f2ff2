"""Skill files: finds the SKILL.md files of a directory, and reads them.

Later places override earlier ones: ``.claude/skills`` and ``.agents/skills`` in the home, then from the top of the
project down to the directory; ``skill`` and ``skills`` in each directory of settings; configured directories. A file
of a project must be inside the project, with links resolved. A skill of a project that is not trusted does not replace
one of the user: rules allow skills by their names.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.core import flags
from turnkeeper.core.limits import SKILL_BYTES_MAX, SKILL_FILES_SHOWN, SKILL_FOLDERS_MAX
from turnkeeper.core.skills import parsed
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.skill import Skill
from turnkeeper.workspace import files, setting_files
from turnkeeper.workspace.folder_entries import is_folder
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.setting_files import CodeDirectory
from turnkeeper.workspace.setting_references import path_from
from turnkeeper.workspace.trust import TrustedDirectories

NAME: Final = "SKILL.md"
CLAUDE: Final = ".claude"
SHARED: Final = (CLAUDE, ".agents")
"""The directories of other programs that have a folder ``skills``."""
FOLDERS: Final = ("skill", "skills")
"""The folders of a directory of settings."""

DEPTH_MAX: Final = 8
"""Maximum depth of searched folders, which ends a loop of links."""
CACHED_MAX: Final = 4096
_PASSED_OVER: Final = frozenset({".git", "node_modules"})


class SkillPlace(NamedTuple):
    """A folder that is searched for skills."""

    folder: Path
    is_project: bool
    """Whether it belongs to the project."""


class FoundSkills(NamedTuple):
    """The skills of a directory by name, and the problems of skipped files."""

    skills: tuple[Skill, ...] = ()
    problems: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    """The directories of the skills that are not in the project, with links resolved."""


class SkillReader:
    """Finds skills. A file is read again only when it changed."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._known: dict[Path, tuple[tuple[int, ...] | None, Skill | str]] = {}

    def find(self, place: ProjectPlace, searched: Sequence[SkillPlace]) -> FoundSkills:
        """The skills in these folders. Reads the disk; an invalid file is a problem and not an exception."""
        search = _Search(place.top.resolve(), lambda: place.directory in TrustedDirectories(self._environ))
        for one in searched:
            for file in search.files(one.folder, one.is_project):
                search.take(file, one.is_project, self._read)
        return search.found()

    def _read(self, file: Path) -> Skill | str:
        stamp = files.stamp(file)
        known = self._known.get(file)
        if known is None or known[0] != stamp or stamp is None:
            if len(self._known) >= CACHED_MAX:
                self._known.clear()
            known = self._known[file] = stamp, _read(file)
        return known[1]


class _Search:
    """State of one search: the skills and problems found so far."""

    def __init__(self, top: Path, is_trusted: Callable[[], bool]) -> None:
        self._top, self._is_trusted = top, is_trusted
        self._skills: dict[str, tuple[Skill, bool]] = {}
        self._seen: set[Path] = set()
        self._problems: list[str] = []
        self._folders = 0

    def files(self, folder: Path, is_project: bool, depth: int = DEPTH_MAX) -> Iterator[Path]:
        """The skill files below a folder, in a fixed order. Links to folders are followed, each folder once."""
        if not self._is_new(folder, is_project):
            return
        self._folders += 1
        if self._folders > SKILL_FOLDERS_MAX:
            if self._folders == SKILL_FOLDERS_MAX + 1:
                self._problems.append(f"{folder}: no further folder is searched for skills after {SKILL_FOLDERS_MAX}")
            return
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, ValueError) as error:
            self._problems.append(f"{folder}: cannot be searched for skills: {_reason(error)}")
            return
        for entry in entries:
            if entry.name == NAME:
                yield folder / NAME
            elif depth > 1 and entry.name not in _PASSED_OVER and is_folder(entry):
                yield from self.files(folder / entry.name, is_project, depth - 1)

    def take(self, file: Path, is_project: bool, read: Callable[[Path], Skill | str]) -> None:
        """Add the skill of a file, or the reason why it is skipped."""
        if not self._is_new(file, is_project):
            return
        skill = read(file)
        if isinstance(skill, str):
            self._problems.append(f"{file}: skipped: {skill}")
            return
        if (earlier := self._skills.get(skill.name)) is not None:
            was = earlier[0].location
            if is_project and not earlier[1] and not self._is_trusted():
                self._problems.append(
                    f"{file}: skipped: {was} has a skill {skill.name!r}, which a project replaces only if it is trusted"
                )
                return
            self._problems.append(f"{file}: the skill {skill.name!r} replaces that of {was}")
        self._skills[skill.name] = skill, is_project

    def _is_new(self, path: Path, is_project: bool) -> bool:
        """Whether a file or folder is read: not if it was read before, or if a link leads out of the project."""
        real = files.real(path)
        if is_project and not real.is_relative_to(self._top):
            self._problems.append(f"{path}: skipped: the link leads out of the project")
            return False
        is_new = real not in self._seen
        self._seen.add(real)
        return is_new

    def found(self) -> FoundSkills:
        """The result."""
        kept = [self._skills[name] for name in sorted(self._skills)]
        real = (files.real(Path(skill.directory)) for skill, is_project in kept if not is_project)
        outside = dict.fromkeys(str(one) for one in real if not one.is_relative_to(self._top))
        return FoundSkills(tuple(skill for skill, _ in kept), tuple(self._problems), tuple(outside))


def places(
    place: ProjectPlace, paths: Iterable[str], directories: Iterable[CodeDirectory], environ: Mapping[str, str]
) -> list[SkillPlace]:
    """The folders that are searched for skills, weakest first; ``directories`` are those of settings."""
    # Without a repository the project is the directory, and the directories above it belong to no project.
    folders = setting_files.project_folders(place.directory, place.top, environ)
    names = [] if flags.DISABLE_EXTERNAL_SKILLS.is_on(environ) else [*SHARED]
    if any(flag.is_on(environ) for flag in (flags.DISABLE_CLAUDE_CODE, flags.DISABLE_CLAUDE_CODE_SKILLS)):
        names = [name for name in names if name != CLAUDE]
    home = [Path(environ["HOME"])] if environ.get("HOME") else []
    found = [SkillPlace(folder / name / "skills", False) for folder in home for name in names]
    found += [SkillPlace(folder / name / "skills", True) for folder in folders for name in names]
    for directory, is_project in directories:
        if not is_project or directory.parent in folders:
            found += [SkillPlace(directory / name, is_project) for name in FOLDERS]
    given = [Path(os.path.normpath(path_from(name, place.directory, environ))) for name in paths]
    return [*found, *(SkillPlace(folder, folder.is_relative_to(place.top)) for folder in given)]


class SkillFolder(NamedTuple):
    """The further files of a skill."""

    names: tuple[str, ...]
    has_more: bool


def beside(skill: Skill) -> SkillFolder:
    """The first files beside a SKILL.md file and below, by path."""
    found: list[str] = []
    for nth, (folder, folders, names) in enumerate(os.walk(skill.directory)):
        # Links to folders are not followed: they may lead to files that do not belong to the skill.
        folders[:] = sorted(set(folders) - _PASSED_OVER) if nth < SKILL_FOLDERS_MAX else []
        found += [path for name in sorted(names) if (path := os.path.join(folder, name)) != skill.location]
        if len(found) > SKILL_FILES_SHOWN:
            break
    return SkillFolder(tuple(found[:SKILL_FILES_SHOWN]), len(found) > SKILL_FILES_SHOWN)


def _read(file: Path) -> Skill | str:
    """The skill of a file, or the reason why it is invalid."""
    try:
        return parsed(files.read_bytes(file, SKILL_BYTES_MAX), files.printable(str(file)))
    except OSError as error:
        return f"it cannot be read: {_reason(error)}"
    except Invalid as error:
        return str(error)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
