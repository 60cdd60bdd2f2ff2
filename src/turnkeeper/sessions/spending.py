"""Spending of a session: the rows of its ledger, and their sums by model and by purpose."""

from collections.abc import Callable, Iterable

from turnkeeper.core.usage import add_costs, add_tokens
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.session import ZERO_TOKENS, Tokens
from turnkeeper.model.value import Value
from turnkeeper.store.queries import Queries

ROWS_MAX = 5000


class Spent(Value):
    """A sum of ledger rows that share a name."""

    name: str
    rows: int
    tokens: Tokens
    cost: int | float


class ChildSpent(Value):
    """The cost of a Child Session by its own ledger."""

    id: str
    title: str
    cost: int | float


class Spending(Value):
    """The spending of a session. ``total`` sums all rows, of which ``rows`` are the newest.

    ``total_cost`` adds the cost of all descendants.
    """

    session_id: str
    total: Spent
    models: tuple[Spent, ...]
    purposes: tuple[Spent, ...]
    children: tuple[ChildSpent, ...]
    total_cost: int | float
    rows: tuple[LedgerRow, ...]


async def spending(queries: Queries, session_id: str) -> Spending:
    """The spending of a session. Queries of a past moment know no Child Sessions. Raises NotFound."""
    await queries.state(session_id)
    rows = [row async for row in queries.ledger(session_id)]
    below = await queries.children(session_id, recursive=True)
    total = _sum("total", rows)
    return Spending(
        session_id=session_id,
        total=total,
        models=_by(rows, lambda row: f"{row.provider_id}/{row.model_id}"),
        purposes=_by(rows, lambda row: row.purpose if row.attempt == 1 else f"{row.purpose}, tried again"),
        children=tuple(ChildSpent(id=one.id, title=one.title, cost=one.cost) for one in below),
        total_cost=add_costs(total.cost, *(one.cost for one in below)),
        rows=tuple(rows[-ROWS_MAX:]),
    )


def _by(rows: Iterable[LedgerRow], name: Callable[[LedgerRow], str]) -> tuple[Spent, ...]:
    groups: dict[str, list[LedgerRow]] = {}
    for row in rows:
        groups.setdefault(name(row), []).append(row)
    return tuple(sorted((_sum(key, some) for key, some in groups.items()), key=lambda one: -one.cost))


def _sum(name: str, rows: Iterable[LedgerRow]) -> Spent:
    tokens, cost, count = ZERO_TOKENS, 0.0, 0
    for row in rows:
        tokens, cost, count = add_tokens(tokens, row.tokens), cost + row.cost, count + 1
    return Spent(name=name, rows=count, tokens=tokens, cost=cost)
