"""How users name a session, a message, a project, a directory or a model: by an id, a prefix of it, a slug, a path."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter
from cyclopts.validators import Number

from turnkeeper.cli import candidates
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import local_store
from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.store.engine import Key, is_key
from turnkeeper.text.number import number_in

if TYPE_CHECKING:
    from cyclopts import Token

    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.session import Session

PREFIX_MIN = 4
"""How many characters after the type prefix a shortened id needs. Fewer would match by accident."""
CANDIDATES_MAX = 8

SessionName = Annotated[
    str,
    Parameter(metavar="ID", help="The session: its id, a prefix of it, or its slug.", completer=candidates.sessions),
]
Limit = Annotated[
    int, Parameter(name=("--limit", "-n"), metavar="N", help="How many at most.", validator=Number(gte=1))
]


def whole(_: object, tokens: "Sequence[Token]") -> int:
    """The number of an event. Other numbers would be rounded."""
    [given] = [token.value for token in tokens]
    if (number := number_in(given)) is None:
        raise ValueError(f"{given!r} is not the number of an event")
    return number


Seq = Annotated[int | None, Parameter(metavar="SEQ", converter=whole, help="As it was after this event of its log.")]


def model(given: str | None) -> "ModelChoice | None":
    """The model of PROVIDER/MODEL, which need not exist. Raises UsageError if the text has another form."""
    from turnkeeper.model.message import ModelChoice

    if given is None:
        return None
    try:
        return ModelChoice.parse(given)
    except Invalid as error:
        raise UsageError(str(error)) from error


async def session(tk: "Turnkeeper | Client", given: str) -> str:
    """The id of the named session. Raises NotFound, or Conflict if the name fits several."""
    if given.startswith("ses_"):
        found = await _with_prefix(tk, ("state",), given, "ses_")
    else:
        # Found by reading all sessions: slugs are typed by people and need no index.
        found = [one.id async for one in every_session(tk) if one.slug == given]
        found = found or await _with_prefix(tk, ("state",), f"ses_{given}", "ses_")
    if not found and given.startswith("ses_") and len(given) < len("ses_") + PREFIX_MIN:
        raise UsageError(f"{given!r} is too short for an id; give at least {PREFIX_MIN} characters after ses_")
    several = [await tk.get(one) for one in found[:CANDIDATES_MAX]] if len(found) > 1 else []
    lines = [f"{one.id}  {one.title}" for one in several] + ["..."] * (len(found) > CANDIDATES_MAX)
    return _only("session", given, found, lines, "`turnkeeper session list --all` shows all of them")


async def message(tk: "Turnkeeper | Client", session_id: str, given: str) -> str:
    """The id of the named message of a session."""
    found = await _with_prefix(tk, ("message", session_id), given, "msg_")
    return _only("message", given, found, found, f"`turnkeeper session messages {session_id}` shows them")


class Scope(NamedTuple):
    """The sessions of a project, or those of one directory."""

    project_id: str | None = None
    directory: Path | None = None

    def has(self, session: "Session") -> bool:
        """Whether it covers a session."""
        if self.directory is not None:
            return session.directory == str(self.directory)
        return self.project_id in (None, session.project_id)


EVERYWHERE: Final = Scope()


async def project(tk: "Turnkeeper | Client", given: str | None) -> Scope:
    """The sessions of a project that is named by its id, a prefix of it, or a directory in it.

    A directory without a repository has no project: all such directories share one id. It stands for itself.
    """
    if given is None:
        return EVERYWHERE
    found = [] if given in (".", "..", "~") or "/" in given else await _with_prefix(tk, ("project",), given, "")
    if found or not Path(given).expanduser().is_dir():
        return Scope(_only("project", given, found, found, "give the id `session show` prints, or a directory"))
    from turnkeeper.workspace.project import GLOBAL, identify

    place = await identify(directory(given))
    return Scope(directory=place.directory) if place.id == GLOBAL else Scope(place.id)


def _only(kind: str, given: str, found: list[str], lines: list[str], advice: str) -> str:
    """The only id that was found. Raises NotFound with advice, or Conflict with a line for each of several."""
    if len(found) > 1:
        listed = "\n".join(f"  {line}" for line in lines)
        raise Conflict(f"{given!r} may be any of these {kind}s; give more of the id:\n{listed}")
    if not found:
        raise NotFound(f"there is no {kind} {given!r}; {advice}")
    return found[0]


def directory(given: str | Path, *, is_near: bool = True) -> Path:
    """An existing directory, resolved; a directory on another machine as it is given. Raises Invalid."""
    if not is_near:
        return _far(Path(given))
    from turnkeeper.workspace.files import real

    path = real(Path(given).expanduser())
    if not path.is_dir():
        raise Invalid(f"{str(given)!r} is not a directory; name one that exists")
    return path


def new_directory(given: Path, *, is_near: bool = True) -> Path:
    """The whole path of a directory that need not exist; on another machine it must be given whole."""
    return given.expanduser().absolute() if is_near else _far(given)


def _far(given: Path) -> Path:
    if not given.is_absolute():
        raise UsageError(f"{str(given)!r} is on another machine; give its whole path there")
    return given


async def _with_prefix(tk: "Turnkeeper | Client", kind: Key, given: str, type_prefix: str) -> list[str]:
    """The ids of a kind that equal the given text, else those that begin with it."""
    if not is_key((given,)):
        return []
    long_enough = len(given) >= len(type_prefix) + PREFIX_MIN
    if (store := local_store(tk)) is not None:
        return await _stored(store, kind, given, long_enough=long_enough)
    known = await _served(tk, kind, given)
    found = [one for one in known if one == given] or [one for one in known if long_enough and one.startswith(given)]
    return found[: CANDIDATES_MAX + 1]


async def _stored(tk: "Turnkeeper", kind: Key, given: str, *, long_enough: bool) -> list[str]:
    [exact] = await tk.store.engine.get([(*kind, given)])
    if exact is not None or (kind == ("state",) and await tk.store.engine.length(given)):
        return [given]  # A session whose documents are lost still has its log.
    if not long_enough:
        return []
    # "~" sorts after every character of an id.
    found = await tk.store.engine.scan(
        kind, after=(*kind, given), before=(*kind, f"{given}~"), limit=CANDIDATES_MAX + 1
    )
    return [key[-1] for key, _ in found]


async def _served(tk: "Turnkeeper | Client", kind: Key, given: str) -> list[str]:
    """Every id of this kind on a server, or only the given one if it is a session's id."""
    match kind:
        case ("message", session_id):
            found, before = [], None
            while True:
                page = await tk.messages(session_id, limit=200, before=before)
                found += [one.info.id for one in page.items]
                if (before := page.older) is None:
                    return found
        case ("project",):
            return sorted({one.project_id async for one in every_session(tk)})
    try:
        return [(await tk.get(given)).id]
    except (NotFound, Invalid):
        return [one.id async for one in every_session(tk)]


async def every_session(
    tk: "Turnkeeper | Client", scope: Scope = EVERYWHERE, *, roots: bool = False
) -> "AsyncIterator[Session]":
    """The sessions of a scope, also archived ones, the newest first; with ``roots`` no children."""
    after = None
    while True:
        page = await tk.list(**scope._asdict(), roots=roots, archived=True, limit=1000, after=after)
        for one in page.items:
            yield one
        if (after := page.older) is None:
            return
