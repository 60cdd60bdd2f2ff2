"""System Context: one file per Context Component. A new one is a file here and a line in BUILT_IN."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.date import DATE
from turnkeeper.context.environment import ENVIRONMENT
from turnkeeper.context.files import FILES
from turnkeeper.context.instructions import components as instructions
from turnkeeper.context.mode import MODE
from turnkeeper.context.prompt import PROMPT

Several: TypeAlias = Callable[[Sampling], Awaitable[Sequence[ContextComponent]]]
"""Gives components whose number is known only when one looks, as there are many instruction files."""

BUILT_IN: tuple[ContextComponent | Several, ...] = (PROMPT, ENVIRONMENT, FILES, DATE, instructions, MODE)
"""In the order the model reads them."""


async def assemble(sampling: Sampling, own: Sequence[ContextComponent] = ()) -> list[ContextComponent]:
    """All components of a turn: the built-in ones as declared, then the plugins' in the order of their keys."""
    found: list[ContextComponent] = []
    for one in BUILT_IN:
        found.extend([one] if isinstance(one, ContextComponent) else await one(sampling))
    return [*found, *sorted(own, key=lambda component: component.key)]
