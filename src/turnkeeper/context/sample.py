"""Sample the System Context: every component loaded once, concurrently, in an order that never depends on chance."""

import logging
from collections.abc import Sequence

import anyio

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.core.limits import COMPONENT_CHARS_MAX, COMPONENT_LOAD_S
from turnkeeper.model.context import Loaded, Sample, Unavailable

log = logging.getLogger(__name__)


async def sample(components: Sequence[ContextComponent], sampling: Sampling) -> list[tuple[str, Sample]]:
    """One sample of each, in the order given. A slow or failing component is Unavailable, never an error."""
    found: dict[int, Sample] = {}

    async def load(place: int, component: ContextComponent) -> None:
        found[place] = await _load(component, sampling)

    async with anyio.create_task_group() as group:
        for place, component in enumerate(components):
            group.start_soon(load, place, component)
    return [(component.key, found[place]) for place, component in enumerate(components)]


async def _load(component: ContextComponent, sampling: Sampling) -> Sample:
    try:
        with anyio.fail_after(COMPONENT_LOAD_S):
            return _bounded(component.key, await component.load(sampling))
    except TimeoutError:
        return Unavailable(reason=f"took longer than {COMPONENT_LOAD_S} s")
    except Exception as error:
        # A component may come from anywhere; what it cannot tell must not keep the model from being asked.
        log.warning("context component %s failed: %s", component.key, error)
        return Unavailable(reason=str(error))


def _bounded(key: str, sample: Sample) -> Sample:
    """A component that is larger than the context can bear is cut, and says so."""
    if not isinstance(sample, Loaded):
        return sample
    return Loaded(baseline=_cut(key, sample.baseline), update=_cut(key, sample.update))


def _cut(key: str, text: str) -> str:
    if len(text) <= COMPONENT_CHARS_MAX:
        return text
    return f"{text[:COMPONENT_CHARS_MAX]}\n[{key} is longer than {COMPONENT_CHARS_MAX} characters and was cut here]"
