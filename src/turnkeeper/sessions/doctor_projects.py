"""Examine the project documents: a cache of the worktree of each project.

They are derived from no event. Readers do without a missing one; ``fix`` writes it again from the sessions of the
project. A document that cannot be read is reported.
"""

from collections.abc import Iterable, Mapping

import msgspec

from turnkeeper.model.session import Session
from turnkeeper.model.value import encode
from turnkeeper.sessions.create import project_document
from turnkeeper.sessions.diagnosis import Problem, problem
from turnkeeper.sessions.doctor_session import ADVICE_FIX
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine


class _Known(msgspec.Struct):
    """The required fields of a project document."""

    id: str
    worktree: str


async def examine(engine: Engine, sessions: Mapping[str, Session], *, fix: bool) -> list[Problem]:
    """Examine the document of each project that has sessions; with ``fix`` write missing or wrong ones again."""
    by_project: dict[str, list[Session]] = {}
    for session in sessions.values():
        by_project.setdefault(session.project_id, []).append(session)
    stored = await engine.get([keys.project(name) for name in by_project])
    bodies = dict(zip(by_project, stored, strict=True))
    useless = [name for name, body in bodies.items() if not _is_readable(body)]
    if fix and useless:
        await engine.put({keys.project(name): encode(_rebuilt(name, by_project[name])) for name in useless})
    unreadable = [name for name in useless if bodies[name] is not None]
    return [problem("stale document", f"project/{name} cannot be read", ADVICE_FIX, fixed=fix) for name in unreadable]


def _is_readable(body: bytes | None) -> bool:
    try:
        return body is not None and bool(msgspec.json.decode(body, type=_Known))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def _rebuilt(project_id: str, sessions: Iterable[Session]) -> dict[str, object]:
    """The document, derived from the oldest session of the project."""
    oldest = min(sessions, key=lambda session: session.time.created)
    top = oldest.directory.removesuffix(oldest.path or "").rstrip("/") or "/"
    return project_document(project_id, top, oldest.time.created)
