"""Skills of a place: from its files, its settings and the addresses they name."""

import os
from collections.abc import Mapping, Sequence

from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.model.config import Config
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.setting_files import CodeDirectory
from turnkeeper.workspace.skill_downloads import SkillDownloads
from turnkeeper.workspace.skill_files import FoundSkills, SkillPlace, SkillReader, places


class SkillLibrary:
    """Finds the skills of places. Files and downloads are cached until they change."""

    def __init__(self, environ: Mapping[str, str], group: TaskGroup | None = None) -> None:
        """``group`` is the task group of background downloads. None: each download is waited for."""
        self._environ = environ
        self._reader, self._downloads = SkillReader(environ), SkillDownloads(environ, group)

    async def skills(self, place: ProjectPlace, config: Config, directories: Sequence[CodeDirectory]) -> FoundSkills:
        """The skills of a place with this configuration, and of its directories of settings.

        An invalid file or address is reported in ``problems``.
        """
        given = config.skills
        downloaded = await self._downloads.folders(given.urls, private=config.webfetch.private is True)
        found_here = places(place, given.paths, directories, self._environ)
        searched = [*found_here, *(SkillPlace(one, False) for one in downloaded.folders)]
        existing = [one for one in searched if os.path.lexists(one.folder)]
        if not existing:  # Most directories have none, and a thread costs more than the look.
            return FoundSkills(problems=downloaded.problems)
        found = await to_thread.run_sync(self._reader.find, place, existing, abandon_on_cancel=True)
        return found._replace(problems=(*found.problems, *downloaded.problems))
