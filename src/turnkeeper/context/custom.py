"""Custom components: functions that tell the model one fact, made Context Components by a decorator."""

import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from turnkeeper.context.component import ContextComponent, Sampling
from turnkeeper.context.components import check_key
from turnkeeper.model.context import Absent, Loaded, Sample
from turnkeeper.model.refusal import Invalid

Fact: TypeAlias = str | Sample | None
FactFunction: TypeAlias = Callable[[], Fact] | Callable[[], Awaitable[Fact]]
SampledFunction: TypeAlias = Callable[[Sampling], Fact] | Callable[[Sampling], Awaitable[Fact]]


def component(key: str) -> Callable[[FactFunction | SampledFunction], ContextComponent]:
    """Make a function a Context Component: ``@turnkeeper.component("acme/wind")``.

    The function returns what the model is told: a text, None while there is nothing to tell, or a Sample. It may take a
    ``Sampling``, and it may be a coroutine function. It is called before each turn, and the model is told what changed.
    A text must state the whole fact, because it is both the beginning and the news. Raises Invalid for a wrong key.
    """
    check_key(key)

    def made(function: FactFunction | SampledFunction) -> ContextComponent:
        if not callable(function):
            raise Invalid(f"a component is a function, not {function!r:.80}")
        takes_sampling = bool(inspect.signature(function).parameters)

        async def load(sampling: Sampling) -> Sample:
            found: object = function(*([sampling] if takes_sampling else []))
            return _sample(key, await found if inspect.isawaitable(found) else found)

        return ContextComponent(key, load)

    return made


def _sample(key: str, found: object) -> Sample:
    match found:
        case None:
            return Absent()
        case str():
            return Loaded(baseline=found, update=found)
        case _ if isinstance(found, Sample):
            return found
    raise TypeError(f"the component {key!r} returned {type(found).__name__}; it must return text, None or a Sample")
