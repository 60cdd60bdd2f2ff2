"""The choice of a provider at the terminal: a numbered list that what is typed narrows. It needs lines only."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from turnkeeper.cli.output import typed_line
from turnkeeper.cli.screen import Screen, harmless, show
from turnkeeper.model.refusal import Invalid
from turnkeeper.text.number import number_in

if TYPE_CHECKING:
    from turnkeeper.providers.catalog import Catalog

SHOWN: Final = 15


class Offered(NamedTuple):
    """A provider in the list."""

    id: str
    title: str


def narrowed(offered: Sequence[Offered], shown: Sequence[Offered], typed: str) -> Sequence[Offered]:
    """The providers that a typed line leaves: one if it is a number or a whole id, else those that have the words."""
    words = typed.casefold().split()
    number = number_in(typed.strip())
    if number is not None and 0 < number <= len(shown[:SHOWN]):
        return [shown[number - 1]]
    exact = [one for one in offered if typed.strip().casefold() in (one.id.casefold(), one.title.casefold())]
    fitting = [one for one in offered if all(word in f"{one.id} {one.title}".casefold() for word in words)]
    return exact[:1] or fitting


def pick(catalog: "Catalog") -> str:
    """Ask for a provider that takes a key, until one is left. Raises Invalid at the end of input."""
    offered = _offered(catalog)
    screen = Screen.of(sys.stderr)
    shown: Sequence[Offered] = offered
    while True:
        _list(screen, shown, len(offered))
        typed = typed_line("Provider (a number, or part of its name): ")
        if not typed:
            raise Invalid("nothing was chosen; nothing was stored")
        found = narrowed(offered, shown, typed)
        if len(found) == 1:
            return found[0].id
        if not found:
            show(f"No provider has {harmless(typed.strip())!r} in its name.", to=sys.stderr)
        shown = found or offered


def _offered(catalog: "Catalog") -> list[Offered]:
    from turnkeeper.providers.choice import PREFERRED

    known = [one for one in catalog.providers() if catalog.variables(one) or catalog.is_configured(one)]
    first = [one for one in PREFERRED if one in known]
    return [Offered(one, catalog.title(one)) for one in dict.fromkeys([*first, *known])]


def _list(screen: Screen, shown: Sequence[Offered], everything: int) -> None:
    lines = [
        f"{number:>3}  {screen.paint(harmless(one.title), 'bold')}  {screen.paint(harmless(one.id), 'dim')}"
        for number, one in enumerate(shown[:SHOWN], start=1)
    ]
    if len(shown) > SHOWN:
        lines.append(screen.paint(f"     ... and {len(shown) - SHOWN} of {everything} more", "dim"))
    show("\n".join(lines), to=sys.stderr)
