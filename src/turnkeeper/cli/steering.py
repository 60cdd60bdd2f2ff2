"""Commands about running sessions: resume, recover, abort, status."""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.awaited_line import awaited_line
from turnkeeper.cli.failures import OK, REFUSED
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer, answer_items, is_yes, note
from turnkeeper.cli.reading import undone_words
from turnkeeper.cli.run_options import DEFAULT_DISPLAY, Auto, DisplayOptions
from turnkeeper.cli.screen import Column, Screen, fields, one_line, plural, table
from turnkeeper.cli.status_word import status_word
from turnkeeper.model.refusal import Busy

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.core.view import Admitted, OpenAsk
    from turnkeeper.model.session import Session
    from turnkeeper.model.status import Owner, Status

WAITING_SHOWN = 60


async def resume(
    id: names.SessionName,
    /,
    *,
    display: DisplayOptions = DEFAULT_DISPLAY,
    options: Options,
) -> int:
    """Continue a session that was stopped, failed, or lost its process.

    Recorded text is kept. Calls that were running are marked as interrupted and
    never run again. Waiting prompts are answered. The output is that of `run`.
    Without a terminal to ask on, a call that waits for an answer goes on waiting.

    For example:
      turnkeeper session resume calm-otter
      turnkeeper session resume ses_e1f51c506ffe --auto
    """
    from turnkeeper.cli.left_open import found_open

    live = display.live(options)
    async with options.run(Path.cwd(), live.settings(options.environ)) as tk:
        session_id = await names.session(tk, id)
        if (found := found_open(await tk.store.journal.view(session_id))) is not None:
            live.display.note(found)
        return await live.run(tk, session_id, partial(tk.run, session_id, resume=True))


async def recover(
    *,
    policy: Annotated[
        Literal["rest", "continue", "ask"] | None,
        Parameter(metavar="POLICY", help="By default the `recovery` setting of each directory."),
    ] = None,
    auto: Auto = False,
    options: Options,
) -> int:
    """Recover every session whose process died.

    Recorded text is kept, and calls that were running are marked as interrupted
    and never run again. A turn without any output is asked again, and waiting
    prompts are answered. For output that was cut off the policy decides: rest
    leaves the session idle, continue continues it, ask asks. A call that waits
    for your answer goes on waiting, unless --auto is given; `permission list`
    and `question list` show it. With --json the answer is {"items": [STATUS],
    "problems": [{"sessionID", "message"}]}, with a status as in `session status`.
    A session that could not be recovered is in "problems" and named on standard
    error; then the exit code is 1.

    For example:
      turnkeeper session recover
      turnkeeper session recover --policy continue --auto
    """
    from turnkeeper.run.permission import allow_all, reject_all
    from turnkeeper.run.runtime import Settings

    settings = Settings(ask=allow_all if auto else reject_all, environ=options.environ)
    failed: dict[str, str] = {}
    async with options.run(Path.cwd(), settings) as tk:
        found = await tk.recover(policy, ask=_ask_to_continue, failed=failed)
        reports = [await _report(tk, session_id) for session_id in found if session_id not in failed]
    empty = "" if failed else "No session needs recovery."
    problems = [{"sessionID": session_id, "message": reason} for session_id, reason in failed.items()]
    answer_items(options, reports, lambda screen: _listed(screen, reports), empty=empty, problems=problems)
    if not options.json and reports:
        note(f"{plural(len(reports), 'session')} recovered.")
    for session_id, reason in failed.items():
        note(f"Not recovered: {session_id}: {one_line(reason)}")
    return REFUSED if failed else OK


async def _ask_to_continue(session_id: str) -> bool:
    """Ask at the terminal whether to continue a session; without a terminal the answer is no."""
    if not sys.stdin.isatty():
        return False
    question = f"{session_id} was cut off in the middle of its answer. Continue?"
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return is_yes(await awaited_line() or "")  # The lease of the session is renewed meanwhile.


async def abort(id: names.SessionName, /, *, options: Options) -> None:
    """Stop a session, or close the turn that a dead process left open.

    Waiting prompts stay. A process that runs the session is asked to stop it. If
    it does not, or is of an older version, the error names that process. With
    --server the server stops its session. With --json the answer is that of
    `session status`.

    For example:
      turnkeeper session abort calm-otter
    """
    async with options.sessions() as tk:
        session_id = await names.session(tk, id)
        if (store := local_store(tk)) is not None:
            await _check_owner(store, session_id)
        stopped = await tk.stop(session_id)
        report = await _report(tk, session_id)
    done = "Closed what was open" if stopped else "Nothing was open"
    answer(options, report, lambda screen: f"{done}  {screen.paint(session_id, 'cyan')}")


async def _check_owner(tk: "Turnkeeper", session_id: str) -> None:
    from turnkeeper.workspace.owner import is_alive

    owner = (await tk.store.queries.state(session_id)).owner
    if owner is not None and owner.lease_s == 0 and is_alive(owner):
        raise Busy(
            f"process {owner.pid} on {owner.host} runs {session_id}, and is of a version that only stops it itself; "
            f"press Ctrl-C there, or `kill -INT {owner.pid}`"
        )


