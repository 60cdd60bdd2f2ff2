"""Sampling: every component once, together, in an order that never depends on chance, and never an error."""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from pathlib import Path

import anyio
import pytest
from msgspec.structs import fields, replace

from turnkeeper.context.component import Absent, ContextComponent, Family, Loaded, Sample, Sampling, Unavailable
from turnkeeper.context.components import Components
from turnkeeper.context.files import FILES
from turnkeeper.context.sample import sample
from turnkeeper.core.limits import COMPONENT_CHARS_MAX
from turnkeeper.model.agent import Agent
from turnkeeper.model.refusal import Invalid
from turnkeeper.providers.catalog import OFFLINE
from turnkeeper.registry import DuplicateKey
from turnkeeper.workspace.project import identify


@pytest.fixture
async def sampling(tmp_path: Path) -> Sampling:
    return Sampling(
        place=await identify(tmp_path),
        model=OFFLINE,
        agent=Agent(name="build"),
        now=lambda: datetime(2026, 11, 15),
        environ={},
        home=tmp_path,
    )


def a_component(key: str, load: Callable[[], Awaitable[object]]) -> ContextComponent:
    async def loaded(_: Sampling) -> Sample:
        return await load()  # type: ignore[return-value] # Some of these are wrong on purpose.

    return ContextComponent(key, loaded)


def fact(key: str) -> ContextComponent:
    async def load() -> Sample:
        return Loaded(baseline=key, update=key)

    return a_component(key, load)


async def test_components_are_loaded_together_and_reported_in_order(sampling: Sampling) -> None:
    """Each waits for the next one to have begun: one after the other they would wait for ever."""
    begun = [anyio.Event() for _ in range(4)]

    def waiting(number: int) -> ContextComponent:
        async def load() -> Sample:
            begun[number].set()
            await begun[(number + 1) % 4].wait()
            return Loaded(baseline=str(number), update="")

        return a_component(f"acme/{9 - number}", load)

    async def members(_: Sampling) -> list[ContextComponent]:
        return [waiting(1), waiting(2)]

    with anyio.fail_after(60):
        found = await sample([waiting(0), Family("acme/", members)], [fact("b/b"), waiting(3), fact("a/a")], sampling)
    assert [key for key, _ in found] == ["acme/9", "acme/8", "acme/7", "a/a", "acme/6", "b/b"]


async def test_what_fails_hangs_or_is_no_sample_is_unavailable(
    sampling: Sampling, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails() -> Sample:
        raise KeyError("a bug")

    async def none() -> object:
        return None

    async def hangs() -> Sample:
        await anyio.sleep_forever()
        raise AssertionError

    async def lost(_: Sampling) -> list[ContextComponent]:
        raise OSError("the disk is gone")

    declared = [a_component("a/fails", fails), a_component("a/none", none), a_component("a/hangs", hangs)]
    with caplog.at_level(logging.WARNING):
        found = dict(await sample([*declared, Family("a/family/", lost), fact("a/fact")], (), sampling, load_s=0.01))
    assert found["a/fact"] == Loaded(baseline="a/fact", update="a/fact")
    assert found["a/fails"] == Unavailable(reason="KeyError: 'a bug'")
    assert found["a/family/"] == Unavailable(reason="OSError: the disk is gone")
    assert found["a/hangs"] == Unavailable(reason="took longer than 0.01 s")
    assert found["a/none"] == Unavailable(
        reason="TypeError: a component gives Loaded, Absent or Unavailable, not NoneType"
    )
    assert len(caplog.records) == 4


async def test_one_that_waits_for_nothing_stands_in_its_place_and_may_fail_too(sampling: Sampling) -> None:
    def at_once(key: str) -> ContextComponent:
        return replace(fact(key), waits=False)

    async def fails(_: Sampling) -> Sample:
        raise KeyError("a bug")

    declared = [at_once("a/1"), fact("a/2"), ContextComponent("a/3", fails, waits=False), fact("a/4"), at_once("a/5")]
    found = await sample(declared, (), sampling)
    assert [key for key, _ in found] == ["a/1", "a/2", "a/3", "a/4", "a/5"]
    assert dict(found)["a/3"] == Unavailable(reason="KeyError: 'a bug'")


async def test_a_text_is_cut_and_made_of_whole_characters(sampling: Sampling) -> None:
    async def long() -> Sample:
        return Loaded(baseline="x" * (COMPONENT_CHARS_MAX + 1), update="\udcff")

    async def gone() -> Sample:
        return Absent(removal="\udcff gone")

    declared = [a_component("a/long", long), a_component("a/gone", gone)]
    cut = f"{'x' * COMPONENT_CHARS_MAX}\n[a/long is longer than {COMPONENT_CHARS_MAX} characters and was cut here]"
    assert await sample(declared, (), sampling) == [
        ("a/long", Loaded(baseline=cut, update="\ufffd")),
        ("a/gone", Absent(removal="\ufffd gone")),
    ]


async def test_the_map_of_the_files_costs_nothing_inside_an_epoch(sampling: Sampling) -> None:
    sample_inside = await FILES.load(replace(sampling, begins=False))
    assert sample_inside == Unavailable(reason="drawn once, when an epoch begins")


def test_what_components_may_look_at_does_not_grow_with_the_history() -> None:
    assert {one.name for one in fields(Sampling)} == {
        "place",
        "model",
        "agent",
        "now",
        "environ",
        "home",
        "instructions",
        "nested",
        "skills",
        "rules",
        "served",
        "begins",
    }


@pytest.mark.parametrize(
    "key", ["weather", "Acme/weather", "acme/", "/weather", "acme/we ather", "acme//x", "acme/-x", ""]
)
def test_a_key_that_is_no_namespace_and_name_is_refused(key: str) -> None:
    with pytest.raises(Invalid, match="write it as namespace/name in lower case"):
        Components().register(fact(key))


@pytest.mark.parametrize("key", ["acme/weather", "acme-2/we.at_her", "0/1", "acme/sea/tide"])
def test_a_key_of_namespace_and_name_is_taken(key: str) -> None:
    components = Components()
    with components.register(fact(key)):
        assert [one.key for one in components] == [key]
    assert list(components) == []


@pytest.mark.parametrize("key", ["core/date", "core/instructions/x", "core/new"])
def test_our_own_namespace_is_refused(key: str) -> None:
    with pytest.raises(Invalid, match="belongs to Turnkeeper"):
        Components().register(fact(key))


def test_a_reload_leaves_one_component_whoever_closes_last() -> None:
    components = Components()
    old = components.register(fact("acme/weather"))
    with pytest.raises(DuplicateKey):
        components.register(fact("acme/weather"))
    old.close()
    new = fact("acme/weather")
    components.register(new)
    old.close()
    assert list(components) == [new]
