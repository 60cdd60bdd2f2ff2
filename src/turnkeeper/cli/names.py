"""What people type where a session, a directory or a model is expected: an id, the beginning of one, a slug, a name."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.reach import Sessions, here
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.store.engine import Key

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.session import Session

BEGINNING_MIN = 4
"""How much of an id must be given behind its prefix. Less would name something by accident."""
CANDIDATES_MAX = 8


def model(given: str | None) -> "ModelChoice | None":
    """The model that somebody means; whether there is one is for others to say. Raises Invalid if it names none."""
    from turnkeeper.model.message import ModelChoice

    if given is None:
        return None
    provider_id, _, model_id = given.partition("/")
    if not provider_id or not model_id:
        raise UsageError(f"{given!r} names no model; write PROVIDER/MODEL, as `turnkeeper models` lists them")
    return ModelChoice(provider_id=provider_id, model_id=model_id)


async def session(tk: Sessions, given: str) -> str:
    """The id of the session that somebody means. Raises NotFound, or Conflict if it may be several."""
    if given.startswith("ses_"):
        found = await _beginning(tk, ("state",), given, "ses_")
    else:
        found = await _with_slug(tk, given) or await _beginning(tk, ("state",), f"ses_{given}", "ses_")
    if len(found) > 1:
        raise Conflict(f"{given!r} may be any of these sessions; give more of the id:\n{await _lines(tk, found)}")
    if not found and given.startswith("ses_") and len(given) < len("ses_") + BEGINNING_MIN:
        raise UsageError(f"{given!r} is too short for an id; give at least {BEGINNING_MIN} characters after ses_")
    if not found:
        raise NotFound(f"there is no session {given!r}; `turnkeeper session list --all` shows all of them")
    return found[0]


async def message(tk: Sessions, session_id: str, given: str) -> str:
    """The id of the message in this session that somebody means."""
    prefix = ("message", session_id)
    found = await _beginning(tk, prefix, given, "msg_")
    if len(found) > 1:
        raise Conflict(f"{given!r} may be any of these messages; give more of the id:\n{_indented(found)}")
    if not found:
        raise NotFound(
            f"there is no message {given!r} in session {session_id!r}; "
            f"`turnkeeper session messages {session_id}` shows them"
        )
    return found[0]


async def project(tk: Sessions, given: str) -> str:
    """The id of the project that somebody means: by its id, the beginning of it, or a directory in it."""
    if given in (".", "..", "~") or "/" in given:
        from turnkeeper.workspace.project import identify

        return (await identify(directory(given))).id
    found = await _beginning(tk, ("project",), given, "")
    if len(found) > 1:
        raise Conflict(f"{given!r} may be any of these projects; give more of the id:\n{_indented(found)}")
    if not found:
        raise NotFound(f"there is no project {given!r}; give the id `session show` prints, or a directory")
    return found[0]


def directory(given: str | Path, *, is_near: bool = True) -> Path:
    """A directory that is there, resolved as sessions store it. Raises Invalid. On another machine, only its name."""
    if not is_near:
        if not Path(given).is_absolute():
            raise UsageError(f"{str(given)!r} is on another machine; give its whole path there")
        return Path(given)
    path = Path(given).expanduser().resolve()
    if not path.is_dir():
        raise Invalid(f"{str(given)!r} is not a directory; name one that exists")
    return path


async def _beginning(tk: Sessions, kind: Key, given: str, prefix: str) -> list[str]:
    """The ids of this kind that are, or else begin with, what was given."""
    if not _could_be_a_segment(given):
        return []
    enough = len(given) >= len(prefix) + BEGINNING_MIN
    if (store := here(tk)) is not None:
        return await _stored(store, kind, given, enough=enough)
    known = await _told(tk, kind, given)
    found = [one for one in known if one == given] or [one for one in known if enough and one.startswith(given)]
    return found[: CANDIDATES_MAX + 1]


async def _stored(tk: "Turnkeeper", kind: Key, given: str, *, enough: bool) -> list[str]:
    [exact] = await tk.store.engine.get([(*kind, given)])
    if exact is not None or (kind == ("state",) and await tk.store.engine.length(given)):
        return [given]  # A session whose documents are lost is known by its log.
    if not enough:
        return []
    # "~" stands behind every character an id may have.
    found = await tk.store.engine.scan(
        kind, after=(*kind, given), before=(*kind, f"{given}~"), limit=CANDIDATES_MAX + 1
    )
    return [key[-1] for key, _ in found]


async def _told(tk: Sessions, kind: Key, given: str) -> list[str]:
    """Every id of this kind that a server tells of. A session that exists under the very word is found at once."""
    match kind:
        case ("message", session_id):
            found, before = [], None
            while True:
                page = await tk.messages(session_id, limit=200, before=before)
                found += [one.info.id for one in page.items]
                if (before := page.older) is None:
                    return found
        case ("project",):
            return sorted({one.project_id async for one in _every(tk)})
    try:
        return [(await tk.get(given)).id]
    except (NotFound, Invalid):
        return [one.id async for one in _every(tk)]


async def _with_slug(tk: Sessions, given: str) -> list[str]:
    """The sessions of this slug. There is no index by slug: people type one now and then, programs never do."""
    return [one.id async for one in _every(tk) if one.slug == given]


async def _every(tk: Sessions) -> "AsyncIterator[Session]":
    after = None
    while True:
        page = await tk.list(roots=False, archived=True, limit=1000, after=after)
        for one in page.items:
            yield one
        if (after := page.older) is None:
            return


async def _lines(tk: Sessions, ids: list[str]) -> str:
    sessions = [await tk.get(one) for one in ids[:CANDIDATES_MAX]]
    return _indented([f"{one.id}  {one.title}" for one in sessions], more=len(ids) > CANDIDATES_MAX)


def _indented(lines: Iterable[str], *, more: bool = False) -> str:
    return "\n".join([*(f"  {line}" for line in lines), *(["  ..."] if more else [])])


def _could_be_a_segment(given: str) -> bool:
    is_text = not any("\ud800" <= character <= "\udfff" for character in given)
    return bool(given) and is_text and "/" not in given and "\x00" not in given
