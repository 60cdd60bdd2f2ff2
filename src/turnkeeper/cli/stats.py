"""The command that shows the cost of requests by day, model and session."""

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer
from turnkeeper.cli.screen import Screen, cells, harmless, money, one_line, plural, shortened, token_kinds
from turnkeeper.model.refusal import NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.model.ledger import LedgerRow

BAR: Final = 24
DAYS_SHOWN: Final = 31
SESSIONS_SHOWN: Final = 10
_EIGHTHS: Final = " ▏▎▍▌▋▊▉"

DAYS_MAX = 36_500


async def stats(
    *,
    days: Annotated[int | None, Parameter(metavar="N", help="Only the last N days; 0 or 1 is today.")] = None,
    models: Annotated[bool, Parameter(help="Only by model.")] = False,
    sessions: Annotated[bool, Parameter(help="Only by session.")] = False,
    options: Options,
) -> None:
    """Show tokens and cost by day, by model and by session.

    Every request is counted once, also failed ones, titles and child sessions. A
    fork or an import adds nothing, and deleting a session removes its rows. Days
    are those of the local timezone. With --json the answer is {"total", "days",
    "models", "sessions"}, each with "attempts", "cost" and "tokens".

    For example:
      turnkeeper stats
      turnkeeper stats --days 7 --models
      turnkeeper stats --json | jq .total.cost
    """
    if days is not None and not 0 <= days <= DAYS_MAX:
        raise UsageError(f"--days must be from 0 to {DAYS_MAX}, not {days}")
    async with options.read() as tk:
        since = _midnight(tk.store.mint.now(), days) if days is not None else 0
        rows = [row async for row in tk.ledger() if row.time >= since]
        spent = _Spent(rows)
        titles = await _titles(tk, [one.name for one in spent.sessions])
    empty = "There are no requests yet." if days is None else "There are no requests in these days."
    answer(options, spent.wire(titles), lambda screen: _page(screen, spent, titles, models, sessions), empty=empty)


class Sum:
    """The sum of ledger rows. Dollars are added as decimals, without rounding."""

    def __init__(self, name: str, rows: "Sequence[LedgerRow]") -> None:
        from turnkeeper.core.usage import add_tokens
        from turnkeeper.model.session import ZERO_TOKENS

        self.name, self.attempts = name, len(rows)
        self.cost = sum((Decimal(str(row.cost)) for row in rows), Decimal(0))
        self.used = reduce(add_tokens, (row.tokens for row in rows), ZERO_TOKENS)
        self.tokens = sum(token_kinds(self.used).values())

    def wire(self) -> dict[str, object]:
        """As JSON."""
        return {"attempts": self.attempts, "cost": float(self.cost), "tokens": self.used}


class _Spent:
    """The sums of the ledger in total, by day, by model and by session."""

    def __init__(self, rows: "Sequence[LedgerRow]") -> None:
        self.total = Sum("total", rows)
        self.days = _grouped(rows, lambda row: _day(row.time).isoformat())
        self.days.sort(key=lambda one: one.name)
        self.models = _grouped(rows, lambda row: f"{row.provider_id}/{row.model_id}")
        self.sessions = _grouped(rows, lambda row: row.session_id)

    def wire(self, titles: dict[str, str]) -> dict[str, object]:
        """As JSON."""
        return {
            "total": self.total.wire(),
            "days": [{"day": one.name, **one.wire()} for one in self.days],
            "models": [{"model": one.name, **one.wire()} for one in self.models],
            "sessions": [{"sessionID": one.name, "title": titles.get(one.name), **one.wire()} for one in self.sessions],
        }


