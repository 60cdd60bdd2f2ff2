"""The command that shows the System Context of a session and the prompt cache use of its requests."""

from typing import TYPE_CHECKING, Final

from turnkeeper.cli import names
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer
from turnkeeper.cli.screen import Column, Screen, fields, harmless, one_line, plural, size, table

if TYPE_CHECKING:
    from turnkeeper.sessions.context import ContextReport, RequestMade

HASH_SHOWN: Final = 12


async def context(
    id: names.SessionName,
    /,
    *,
    limit: names.Limit = 20,
    options: Options,
) -> None:
    """Show the System Context of a session and how well requests were cached.

    The provider can reuse 100 % of a request that only extends the one before
    it. For a smaller share the reason is shown. With --json the answer is
    {"epochs", "components", "messages", "requests", "instructions"} of the whole
    session.

    For example:
      turnkeeper session context calm-otter
      turnkeeper session context calm-otter --json | jq '.requests[].percent'
    """
    async with options.read() as tk:
        found = await tk.explain_context(await names.session(tk, id))
    answer(options, found, lambda screen: _page(screen, found, limit), empty="No request was sent to a model yet.")


def _page(screen: Screen, report: "ContextReport", limit: int) -> str:
    if not report.epochs:
        return ""
    epoch = report.epochs[-1]
    rows = [
        ("Epoch", f"{epoch.number}  {screen.paint(epoch.reason, 'yellow')}"),
        ("Since", f"{screen.date(epoch.time)}  {screen.paint(screen.ago(epoch.time), 'dim')}"),
        ("Model", harmless(f"{epoch.provider_id}/{epoch.model_id}")),
        ("Directory", screen.path(epoch.directory)),
        ("Discovered", ", ".join(screen.path(path) for path in report.instructions)),
    ]
    parts = [fields(screen, rows), _components(screen, report), _messages(screen, report, epoch.seq)]
    return "\n\n".join(part for part in (*parts, _requests(screen, report.requests[-limit:])) if part)


def _components(screen: Screen, report: "ContextReport") -> str:
    known = report.components
    return table(
        screen,
        Column("COMPONENT", [harmless(one.key) for one in known], ("cyan",), least=16, keep_end=True),
        Column("KNOWN FROM", [{"told": "update", "gone": "removed"}.get(one.state, one.state) for one in known]),
        Column("SIZE", [size(one.size) for one in known]),
        Column("HASH", [one.hash[:HASH_SHOWN] for one in known], ("dim",), is_optional=True),
    )


def _messages(screen: Screen, report: "ContextReport", epoch_seq: int) -> str:
    """The System Messages of this epoch, and how many earlier epochs have."""
    shown = [one for one in report.messages if one.seq > epoch_seq]
    left = len(report.messages) - len(shown)
    page = table(
        screen,
        Column("UPDATE", [one.id for one in shown], ("cyan",)),
        Column("TIME", [screen.date(one.time.created) for one in shown], ("dim",)),
        Column("SIZE", [size(sum(len(update.text.encode()) for update in one.updates)) for one in shown]),
        Column("OF", [one_line(", ".join(update.key for update in one.updates)) for one in shown], least=16),
    )
    more = screen.paint(f"{plural(left, 'message')} of earlier epochs, which the model no longer reads", "dim")
    return "\n".join(part for part in (page, more if left else "") if part)


def _requests(screen: Screen, requests: "tuple[RequestMade, ...]") -> str:
    return table(
        screen,
        Column("TURN", [one.message_id for one in requests], ("cyan",)),
        Column("TIME", [screen.date(one.time) for one in requests], ("dim",)),
        Column("EPOCH", [str(one.epoch) for one in requests]),
        Column("SIZE", [size(one.size) for one in requests]),
        Column("REUSED", ["first" if one.percent is None else f"{one.percent} %" for one in requests]),
        Column("WHY", [one_line("; ".join(filter(None, (one.cause, one.note)))) for one in requests], least=20),
        Column("PLUGINS", [one_line(", ".join(one.changes)) for one in requests], least=16),
    )
