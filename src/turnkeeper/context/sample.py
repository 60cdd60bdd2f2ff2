"""Sample the System Context: every component loaded once, concurrently, in an order that never depends on chance."""

import logging
from collections.abc import Awaitable, Iterable, Sequence
from typing import TypeVar

import anyio

from turnkeeper.context.component import ContextComponent, Family, Sampling
from turnkeeper.core.limits import COMPONENT_CHARS_MAX, COMPONENT_LOAD_S
from turnkeeper.model.context import Absent, Loaded, Sample, Unavailable
from turnkeeper.outside_code import contained
from turnkeeper.text.surrogates import clean

log = logging.getLogger(__name__)

T = TypeVar("T")


async def sample(
    declared: Iterable[ContextComponent | Family],
    own: Iterable[ContextComponent],
    sampling: Sampling,
    *,
    load_s: float = COMPONENT_LOAD_S,
) -> list[tuple[str, Sample]]:
    """One sample of each: the built-in ones as declared, then the plugins' in the order of their keys.

    A slow or failing component is Unavailable, never an error.
    """
    components = [*declared, *sorted(own, key=lambda component: component.key)]
    found: dict[int, Sequence[tuple[str, Sample]]] = {}

    async def take(place: int, one: ContextComponent | Family) -> None:
        if isinstance(one, Family):
            found[place] = await _family(one, sampling, load_s)
        else:
            found[place] = [(one.key, await _load(one, sampling, load_s if one.may_wait(sampling) else None))]

    waiting = [(n, one) for n, one in enumerate(components) if isinstance(one, Family) or one.may_wait(sampling)]
    if len(waiting) > 1:  # One alone needs no task.
        async with anyio.create_task_group() as group:
            for place, one in waiting:
                group.start_soon(take, place, one)
    for place, one in enumerate(components):
        if place not in found:
            await take(place, one)
    return [loaded for place in range(len(components)) for loaded in found[place]]


async def _family(family: Family, sampling: Sampling, load_s: float) -> list[tuple[str, Sample]]:
    """The members of a family; if nobody can say which there are, the family as a whole is Unavailable."""
    members = await _within(load_s, family.key, family.find(sampling))
    if isinstance(members, Unavailable):
        return [(family.key, members)]
    return await sample(members, (), sampling, load_s=load_s) if members else []


async def _load(component: ContextComponent, sampling: Sampling, load_s: float | None) -> Sample:
    async def load() -> Sample:
        return _fit(component.key, await component.load(sampling))

    return await _within(load_s, component.key, load())


async def _within(load_s: float | None, key: str, work: Awaitable[T]) -> T | Unavailable:
    """What comes of it; Unavailable if it fails or takes too long."""
    try:
        with anyio.fail_after(load_s) as limit, contained():
            return await work
    except Exception as error:
        # A component may come from anywhere; what it cannot tell must not keep the model from being asked.
        is_slow = load_s is not None and limit.cancelled_caught
        reason = f"took longer than {load_s:g} s" if is_slow else f"{type(error).__name__}: {error}"
    log.warning("the context component %s is unavailable: %s", key, reason)
    return Unavailable(reason=reason)


def _fit(key: str, sample: object) -> Sample:
    """A sample in characters that can be written; text longer than the context can bear is cut, and says so."""
    match sample:
        case Loaded(baseline=baseline, update=update):
            return Loaded(baseline=_cut(key, clean(baseline)), update=_cut(key, clean(update)))
        case Absent(removal=removal):
            return Absent(removal=_cut(key, clean(removal)))
        case Unavailable():
            return sample
    raise TypeError(f"a component gives Loaded, Absent or Unavailable, not {type(sample).__name__}")


def _cut(key: str, text: str) -> str:
    if len(text) <= COMPONENT_CHARS_MAX:
        return text
    return f"{text[:COMPONENT_CHARS_MAX]}\n[{key} is longer than {COMPONENT_CHARS_MAX} characters and was cut here]"
