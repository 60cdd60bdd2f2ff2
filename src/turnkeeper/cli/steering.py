"""Commands about sessions at work: resume, recover, abort, status."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.answer import answer, note
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.reach import Sessions, here
from turnkeeper.cli.screen import Screen, fields, one_line, plural, shortened
from turnkeeper.cli.session_name import SessionName
from turnkeeper.cli.table import Column, table
from turnkeeper.model.refusal import Busy

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.core.view import Admitted
    from turnkeeper.model.session import Session
    from turnkeeper.model.status import Owner, Status
    from turnkeeper.run.coordinator import Outcome

WAITING_SHOWN = 60


async def resume(
    id: SessionName,
    /,
    *,
    format: Annotated[
        Literal["default", "json"], Parameter(metavar="FORMAT", help="json: one object a line, as things happen.")
    ] = "default",
    auto: Annotated[bool, Parameter(help="Allow whatever would be asked. What is denied stays denied.")] = False,
    thinking: Annotated[bool, Parameter(help="Show all of the model's thoughts.")] = False,
    options: Options = EVERYWHERE,
) -> int:
    """Run a session on where it was stopped, failed, or was left by a process that died.

    What the process had recorded stays: text is kept, calls that were under way are marked as interrupted and never
    run a second time, prompts that wait are taken up. Shows what `run` shows.

    Examples:
      turnkeeper session resume calm-otter
      turnkeeper session resume ses_e1f51c506ffe --auto
    """
    from turnkeeper.cli.live import Live, found_open
    from turnkeeper.run.runtime import Settings

    live = Live(as_json=options.json or format == "json", thinking=thinking, auto=auto)
    async with options.run(Path.cwd(), Settings(ask=live.ask, environ=options.environ)) as tk:
        session_id = await names.session(tk, id)
        if (found := found_open(await tk.store.journal.view(session_id))) is not None:
            live.display.note(found)

        async def work() -> "Outcome":
            return await tk.run(session_id, resume=True)

        return await live.run(tk, session_id, work)


async def recover(
    *,
    policy: Annotated[
        Literal["rest", "continue", "ask"] | None,
        Parameter(metavar="POLICY", help="rest, continue or ask; by default the `recovery` setting of each directory."),
    ] = None,
    auto: Annotated[bool, Parameter(help="Allow whatever would be asked. What is denied stays denied.")] = False,
    options: Options = EVERYWHERE,
) -> None:
    """Look after every session that a process left when it died.

    What was open is closed: text is kept, calls that were under way are marked as interrupted and never run a second
    time. A turn of which nothing was recorded is asked again, and prompts that wait are taken up. Where output was cut
    off, the policy decides: rest waits for you, continue goes on, ask asks. With --json the answer is a list of what
    `session status` says of each session.

    Examples:
      turnkeeper session recover
      turnkeeper session recover --policy continue --auto
    """
    from turnkeeper.run.permission import allow_all, reject_all
    from turnkeeper.run.runtime import Settings

    settings = Settings(ask=allow_all if auto else reject_all, environ=options.environ)
    async with options.run(Path.cwd(), settings) as tk:
        found = await tk.recover(policy, ask=_goes_on)
        reports = [await _report(tk, session_id) for session_id in found]
    answer(options, reports, lambda screen: _listed(screen, reports) if reports else "")
    if not options.json:
        note(f"{plural(len(reports), 'session')} looked after." if reports else "No session was left open.")


async def _goes_on(session_id: str) -> bool:
    """Ask the person at the terminal whether a session goes on; nobody there means no."""
    if not sys.stdin.isatty():
        return False
    answered = await asyncio.to_thread(input, f"{session_id} was cut off in the middle of its answer. Go on? [y/N] ")
    return answered.strip().lower() in ("y", "yes")


async def abort(id: SessionName, /, *, options: Options = EVERYWHERE) -> None:
    """Close what a process that died left open. Prompts that wait go on waiting.

    A session that a living process runs can only be stopped there; then this says which process it is. With --server
    the server stops it, whatever it is doing. With --json the answer is what `session status` says of the session.

    Examples:
      turnkeeper session abort calm-otter
    """
    async with options.sessions() as tk:
        session_id = await names.session(tk, id)
        if (store := here(tk)) is not None:
            await _check_owner(store, session_id)
        stopped = await tk.abort(session_id)
        report = await _report(tk, session_id)
    done = "Closed what was open" if stopped else "Nothing was open"
    answer(options, report, lambda screen: f"{done}  {screen.paint(session_id, 'cyan')}")


async def _check_owner(tk: "Turnkeeper", session_id: str) -> None:
    from turnkeeper.workspace.owner import is_alive

    owner = (await tk.store.queries.state(session_id)).owner
    if owner is not None and is_alive(owner):
        raise Busy(
            f"process {owner.pid} on {owner.host} runs {session_id} and only it can stop; press Ctrl-C there, or "
            f"`kill -INT {owner.pid}`"
        )


async def status(
    id: Annotated[
        str | None,
        Parameter(metavar="ID", help="The session; without it all that are at work or have prompts waiting."),
    ] = None,
    /,
    *,
    options: Options = EVERYWHERE,
) -> None:
    """Show what a session is doing: idle, busy or waiting to try again, for whom, and which prompts wait.

    With --json the answer is {"sessionID", "title", "status", "owner", "alive", "waiting"}, or a list of these.
    "alive" is whether the owner still runs; a busy session without a living owner was left by a process that died.
    A server says neither who the owner is nor which prompts wait.

    Examples:
      turnkeeper session status
      turnkeeper session status calm-otter --json | jq .status.type
    """
    async with options.sessions(looks=True) as tk:
        if id is not None:
            one = await _report(tk, await names.session(tk, id))
            answer(options, one, lambda screen: _details(screen, one))
            return
        reports = [await _report(tk, session_id) for session_id in await _at_work(tk)]
    answer(options, reports, lambda screen: _listed(screen, reports))
    if not options.json and not reports:
        note("All sessions are idle.")


async def _at_work(tk: Sessions) -> list[str]:
    """Sessions that are not idle, or have prompts waiting."""
    if (store := here(tk)) is None:
        from turnkeeper.client import Client

        assert isinstance(tk, Client)
        return list(await tk.statuses())
    found = [key[1] for kind in ("busy", "inbox") for key, _ in await store.store.engine.scan((kind,))]
    return list(dict.fromkeys(found))


class _Report(dict[str, object]):
    """What a session is doing, as JSON has it; the values it was made from are attributes."""

    def __init__(
        self,
        session: "Session",
        status: "Status",
        owner: "Owner | None" = None,
        waiting: "Sequence[Admitted]" = (),
        *,
        is_served: bool = False,
    ) -> None:
        from turnkeeper.workspace.owner import is_alive

        self.session, self.status, self.owner = session, status, owner
        self.is_alive = is_alive(owner) if owner is not None else None
        self.is_run = is_served or bool(self.is_alive)  # A server closes what dead processes left.
        self.waiting = [{"messageID": one.message.id, "delivery": one.delivery, "text": _text(one)} for one in waiting]
        super().__init__(
            sessionID=session.id,
            title=session.title,
            status=status,
            owner=owner,
            alive=self.is_alive,
            waiting=self.waiting,
        )


async def _report(tk: Sessions, session_id: str) -> _Report:
    if (store := here(tk)) is None:
        return _Report(await tk.get(session_id), await tk.status(session_id), is_served=True)
    view = await store.store.journal.view(session_id)
    return _Report(view.session, view.status, view.owner, view.inbox)


def _text(prompt: "Admitted") -> str:
    from turnkeeper.model.parts import TextPart

    return "\n".join(part.text for part in prompt.parts if isinstance(part, TextPart) and not part.synthetic)


def _details(screen: Screen, report: _Report) -> str:
    rows = [
        ("Session", screen.paint(report.session.id, "cyan")),
        ("Title", one_line(report.session.title)),
        ("Status", _said(screen, report)),
        ("Owner", _owner(report)),
    ]
    rows += [
        ("Waiting" if place == 0 else " ", f"{one['delivery']}  {shortened(one_line(one['text']), WAITING_SHOWN)}")
        for place, one in enumerate(report.waiting)
    ]
    return fields(screen, rows)


def _listed(screen: Screen, reports: "Sequence[_Report]") -> str:
    return table(
        screen,
        [
            Column("SESSION", [one.session.id for one in reports], ("cyan",)),
            Column("STATUS", [_said(Screen(now=screen.now), one) for one in reports], ("yellow",)),
            Column("OWNER", [_owner(one) for one in reports], ("dim",)),
            Column("WAITING", [plural(len(one.waiting), "prompt") if one.waiting else "" for one in reports]),
            Column("TITLE", [one_line(one.session.title) for one in reports], least=16),
        ],
    )


def _said(screen: Screen, report: _Report) -> str:
    from turnkeeper.model.status import Idle, Retrying

    match report.status:
        case Idle():
            return "idle"
        case Retrying(attempt=attempt, message=message) if report.is_run:
            return screen.paint(f"retry {attempt}: {one_line(message)}", "yellow")
        case _ if report.is_run:
            return screen.paint("busy", "green")
    return screen.paint("left open; `session resume` goes on", "yellow")


def _owner(report: _Report) -> str:
    if report.owner is None:
        return ""
    gone = "" if report.is_alive else ", gone"
    return f"process {report.owner.pid} on {report.owner.host}{gone}"
