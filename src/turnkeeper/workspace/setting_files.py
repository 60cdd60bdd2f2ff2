"""Search paths of settings: files and directories, weakest first, whether they exist or not."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from turnkeeper.core import flags
from turnkeeper.workspace import markdown_files, paths, setting_references
from turnkeeper.workspace.markdown_files import MarkdownFile


class CodeDirectory(NamedTuple):
    """A directory of settings, which may also contain tools, plugins and skills."""

    path: Path
    is_project: bool


def user_files(environ: Mapping[str, str]) -> Iterator[Path]:
    """The files in the user's configuration directories."""
    theirs, ours = user_directories(environ)
    yield from (theirs / name for name in (paths.USER_SETTINGS, *paths.SETTINGS[:2]))
    yield from (ours / name for name in (paths.USER_SETTINGS, paths.FOLDER_SETTINGS, *paths.SETTINGS))


def project_files(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[Path | MarkdownFile]:
    """The configuration files of a project, also those that do not exist, and its markdown files."""
    yield from plain_project_files(directory, worktree, environ)
    for place in project_directories(directory, worktree, environ):
        yield from files_in(place)
        yield from markdown_files.found_in(place)


def plain_project_files(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The configuration files of a project that are in no directory of settings."""
    return [folder / name for folder in project_folders(directory, worktree, environ) for name in paths.SETTINGS]


def project_directories(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The directories of settings of a project, also those that do not exist."""
    return [
        folder / name for folder in project_folders(directory, worktree, environ) for name in paths.SETTINGS_FOLDERS
    ]


def files_in(place: Path) -> list[Path]:
    """The configuration files of a directory of settings."""
    return [place / name for name in (paths.FOLDER_SETTINGS, *paths.SETTINGS)]


def named_directories(directory: Path, environ: Mapping[str, str]) -> list[Path]:
    """The directories of settings that variables name."""
    return [setting_references.path_from(name, directory, environ) for name in flags.CONFIG_DIR.values(environ)]


def named_directory_files(directory: Path, environ: Mapping[str, str]) -> Iterator[Path | MarkdownFile]:
    """The files of the directories that variables name, and their markdown files."""
    for place in named_directories(directory, environ):
        yield from files_in(place)
        yield from markdown_files.found_in(place)


def named_files(directory: Path, environ: Mapping[str, str]) -> list[Path]:
    """The files that variables name."""
    return [setting_references.path_from(name, directory, environ) for name in flags.CONFIG.values(environ)]


def user_directories(environ: Mapping[str, str]) -> tuple[Path, Path]:
    """The user's configuration directories: opencode's and ours."""
    return paths.config(environ, paths.OPENCODE), paths.config(environ)


def code_directories(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[CodeDirectory]:
    """The directories of settings of a place, weakest first: the user's, the project's, and those of variables."""
    return [
        *(CodeDirectory(path, False) for path in user_directories(environ)),
        *(CodeDirectory(path, True) for path in project_directories(directory, worktree, environ)),
        *(CodeDirectory(path, False) for path in named_directories(directory, environ)),
    ]


def project_folders(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The directories from the worktree down to ``directory``; outside of the worktree, only ``directory``."""
    if flags.DISABLE_PROJECT_CONFIG.is_on(environ):
        return []
    upward = (directory, *directory.parents)
    return [*reversed(upward[: upward.index(worktree) + 1])] if worktree in upward else [directory]
