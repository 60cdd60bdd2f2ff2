"""Saved approvals: permissions that a user granted for good, by project and place, in ``approvals.json``.

The file is a ``PrivateJson`` in the data directory: only its owner may read it, and changes are atomic.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.model.permission import Rule, SavedApproval
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.workspace import paths
from turnkeeper.workspace.private_json import PrivateJson
from turnkeeper.workspace.project import approved_place

NAME: Final = "approvals.json"


class ApprovedPlace(NamedTuple):
    """A project, and the top of its repository on this disk; without a repository the directory."""

    project_id: str
    directory: str


class Approvals:
    """The saved approvals of the user of this process. The file is read again only after it has changed."""

    def __init__(self, environ: Mapping[str, str], now: Callable[[], int], new_id: Callable[[str], str]) -> None:
        self._environ, self._now, self._new_id = environ, now, new_id
        self._file: PrivateJson[list[SavedApproval]] | None = None

    def saved(self, project_id: str | None = None) -> tuple[SavedApproval, ...]:
        """The approvals, oldest first; of one project or of all. Raises Invalid if the file is damaged."""
        return tuple(one for one in self._read() if project_id in (None, one.project_id))

    def place(self, session: Session) -> ApprovedPlace:
        """The place in which the approvals of a session hold. It reads the disk."""
        return ApprovedPlace(session.project_id, approved_place(session.directory))

    def rules(self, place: ApprovedPlace) -> tuple[Rule, ...]:
        """The allow rules of the approvals of a place."""
        return tuple(
            Rule(permission=one.permission, pattern=one.pattern, action="allow")
            for one in self._read()
            if (one.project_id, one.directory) == place
        )

    def add(self, session: Session, rules: Sequence[Rule]) -> None:
        """Save approvals of these rules for the place of a session. A rule that is already saved is not added again."""
        project_id, directory = self.place(session)

        def added(saved: list[SavedApproval]) -> list[SavedApproval]:
            known = {(one.project_id, one.directory, one.permission, one.pattern) for one in saved}
            new = [rule for rule in rules if (project_id, directory, rule.permission, rule.pattern) not in known]
            return [*saved, *(self._approval(rule, project_id, directory) for rule in new)]

        self._opened().change(added)

    def revoke(self, id: str) -> bool:
        """Remove an approval; returns whether it existed."""
        is_there = any(one.id == id for one in self._read())
        self._opened().change(lambda saved: [one for one in saved if one.id != id])
        return is_there

    def _approval(self, rule: Rule, project_id: str, directory: str) -> SavedApproval:
        return SavedApproval(
            id=self._new_id("psv"),
            project_id=project_id,
            permission=rule.permission,
            pattern=rule.pattern,
            created=self._now(),
            directory=directory,
        )

    @property
    def path(self) -> Path:
        """The path of the file. Raises Invalid if there is no data directory."""
        try:
            return paths.data(self._environ) / NAME
        except ValueError as error:
            raise Invalid(str(error)) from error

    def _read(self) -> list[SavedApproval]:
        try:
            paths.data(self._environ)
        except ValueError:
            return []  # Without a data directory nothing can have been saved.
        return self._opened().read()

    def _opened(self) -> PrivateJson[list[SavedApproval]]:
        if self._file is None:
            self._file = PrivateJson(self.path, list[SavedApproval], [], advice="; delete it to be asked again")
        return self._file
