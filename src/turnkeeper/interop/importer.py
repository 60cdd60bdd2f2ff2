"""Import every session of a source. Data that cannot be read is reported, and the import continues."""

from pathlib import Path

from anyio import to_thread

from turnkeeper.interop.merge import merge_into_store
from turnkeeper.interop.normalise import Incoming, incoming, is_safe
from turnkeeper.interop.raw import RawObject, RawSession, SessionSource, Unreadable
from turnkeeper.interop.report import Finding, ProgressReport, Tally
from turnkeeper.model.value import encode
from turnkeeper.sessions.create import remember_project
from turnkeeper.store import keys
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace, identify


class Importer:
    """Imports sources one after the other. ``tally`` counts the results of all."""

    def __init__(self, store: Store, progress: ProgressReport | None = None, *, dry: bool = False) -> None:
        """With ``dry``, nothing is written."""
        self._store, self._progress, self._dry = store, progress or (lambda *_: None), dry
        self._places: dict[str, ProjectPlace | None] = {}
        self.seen: set[str] = set()
        """The ids of the sessions that were read."""
        self.tally = Tally()

    async def take(self, source: SessionSource) -> None:
        """Import every session of a source, except those that were read before."""
        names = [name for name in await to_thread.run_sync(source.names) if name not in self.seen]
        await self._projects(await to_thread.run_sync(lambda: list(source.projects())))
        skipped = await to_thread.run_sync(lambda: list(source.skipped()))
        self.tally.skipped.extend(one for one in skipped if one not in self.tally.skipped)
        for done, name in enumerate(names):
            self._progress(done, len(names), name)
            try:
                sessions = await to_thread.run_sync(lambda name: list(source.read(name)), name)
            except Unreadable as error:
                self.tally.unreadable.append(Finding(reason=str(error), place=name))
                continue
            for raw in sessions:
                await self._session(raw)
        self._progress(len(names), len(names), "")

    async def _session(self, raw: RawSession) -> None:
        try:
            session = await to_thread.run_sync(incoming, raw)
        except Unreadable as error:
            self.tally.unreadable.append(Finding(reason=f"its session {error}", place=raw.place))
            return
        self.tally.skipped.extend(session.skipped)
        self.tally.unreadable.extend(session.unreadable)
        session.is_again = session.session.id in self.seen
        self.seen.add(session.session.id)
        await self._place(session)
        await merge_into_store(self._store, session, self.tally, dry=self._dry)

    async def _place(self, session: Incoming) -> None:
        """Set the directory and project of the session to those of this machine, if its directory exists here.

        Other programs store directories as they were typed, with links in them.
        """
        place = await self._identified(session.session.directory)
        if place is not None:
            session.session = session.session.but(directory=str(place.directory))
        if place is not None and (session.session.project_id in place.aliases or not session.has_project):
            session.session = session.session.but(project_id=place.id)
            if not self._dry:
                await remember_project(self._store, place)

    async def _identified(self, directory: str) -> ProjectPlace | None:
        if directory not in self._places:
            is_there = await to_thread.run_sync(_is_directory, directory)
            self._places[directory] = await identify(Path(directory), every_alias=True) if is_there else None
        return self._places[directory]

    async def _projects(self, projects: list[RawObject]) -> None:
        documents = {keys.project(project["id"]): encode(project) for project in projects if is_safe(project["id"])}
        known = await self._store.engine.get(list(documents))
        new = {key: documents[key] for key, there in zip(documents, known, strict=True) if there is None}
        if new and not self._dry:
            await self._store.engine.put(new)


def _is_directory(name: str) -> bool:
    try:
        return Path(name).is_absolute() and Path(name).is_dir()
    except (OSError, ValueError):  # The name is too long, or has a NUL.
        return False
