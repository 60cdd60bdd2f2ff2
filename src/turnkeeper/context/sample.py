"""Sample the System Context: load every component once, concurrently. The order of the samples is fixed."""

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
    """The samples of the declared components in their order, then those of plugins by key.

    A component that fails or exceeds the timeout is Unavailable.
    """
    components = [*declared, *sorted(own, key=lambda component: component.key)]
    found: dict[int, Sequence[tuple[str, Sample]]] = {}

    async def take(place: int, one: ContextComponent | Family) -> None:
        if isinstance(one, Family):
            found[place] = await _family(one, sampling, load_s)
        else:
            found[place] = [(one.key, await _load(one, sampling, load_s if one.may_wait(sampling) else None))]

    waiting = [(n, one) for n, one in enumerate(components) if isinstance(one, Family) or one.may_wait(sampling)]
    if len(waiting) > 1:  # A single component needs no task.
        async with anyio.create_task_group() as group:
            for place, one in waiting:
                group.start_soon(take, place, one)
    for place, one in enumerate(components):
        if place not in found:
            await take(place, one)
    return [loaded for place in range(len(components)) for loaded in found[place]]


async def _family(family: Family, sampling: Sampling, load_s: float) -> list[tuple[str, Sample]]:
    """The samples of the members of a family. If they cannot be found, the family itself is Unavailable."""
    members = await _within(load_s, family.key, family.find(sampling))
    if isinstance(members, Unavailable):
        return [(family.key, members)]
    return await sample(members, (), sampling, load_s=load_s) if members else []


async def _load(component: ContextComponent, sampling: Sampling, load_s: float | None) -> Sample:
    async def load() -> Sample:
        return _fit(component.key, await component.load(sampling))

    return await _within(load_s, component.key, load())


async def _within(load_s: float | None, key: str, work: Awaitable[T]) -> T | Unavailable:
    """The result of ``work``; Unavailable if it fails or exceeds the timeout."""
    try:
        with anyio.fail_after(load_s) as limit, contained():
            return await work
    except Exception as error:
        # A plugin may raise anything, which must not prevent the request to the model.
        is_slow = load_s is not None and limit.cancelled_caught
        reason = f"took longer than {load_s:g} s" if is_slow else f"{type(error).__name__}: {error}"
    log.warning("the context component %s is unavailable: %s", key, reason)
    return Unavailable(reason=reason)


def _fit(key: str, sample: object) -> Sample:
    """A sample without lone surrogates, and with long texts cut."""
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