async def status(
    id: Annotated[
        str | None,
        Parameter(
            metavar="ID",
            help="The session; by default all that run or have waiting prompts.",
            completer=candidates.sessions,
        ),
    ] = None,
    /,
    *,
    options: Options,
) -> None:
    """Show whether a session is idle, busy or retrying, and its waiting prompts.

    With --json the answer is {"sessionID", "slug", "title", "status", "owner",
    "alive", "waiting", "asks"}, and without an ID {"items": [STATUS]}. "alive" is
    whether the owner process exists: a busy session without one needs `session
    resume`. "asks" are the requests that wait for your answer. A server gives
    neither owner nor prompts nor requests.

    For example:
      turnkeeper session status
      turnkeeper session status calm-otter --json | jq .status.type
    """
    async with options.sessions(read_only=True) as tk:
        if id is not None:
            one = await _report(tk, await names.session(tk, id))
            answer(options, one, lambda screen: _details(screen, one))
            return
        reports = [await _report(tk, session_id) for session_id in await _active(tk)]
    answer_items(options, reports, lambda screen: _listed(screen, reports), empty="All sessions are idle.")


async def _active(tk: "Turnkeeper | Client") -> list[str]:
    """Sessions that are not idle or have waiting prompts."""
    from turnkeeper.api import Turnkeeper

    if not isinstance(tk, Turnkeeper):
        return list(await tk.statuses())
    found = [key[1] for kind in ("busy", "inbox") for key, _ in await tk.store.engine.scan((kind,))]
    return list(dict.fromkeys(found))


class _Report(dict[str, object]):
    """The status of a session: a JSON object, with the values it is made of as attributes."""

    def __init__(
        self,
        session: "Session",
        status: "Status",
        owner: "Owner | None" = None,
        waiting: "Sequence[Admitted]" = (),
        asks: "Sequence[OpenAsk]" = (),
        *,
        is_served: bool = False,
    ) -> None:
        from turnkeeper.workspace.owner import is_alive

        self.session, self.status, self.owner = session, status, owner
        self.is_alive = is_alive(owner) if owner is not None else None
        self.waiting = [{"messageID": one.message.id, "delivery": one.delivery, "text": _text(one)} for one in waiting]
        self.asks = [one.request.id for one in asks if one.reply is None]
        self.word = status_word(status, owner, is_asking=bool(self.asks), is_served=is_served)
        super().__init__(
            sessionID=session.id,
            slug=session.slug,
            title=session.title,
            status=status,
            owner=owner,
            alive=self.is_alive,
            waiting=self.waiting,
            asks=self.asks,
        )


async def _report(tk: "Turnkeeper | Client", session_id: str) -> _Report:
    if (store := local_store(tk)) is None:
        return _Report(await tk.get(session_id), await tk.status(session_id), is_served=True)
    view = await store.store.journal.view(session_id)
    return _Report(view.session, view.status, view.owner, view.inbox, view.asks)


def _text(prompt: "Admitted") -> str:
    from turnkeeper.model.parts import TextPart

    return "\n".join(part.text for part in prompt.parts if isinstance(part, TextPart) and not part.synthetic)


def _details(screen: Screen, report: _Report) -> str:
    rows = [
        ("Session", screen.paint(report.session.id, "cyan")),
        ("Title", one_line(report.session.title)),
        ("Status", _said(screen, report)),
        ("Owner", _owner(report)),
        ("Undone", screen.paint(undone_words(report.session), "yellow")),
    ]
    rows += [
        ("Waiting" if place == 0 else " ", f"{one['delivery']}  {screen.fit(one_line(one['text']), WAITING_SHOWN)}")
        for place, one in enumerate(report.waiting)
    ]
    return fields(screen, rows)


def _listed(screen: Screen, reports: "Sequence[_Report]") -> str:
    return table(
        screen,
        Column("SESSION", [one.session.id for one in reports], ("cyan",)),
        Column("STATUS", [_said(Screen(now=screen.now), one) for one in reports], ("yellow",)),
        Column("OWNER", [_owner(one) for one in reports], ("dim",)),
        Column("WAITING", [plural(len(one.waiting), "prompt") if one.waiting else "" for one in reports]),
        Column("TITLE", [one_line(one.session.title) for one in reports], least=16),
    )


def _said(screen: Screen, report: _Report) -> str:
    from turnkeeper.model.status import Retrying

    match report.word, report.status:
        case "waits", _:
            return screen.paint("waits for an answer; `permission list` and `question list` show it", "yellow")
        case "retry", Retrying(attempt=attempt, message=message):
            return screen.paint(f"retry {attempt}: {one_line(message)}", "yellow")
        case "left open", _:
            return screen.paint("left open; `session resume` continues it", "yellow")
        case "busy", _:
            return screen.paint("busy", "green")
    return report.word


def _owner(report: _Report) -> str:
    if report.owner is None:
        return ""
    gone = "" if report.is_alive else ", gone"
    return f"process {report.owner.pid} on {report.owner.host}{gone}"
