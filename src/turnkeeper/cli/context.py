"""The command that shows what a model was told, and how much of each request its provider could reuse."""

from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.answer import answer, note
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.screen import Screen, fields, harmless, one_line, plural, size
from turnkeeper.cli.session_name import SessionName
from turnkeeper.cli.table import Column, table

if TYPE_CHECKING:
    from turnkeeper.sessions.context import ContextReport, RequestMade

HASH_SHOWN: Final = 12


async def context(
    id: SessionName,
    /,
    *,
    limit: Annotated[int, Parameter(name=("--limit", "-n"), metavar="N", help="How many turns at most.")] = 20,
    options: Options = EVERYWHERE,
) -> None:
    """Show a session's System Context: its epoch, what the model knows of each component, and what was reused.

    A request that extends the one before it is reused by the provider's cache whole: 100 %. Where less was reused,
    the reason stands beside it. With --json the answer is {"epochs", "components", "messages", "requests",
    "instructions"}, of the whole session.

    Examples:
      turnkeeper session context calm-otter
      turnkeeper session context calm-otter --json | jq '.requests[].percent'
    """
    async with options.read() as tk:
        found = await tk.explain_context(await names.session(tk, id))
    answer(options, found, lambda screen: _page(screen, found, limit))
    if not options.json and not found.epochs:
        note("No model was asked here yet.")


def _page(screen: Screen, report: "ContextReport", limit: int) -> str:
    if not report.epochs:
        return ""
    epoch = report.epochs[-1]
    rows = [
        ("Epoch", f"{epoch.number}  {screen.paint(epoch.reason, 'yellow')}"),
        ("Since", f"{screen.date(epoch.time)}  {screen.paint(screen.ago(epoch.time), 'dim')}"),
        ("Model", harmless(f"{epoch.provider_id}/{epoch.model_id}")),
        ("Directory", screen.path(epoch.directory)),
        ("Met while reading", ", ".join(screen.path(path) for path in report.instructions)),
    ]
    parts = [fields(screen, rows), _components(screen, report), _messages(screen, report, epoch.seq)]
    return "\n\n".join(part for part in (*parts, _requests(screen, report.requests[-limit:])) if part)


def _components(screen: Screen, report: "ContextReport") -> str:
    known = report.components
    return table(
        screen,
        [
            Column("COMPONENT", [harmless(one.key) for one in known], ("cyan",), least=16, keep_end=True),
            Column("KNOWN FROM", [{"told": "news", "gone": "told gone"}.get(one.state, one.state) for one in known]),
            Column("SIZE", [size(one.size) for one in known]),
            Column("HASH", [one.hash[:HASH_SHOWN] for one in known], ("dim",), is_optional=True),
        ],
    )


def _messages(screen: Screen, report: "ContextReport", epoch_seq: int) -> str:
    """The news of this epoch; of earlier ones only how much there was."""
    shown = [one for one in report.messages if one.seq > epoch_seq]
    left = len(report.messages) - len(shown)
    page = table(
        screen,
        [
            Column("NEWS", [one.id for one in shown], ("cyan",)),
            Column("TIME", [screen.date(one.time.created) for one in shown], ("dim",)),
            Column("SIZE", [size(sum(len(update.text.encode()) for update in one.updates)) for one in shown]),
            Column("OF", [one_line(", ".join(update.key for update in one.updates)) for one in shown], least=16),
        ],
    )
    more = screen.paint(f"{plural(left, 'message')} of earlier epochs, which the model no longer reads", "dim")
    return "\n".join(part for part in (page, more if left else "") if part)


def _requests(screen: Screen, requests: "tuple[RequestMade, ...]") -> str:
    return table(
        screen,
        [
            Column("TURN", [one.message_id for one in requests], ("cyan",)),
            Column("TIME", [screen.date(one.time) for one in requests], ("dim",)),
            Column("EPOCH", [str(one.epoch) for one in requests]),
            Column("SIZE", [size(one.size) for one in requests]),
            Column("REUSED", [_percent(one) for one in requests]),
            Column("WHY", [one_line("; ".join(filter(None, (one.cause, one.note)))) for one in requests], least=20),
        ],
    )


def _percent(request: "RequestMade") -> str:
    return f"{request.percent} %" if request.percent is not None else "first"