def _grouped(rows: "Iterable[LedgerRow]", name: "Callable[[LedgerRow], str]") -> list[Sum]:
    """The sum for each name, the highest cost first."""
    groups: dict[str, list[LedgerRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return sorted(
        (Sum(key, group) for key, group in groups.items()), key=lambda one: (-one.cost, -one.tokens, one.name)
    )


async def _titles(tk: "Turnkeeper", names: list[str]) -> dict[str, str]:
    titles = {}
    for name in names:
        try:
            titles[name] = (await tk.get(name)).title
        except NotFound:  # It was deleted after the ledger was read.
            continue
    return titles


def _page(screen: Screen, spent: _Spent, titles: dict[str, str], models: bool, sessions: bool) -> str:
    if not spent.total.attempts:
        return ""
    everything = not models and not sessions
    blocks = [_overview(screen, spent)]
    if everything:
        blocks.append(_chart(screen, "Day", _with_gaps(spent.days)))
    if models or everything:
        blocks.append(_chart(screen, "Model", spent.models))
    if sessions or everything:
        blocks.append(_chart(screen, "Session", spent.sessions[:SESSIONS_SHOWN], titles))
        if (more := len(spent.sessions) - SESSIONS_SHOWN) > 0:
            blocks.append(screen.paint(f"... and {plural(more, 'session')} more; --json shows all of them", "dim"))
    return "\n\n".join(blocks)


def _overview(screen: Screen, spent: _Spent) -> str:
    total = spent.total
    tokens = ", ".join(f"{short(count)} {kind}" for kind, count in token_kinds(total.used).items() if count)
    where = f"{plural(total.attempts, 'attempt')}, {plural(len(spent.sessions), 'session')}"
    return f"{screen.paint(money(total.cost), 'bold')}  {where}  {screen.paint(tokens, 'dim')}"


def _chart(screen: Screen, title: str, sums: Sequence[Sum], names: dict[str, str] | None = None) -> str:
    """A bar for each sum: of dollars, or of tokens if nothing has a cost."""
    by_cost = any(one.cost for one in sums)
    amounts = [float(one.cost) if by_cost else float(one.tokens) for one in sums]
    largest = max(amounts, default=0) or 1
    labels = [harmless(one.name) for one in sums]
    width = max(map(cells, [title, *labels]))
    costs = [money(one.cost) for one in sums]
    wide = max(map(len, costs))
    lines = [screen.paint(title.upper(), "dim")]
    for one, label, cost, amount in zip(sums, labels, costs, amounts, strict=True):
        # If a name follows, the bars are shorter and padded.
        bar = _bar(amount / largest, BAR // 2).ljust(BAR // 2) if names else _bar(amount / largest, BAR)
        tokens = screen.paint(f"{short(one.tokens):>7}", "dim")
        line = f"{label}{' ' * (width - cells(label))}  {cost:>{wide}}  {tokens}  {screen.paint(bar, 'blue')}"
        room = screen.width - width - wide - BAR // 2 - 15 if screen.width is not None else None
        about = one_line(names.get(one.name, "")) if names else ""
        lines.append(f"{line}  {about if room is None else shortened(about, max(room, 8))}".rstrip())
    return "\n".join(lines)


def _bar(share: float, width: int) -> str:
    eighths = round(share * width * 8)
    full, rest = divmod(max(eighths, 1 if share else 0), 8)
    return "█" * full + (_EIGHTHS[rest] if rest else "")


def _with_gaps(days: Sequence[Sum]) -> list[Sum]:
    """The newest days, including days without requests between them."""
    if not days:
        return []
    known = {one.name: one for one in days}
    last = date.fromisoformat(days[-1].name)
    first = max(date.fromisoformat(days[0].name), last - timedelta(days=DAYS_SHOWN - 1))
    names = [(first + timedelta(days=number)).isoformat() for number in range((last - first).days + 1)]
    return [known.get(name) or Sum(name, ()) for name in names]


def short(count: int) -> str:
    """A number of tokens, with a unit."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}K" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def _day(ms: int) -> date:
    return datetime.fromtimestamp(ms / 1000).date()


def _midnight(now: int, days: int) -> int:
    """The time at which the first of the last ``days`` local days began."""
    first = _day(now) - timedelta(days=max(days, 1) - 1)
    return int(datetime(first.year, first.month, first.day).timestamp() * 1000)
