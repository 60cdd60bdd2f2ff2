"""Interchange: export, import and examination of a store."""

import os
from collections.abc import AsyncIterator, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.api.running import Running
from turnkeeper.core.arguments import checked

if TYPE_CHECKING:
    from turnkeeper.interop.export_all import ExportLayout
    from turnkeeper.interop.report import ImportReport, ProgressReport
    from turnkeeper.interop.transcripts import ProgramName
    from turnkeeper.model.redaction import RedactionReport
    from turnkeeper.sessions.diagnosis import Diagnosis
    from turnkeeper.store.damaged import DamagedNames


@checked
class Interchange(Running):
    """The methods for whole sessions. Imports are inside of them, because most programs neither export nor examine."""

    def export(
        self,
        session_id: str,
        *,
        sanitise: bool = False,
        redact: bool = False,
        damaged: "DamagedNames | None" = None,
    ) -> AsyncIterator[bytes]:
        """A session as JSON in opencode's format, in pieces. ``sanitise`` leaves out texts, ``redact`` masks secrets.

        Raises DamagedDocument if the store is damaged. With a ``damaged`` list, unreadable documents are left out and
        named there, and so are documents that the log contradicts.
        """
        from turnkeeper.interop import export, redacting

        if redact:
            return redacting.chunks(self.store, session_id, self._environ, sanitise=sanitise, damaged=damaged)
        return export.chunks(self.store, session_id, sanitise=sanitise, damaged=damaged)

    def export_html(
        self, session_id: str, *, redact: bool = True, damaged: "DamagedNames | None" = None
    ) -> AsyncIterator[bytes]:
        """A session as one page of HTML, in pieces: no script, nothing is loaded. Secrets are masked by default."""
        from turnkeeper.interop import html_export

        return html_export.chunks(self.store, session_id, self._environ if redact else None, damaged=damaged)

    async def redactions(self, session_id: str) -> "RedactionReport":
        """What a redacted export or a share of a session would mask: counts by kind and place, and no secret."""
        from turnkeeper.interop import redacting

        return await redacting.report(self.store, session_id, self._environ)

    async def export_all(
        self,
        target: str | Path,
        session_ids: Iterable[str] | None = None,
        *,
        layout: "ExportLayout" = "json",
        sanitise: bool = False,
        redact: bool = False,
        progress: "ProgressReport | None" = None,
        damaged: "DamagedNames | None" = None,
    ) -> int:
        """Write these sessions, by default all, to a folder or a ``.jsonl`` file; the number of written sessions.

        With a ``damaged`` list, sessions that cannot be read are left out and named there.
        """
        from turnkeeper.interop import export_all, redacting

        return await export_all.export_all(
            self.store,
            Path(target),
            session_ids,
            layout=layout,
            sanitise=sanitise,
            redactor=redacting.redactor_of(self.store, self._environ) if redact else None,
            progress=progress,
            damaged=damaged,
        )

    async def import_sessions(self, path: str | Path, *, progress: "ProgressReport | None" = None) -> "ImportReport":
        """Import what ``export``, ``export_all`` or opencode wrote. Ids are kept, and stored data is not changed."""
        from turnkeeper.interop import import_json
        from turnkeeper.interop.importer import Importer

        importer = Importer(self.store, progress)
        await importer.take(import_json.open_export(Path(path)))
        return importer.tally.report(str(path))

    async def import_opencode(
        self, path: str | Path | None = None, *, progress: "ProgressReport | None" = None
    ) -> "ImportReport":
        """Import opencode's history: a database, a JSON tree, or by default all history on this machine."""
        from turnkeeper.interop import opencode

        place = Path(path) if path is not None else opencode.default_path(os.environ)
        return await opencode.import_opencode(self.store, place, progress=progress)

    async def import_history(
        self,
        program: "ProgramName",
        path: str | Path | None = None,
        *,
        dry_run: bool = False,
        progress: "ProgressReport | None" = None,
    ) -> "ImportReport":
        """Import the history of another program: by default all of it on this machine, else a file or a directory.

        Importing again adds what is new. ``dry_run`` writes nothing and gives the report that the import would give.
        """
        from turnkeeper.interop.transcripts import import_transcripts

        place = Path(path) if path is not None else None
        return await import_transcripts(self.store, program, place, os.environ, progress=progress, dry=dry_run)

    async def doctor(self, *, fix: bool = False, progress: Callable[[int, int], None] | None = None) -> "Diagnosis":
        """Compare the documents of the store with its logs. ``fix`` writes wrong documents again."""
        from turnkeeper.sessions import doctor

        return await doctor.examine(self.store, fix=fix, progress=progress)
