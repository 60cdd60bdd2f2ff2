"""The command that draws a session with its Child Sessions."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from turnkeeper.cli import names
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer
from turnkeeper.cli.request_lines import open_requests
from turnkeeper.cli.screen import Screen, cells, money, one_line
from turnkeeper.cli.status_word import status_word

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.core.family import Kin
    from turnkeeper.model.session import Session

TITLE_LEAST = 8
COLORS = {"busy": "green", "retry": "yellow", "waits": "yellow", "left open": "yellow"}


async def tree(id: names.SessionName, /, *, options: Options) -> None:
    """Draw a session and all its descendants, with status, agent and cost.

    The cost of a session with children is shown twice: its own, and the total
    with all below it. The status is idle, busy, retry, waits, for one whose call
    waits for your answer, or left open, for one whose process is gone and that
    `session resume` continues. With --json the answer is {"id", "title", "agent",
    "status", "cost", "totalCost", "children"}.

    For example:
      turnkeeper session tree calm-otter
      turnkeeper session tree ses_e1f51c506ffe --json | jq .totalCost
    """
    from turnkeeper.core.family import family

    async with options.sessions(read_only=True) as tk:
        root = await tk.get(await names.session(tk, id))
        below = await tk.children(root.id, recursive=True)
        found = family(root, below, await _statuses(tk, [root, *below]))
    answer(options, found, lambda screen: "\n".join(_lines(screen, found)))


async def _statuses(tk: "Turnkeeper | Client", sessions: "Sequence[Session]") -> dict[str, str]:
    """The word for the status of each."""
    asking: set[str] = set()
    for directory in {one.directory for one in sessions}:
        asking |= {one.session_id for one in await open_requests(tk, directory)}
    store = local_store(tk)
    found: dict[str, str] = {}
    for one in sessions:
        is_asking = one.id in asking
        if store is None:
            found[one.id] = status_word(await tk.status(one.id), None, is_asking=is_asking, is_served=True)
        else:
            state = await store.store.queries.state(one.id)
            found[one.id] = status_word(state.status, state.owner, is_asking=is_asking, is_served=False)
    return found


def _lines(screen: Screen, kin: "Kin", before: str = "", below: str = "") -> Iterator[str]:
    agent = f"@{one_line(kin.agent)}" if kin.agent else ""
    cost = money(kin.cost) if not kin.children else f"{money(kin.cost)} of {money(kin.total_cost)}"
    facts = [one for one in (kin.id, kin.status, agent, cost) if one]
    room = max(TITLE_LEAST, (screen.width or 0) - cells(f"{before}{'  '.join(facts)}  "))
    title = screen.fit(one_line(kin.title), room)
    id, status, *rest = facts
    painted = [screen.paint(id, "cyan"), screen.paint(status, COLORS.get(status, "dim")), *rest]
    yield f"{before}{'  '.join(painted)}  {screen.paint(title, 'bold' if not before else 'dim')}"
    for place, child in enumerate(kin.children):
        is_last = place == len(kin.children) - 1
        yield from _lines(screen, child, below + ("└─ " if is_last else "├─ "), below + ("   " if is_last else "│  "))
