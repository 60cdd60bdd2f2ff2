"""Commands that show what a redaction masks, share sessions and withdraw links."""

import sys
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import OK, UsageError
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import Confirms, answer, asked, remark
from turnkeeper.cli.progress import waiting
from turnkeeper.cli.screen import Screen, harmless, plural, show
from turnkeeper.core.sharing import EXPIRES_S, EXPIRES_S_MAX, LOCAL
from turnkeeper.model.refusal import Forbidden, NotFound
from turnkeeper.text.duration import parse_duration

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.redaction import RedactionReport
    from turnkeeper.model.session import Session
    from turnkeeper.model.share import ShareLink

Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask for confirmation.")]
PLACES_SHOWN: Final = 3


async def redactions(id: names.SessionName, /, *, options: Options) -> int:
    """Show what a redacted export or a link would mask, and where.

    Counts keys, passwords, private keys, paths and names by kind. Nothing is
    changed, and no secret is printed. Long random words that are left as they
    are, because they may be hashes, are counted too.

    With --json the answer is {"masked": [{"kind", "count", "distinct",
    "places"}], "doubtful", "doubtfulPlaces"}.

    For example:
      turnkeeper session redactions calm-otter
    """
    async with options.sessions(read_only=True) as tk:
        session_id = await names.session(tk, id)
        with waiting("Looking for secrets"):
            report = await tk.redactions(session_id)
    answer(options, report, lambda screen: report_lines(screen, report))
    return OK


def report_lines(screen: Screen, report: "RedactionReport") -> str:
    """A report as text."""
    lines = [f"{plural(report.count, 'place')} to mask" + (":" if report.masked else ".")]
    for one in report.masked:
        places = list(one.places)
        more = f" and {len(places) - PLACES_SHOWN} more" if len(places) > PLACES_SHOWN else ""
        where = harmless(", ".join(places[:PLACES_SHOWN])) + more
        lines.append(f"  {one.count:>5,}  {one.kind} ({one.distinct:,} different): {screen.paint(where, 'dim')}")
    if report.doubtful:
        words = plural(report.doubtful, "long random word")
        where = harmless(", ".join(report.doubtful_places[:PLACES_SHOWN]))
        lines.append(f"  {words} not masked, as hashes look alike; look at: {screen.paint(where, 'dim')}")
    return "\n".join(lines)


async def share(
    id: names.SessionName,
    /,
    *,
    include: Annotated[
        tuple[str, ...] | None,
        Parameter(
            metavar="WHAT",
            help="What it shows: messages, tools, diffs, todos, reasoning, outputs, files, usage; can be repeated.",
        ),
    ] = None,
    expires: Annotated[str, Parameter(metavar="TIME", help="How long it lasts, as 12h or 7d; `never`: no end.")] = "7d",
    yes: Yes = False,
    options: Options,
) -> int:
    """Share a session: a public, read-only link, with secrets masked.

    What will be masked is shown first, and asked on a terminal. The link is
    shown by `turnkeeper serve`, and goes on with the session. It has a secret
    that is printed here and nowhere else; sharing again makes a new link and ends
    the old one. `session unshare` withdraws it.

    With --json the answer is {"id", "sessionID", "secret", "url", "include",
    "expires", "report"}.

    For example:
      turnkeeper session share calm-otter
      turnkeeper session share calm-otter --include messages --expires 12h --yes
    """
    lasts = _expiry(expires)
    async with options.sessions() as tk:
        link = await share_one(tk, await names.session(tk, id), yes=yes, include=include, expires_s=lasts)
        said = await hint(tk, link)
    answer(options, link, lambda screen: link.url)
    remark(options, said)
    return OK


async def unshare(
    id: names.SessionName,
    /,
    *,
    forget: Annotated[bool, Parameter(help="Give up a link on another host that cannot be reached.")] = False,
    options: Options,
) -> int:
    """Withdraw the link to a session. Who has it open sees that it is gone.

    A link on another host is removed there too. With --json the answer is the
    session.

    For example:
      turnkeeper session unshare calm-otter
    """
    async with options.sessions() as tk:
        session = await unshare_one(tk, await names.session(tk, id), forget=forget)
    answer(options, session, lambda screen: f"Withdrew the link to {screen.paint(session.id, 'cyan')}")
    return OK


async def share_one(
    tk: "Turnkeeper | Client",
    session_id: str,
    *,
    yes: bool,
    include: tuple[str, ...] | None = None,
    expires_s: float | None = EXPIRES_S,
    confirms: Confirms | None = None,
) -> "ShareLink":
    """Show what is masked, ask, and share a session. ``confirms`` asks, by default on the terminal.

    Raises Forbidden without a yes, and UsageError where there is no terminal to ask on.
    """
    with waiting("Looking for secrets") if confirms is None else nullcontext():  # A chat has the screen.
        found = await tk.redactions(session_id)
    report = report_lines(Screen.of(sys.stderr), found)
    no_terminal = (
        "a link is public, so somebody must agree to it; look at the report above and add --yes to "
        f"`turnkeeper session share {session_id}`"
    )
    ask = confirms or partial(asked, no_terminal=no_terminal)
    if yes:
        show(report, to=sys.stderr)
    elif not await ask(report.split("\n"), "Make a public link to the rest?"):
        raise Forbidden("nothing was shared")
    with waiting("Making the link") if confirms is None else nullcontext():
        return await tk.share(session_id, include=include, expires_s=expires_s)


async def unshare_one(tk: "Turnkeeper | Client", session_id: str, *, forget: bool = False) -> "Session":
    """Withdraw the link to a session. Raises NotFound if there is none."""
    if (await tk.get(session_id)).share is None:
        raise NotFound(f"session {session_id!r} has no link; `turnkeeper session share` makes one")
    if forget and (store := local_store(tk)) is not None:
        return await store.unshare(session_id, forget=True)
    return await tk.unshare(session_id)


async def shared_by_itself(tk: "Turnkeeper | Client", made: "Session") -> str | None:
    """The link to a new session, if the settings say that each is shared. A server has shared it already."""
    if made.share is not None or (store := local_store(tk)) is None:
        return made.share.url if made.share is not None else None
    settings = await store.share_settings(Path(made.directory))
    return (await store.share(made.id)).url if settings.mode == "auto" else None


async def hint(tk: "Turnkeeper | Client", link: "ShareLink") -> str:
    """Remarks on a new link."""
    until = (
        "it lasts until it is withdrawn" if link.expires is None else f"it lasts until {Screen().date(link.expires)}"
    )
    where = " `turnkeeper serve` shows it, on this machine;" if "127.0.0.1" in link.url else ""
    is_usual, store = link.url.startswith(f"{LOCAL}/"), local_store(tk)
    if is_usual and store is not None and await store.server_address() is None:
        where += (
            " no server runs on this machine now; if yours listens elsewhere, `session share --server URL` or the "
            "setting `share_url` says so;"
        )
    return f"Who has this link can read the session:{where} {until}. `turnkeeper session unshare` withdraws it."


def _expiry(text: str) -> float | None:
    if text == "never":
        return None
    try:
        lasts = parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--expires: {error}; or `never`") from error
    if lasts > EXPIRES_S_MAX:
        days = EXPIRES_S_MAX // (24 * 3600)
        raise UsageError(f"--expires: {text!r} is too long; a link lasts for {days}d at most, or give `never`")
    return lasts
