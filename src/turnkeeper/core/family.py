"""A session with its descendants: what each of them cost and what they cost together; parents that form a cycle."""

from collections.abc import Mapping, Sequence

from turnkeeper.core.usage import add_costs
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value


class Kin(Value):
    """A session of a family. ``cost`` is its own; ``total_cost`` adds that of all below it, each once."""

    id: str
    title: str
    agent: str | None = None
    status: str
    cost: int | float
    total_cost: int | float
    children: tuple["Kin", ...] = ()


def family(root: Session, descendants: Sequence[Session], statuses: Mapping[str, str]) -> Kin:
    """The tree of a session. Children are in the order of creation. A session without a status is idle."""
    below: dict[str, list[Session]] = {}
    known = {one.id: one for one in sorted(descendants, key=lambda one: one.id, reverse=True)}
    for one in sorted(known.values(), key=lambda one: one.time.created):  # Of one moment, later ones have lower ids.
        below.setdefault(one.parent_id or "", []).append(one)

    def kin(session: Session) -> Kin:
        children = tuple(kin(one) for one in below.pop(session.id, ()))  # Popped: none is counted twice.
        return Kin(
            id=session.id,
            title=session.title,
            agent=session.agent,
            status=statuses.get(session.id, "idle"),
            cost=session.cost,
            total_cost=add_costs(session.cost, *(one.total_cost for one in children)),
            children=children,
        )

    return kin(root)


def total_cost(root: Session, descendants: Sequence[Session]) -> float:
    """What a session and all below it cost."""
    return add_costs(*{one.id: one.cost for one in (root, *descendants)}.values())


def parent_cycles(parents: Mapping[str, str]) -> list[tuple[str, ...]]:
    """The cycles among sessions and their parents, each once and from its lowest id on."""
    found: list[tuple[str, ...]] = []
    done: set[str] = set()
    for start in sorted(parents):
        walked: dict[str, None] = {}
        here: str | None = start
        while here is not None and here not in walked and here not in done:
            walked[here] = None
            here = parents.get(here)
        if here is not None and here in walked:
            names = list(walked)
            cycle = names[names.index(here) :]
            first = cycle.index(min(cycle))
            found.append((*cycle[first:], *cycle[:first]))
        done.update(walked)
    return found
