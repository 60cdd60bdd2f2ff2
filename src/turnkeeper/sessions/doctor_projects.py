"""Examine the project documents: a cache of where each project's files are, made from its sessions.

They follow from no event. One that is missing loses nothing, for readers do without; ``fix`` makes it again from the
sessions of its project. One that cannot be read is reported.
"""

from collections.abc import Iterable, Mapping

import msgspec

from turnkeeper.model.session import Session
from turnkeeper.model.value import encode
from turnkeeper.sessions.create import project_document
from turnkeeper.sessions.diagnosis import Problem
from turnkeeper.sessions.doctor_session import ADVICE_FIX
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine


class _Known(msgspec.Struct):
    """What every reader of a project document needs."""

    id: str
    worktree: str


async def examine(engine: Engine, sessions: Mapping[str, Session], *, fix: bool) -> list[Problem]:
    """Look at the document of each project that sessions belong to; with ``fix`` make useless ones again."""
    by_project: dict[str, list[Session]] = {}
    for session in sessions.values():
        by_project.setdefault(session.project_id, []).append(session)
    stored = await engine.get([keys.project(name) for name in by_project])
    bodies = dict(zip(by_project, stored, strict=True))
    useless = [name for name, body in bodies.items() if not _is_readable(body)]
    if fix and useless:
        await engine.put({keys.project(name): encode(_rebuilt(name, by_project[name])) for name in useless})
    return [
        Problem(
            kind="stale document",
            session_id=None,
            seq=None,
            message=f"project/{name} cannot be read",
            fixed=fix,
            advice=ADVICE_FIX,
        )
        for name in useless
        if bodies[name] is not None
    ]


def _is_readable(body: bytes | None) -> bool:
    try:
        return body is not None and bool(msgspec.json.decode(body, type=_Known))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def _rebuilt(project_id: str, sessions: Iterable[Session]) -> dict[str, object]:
    """The document as its oldest session would have made it."""
    oldest = min(sessions, key=lambda session: session.time.created)
    top = oldest.directory.removesuffix(oldest.path or "").rstrip("/") or "/"
    return project_document(project_id, top, oldest.time.created)
