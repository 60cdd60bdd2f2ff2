"""Seed 000, sentence by sentence: each test is named after the sentence of "Relationships" that it proves.

docs/reference/seed-000.md is the table of both; test_tables.py holds it against this file.
"""

import ast
import asyncio
import io
from collections.abc import AsyncIterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import anyio
import pytest
from context_world import DAY_MS, Fact, admitted, compact, epoch, epochs, news, prefixes, roles, world, write
from narrow import first_text, of_type

from turnkeeper.cli.main import main
from turnkeeper.context import BUILT_IN
from turnkeeper.context.component import Absent, ContextComponent, Loaded, Sample, Sampling, Unavailable
from turnkeeper.core.projector import project
from turnkeeper.core.system_context import REMOVED, Circumstances, DuplicateComponent, fingerprint, reconcile
from turnkeeper.model.event import ContextAdmitted, EpochStarted, InstructionDiscovered
from turnkeeper.model.message import ContextUpdate, ModelChoice, SystemMessage
from turnkeeper.model.request import SystemTurn, ToolTurn, UserTurn
from turnkeeper.providers import anthropic, openai_responses
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.scripted import Scripted
from turnkeeper.registry import DuplicateKey
from turnkeeper.testing.harness import Stage, a_tool
from turnkeeper.tools.tool import ToolContext
from turnkeeper.workspace.instructions import InstructionSource, discover, nearby, read
from turnkeeper.workspace.project import identify

SOURCE = Path(__file__).resolve().parents[2] / "src/turnkeeper"
OTHER = ModelChoice(provider_id="acme", model_id="other")


@pytest.fixture
def script() -> Scripted:
    """A model that always has something to say."""
    return Scripted().says("Yes.").forever()


@pytest.fixture
async def stage(place: Path, script: Scripted) -> AsyncIterator[Stage]:
    async with world(place, script) as opened:
        yield opened


async def test_a_system_context_contains_one_or_more_context_components(stage: Stage, script: Scripted) -> None:
    session = await stage.session()
    await stage.ask(session, "hello")
    baseline = (await epoch(stage, session)).baseline
    assert [one.key for one in baseline] == ["core/prompt", "core/environment", "core/date"]
    assert script.requests[0].system == tuple(one.text for one in baseline)


async def test_a_changed_context_component_may_produce_one_mid_conversation_system_message(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        await stage.ask(session, "unchanged")
        fact.is_now("sun")
        await stage.ask(session, "changed")
    assert [message.updates for message in await admitted(stage, session)] == [
        (ContextUpdate(key="acme/weather", text="acme/weather is now sun"),)
    ]
    assert [news(request) for request in script.requests] == [[], [], ["acme/weather is now sun"]]


async def test_a_mid_conversation_system_message_persists_its_originating_context_component_key(
    place: Path, tmp_path: Path, script: Scripted
) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    fact = Fact("acme/weather", "rain")
    async with world(place, script, url=url) as stage:
        with stage.tk.context(fact.component):
            session = await stage.session()
            await stage.ask(session, "hello")
            fact.is_now("sun & <wind>")
            await stage.ask(session, "and now?")
    async with world(place, script, url=url) as stage:
        [message] = [one.info for one in await stage.messages(session) if isinstance(one.info, SystemMessage)]
        assert message.updates == (ContextUpdate(key="acme/weather", text=news(script.requests[1])[0]),)
        assert message.updates[0].text == "acme/weather is now sun & <wind>"


async def test_a_context_checkpoint_advances_atomically_with_the_corresponding_durable(stage: Stage) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        fact.is_now("sun")
        await stage.ask(session, "and now?")
    checkpoints: list[tuple[type, dict[str, str] | None]] = []
    recorded = await stage.tk.store.journal.read(session)
    for count, one in enumerate(recorded, 1):
        view = project(recorded[:count])
        known = dict(view.epoch.checkpoint) if view is not None and view.epoch is not None else None
        if not checkpoints or checkpoints[-1][1] != known:
            checkpoints.append((type(one.event), known))
    assert [kind for kind, _ in checkpoints[1:]] == [EpochStarted, ContextAdmitted]
    [event] = [one.event for one in recorded if isinstance(one.event, ContextAdmitted)]
    assert event.message.updates[0].text == "acme/weather is now sun"
    assert event.checkpoint == checkpoints[-1][1]


async def test_a_context_checkpoint_stores_one_rendered_content_hash_per_stable_context_component_key(
    stage: Stage,
) -> None:
    weather, tide = Fact("acme/weather", "rain"), Fact("acme/tide", "low")
    with stage.tk.context(weather.component), stage.tk.context(tide.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        before = dict((await epoch(stage, session)).checkpoint)
        weather.is_now("sun")
        await stage.ask(session, "and now?")
        after = dict((await epoch(stage, session)).checkpoint)
    assert before["acme/tide"] == fingerprint(Loaded(baseline="", update="acme/tide is now low"))
    assert after == {**before, "acme/weather": fingerprint(Loaded(baseline="", update="acme/weather is now sun"))}
    assert after["acme/weather"] != before["acme/weather"]


async def test_changes_from_multiple_context_components_admitted_at_one_safe_boundary_combine(
    stage: Stage, script: Scripted
) -> None:
    weather, tide = Fact("acme/weather", "rain"), Fact("acme/tide", "low")
    with stage.tk.context(weather.component), stage.tk.context(tide.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        weather.is_now("sun")
        tide.is_now("high")
        stage.time.advance(DAY_MS)
        await stage.ask(session, "and now?")
    [message] = await admitted(stage, session)
    assert [update.key for update in message.updates] == ["core/date", "acme/tide", "acme/weather"]
    assert news(script.requests[1]) == ["\n\n".join(update.text for update in message.updates)]


async def test_context_changes_are_sampled_and_admitted_lazily_at_a_safe_provider_turn_boundary(
    place: Path,
) -> None:
    fact = Fact("acme/weather", "rain")
    samples: list[int] = []

    async def change(text: str, _: ToolContext) -> str:
        fact.is_now(text)
        samples.append(fact.loads)
        return "changed"

    script = Scripted().calls("change", text="sun").calls("change", text="snow").then().says("Snow it is.")
    async with world(place, script, tools=(a_tool("change", change),)) as stage:
        with stage.tk.context(fact.component):
            assert fact.loads == 0
            session = await stage.session()
            await stage.say(session, "hello", resume=False)
            assert fact.loads == 0
            await stage.tk.run(session)
            assert samples == [1, 1], "a change inside a turn makes nobody look"
            assert fact.loads == 2, "once for each boundary"
    assert [news(request) for request in script.requests] == [[], ["acme/weather is now snow"]]


async def test_at_a_safe_provider_turn_boundary_newly_promoted_user_input_or_settled_tool_results(
    place: Path,
) -> None:
    fact = Fact("acme/weather", "rain")

    async def change(text: str, _: ToolContext) -> str:
        fact.is_now(text)
        return "changed"

    script = Scripted().calls("change", text="sun").then().says("Sun.").then().says("Hail.")
    async with world(place, script, tools=(a_tool("change", change),)) as stage:
        with stage.tk.context(fact.component):
            session = await stage.session()
            await stage.ask(session, "hello")
            fact.is_now("hail")
            await stage.ask(session, "and now?")
    settled, promoted = script.requests[1:]
    assert roles(settled) == ["user", "assistant", "tool", "system"]
    assert isinstance(settled.messages[-2], ToolTurn)
    assert roles(promoted) == ["user", "assistant", "tool", "system", "assistant", "user", "system"]
    assert isinstance(promoted.messages[-2], UserTurn)
    assert promoted.messages[-1] == SystemTurn(text="acme/weather is now hail")


async def test_the_first_provider_turn_renders_the_latest_baseline_system_context_and_initializes(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.say(session, "hello", resume=False)
        fact.is_now("sun")
        await stage.tk.run(session)
    assert script.requests[0].system[-1] == "acme/weather: sun"
    assert (news(script.requests[0]), await admitted(stage, session)) == ([], [])
    [begun] = await epochs(stage, session)
    assert (begun.reason, begun.checkpoint["acme/weather"]) == ("start", fingerprint(of_type(Loaded, fact.sample)))


async def test_compaction_starts_a_new_context_epoch_with_a_freshly_rendered_baseline_system_context(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        fact.is_now("sun")
        await stage.ask(session, "and now?")
        await compact(stage, session)
        await stage.ask(session, "go on")
    first, second = await epochs(stage, session)
    assert (first.number, second.number, second.reason) == (1, 2, "compaction")
    assert (first.baseline[-1].text, second.baseline[-1].text) == ("acme/weather: rain", "acme/weather: sun")
    assert second.checkpoint["acme/weather"] == fingerprint(of_type(Loaded, fact.sample))
    assert news(script.requests[1]) == ["acme/weather is now sun"]
    assert news(script.requests[2]) == [], "news of an earlier epoch leaves what the model is shown"
    stored = [one.info for one in await stage.messages(session) if isinstance(one.info, SystemMessage)]
    assert stored == [one.but(seq=stored[0].seq) for one in await admitted(stage, session)], "and stays on record"


async def test_a_context_checkpoint_is_an_evolvable_component_map_a_newly_registered_core_or_plugin(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    session = await stage.session()
    await stage.ask(session, "hello")
    with stage.tk.context(fact.component):
        await stage.ask(session, "registered")
        await stage.ask(session, "still there")
    assert [news(request) for request in script.requests] == [
        [],
        ["acme/weather is now rain"],
        ["acme/weather is now rain"],
    ]
    assert len(await admitted(stage, session)) == 1


async def test_context_component_keys_are_stable_and_namespaced_duplicate_keys_fail_assembly(stage: Stage) -> None:
    assert all(one.key.startswith("core/") for one in BUILT_IN)
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component), pytest.raises(DuplicateKey, match="'acme/weather'"):
        stage.tk.context(Fact("acme/weather", "sun").component)
    twice = [("acme/weather", fact.sample), ("acme/weather", fact.sample)]
    with pytest.raises(DuplicateComponent, match="'acme/weather'"):
        reconcile(twice, None, Circumstances(provider_id="acme", model_id="large", directory="/"))


async def test_built_in_components_preserve_declaration_order_and_plugin_defined_components_append(
    stage: Stage, script: Scripted, place: Path
) -> None:
    write(place / "AGENTS.md", "Be kind.")
    facts = [Fact(key, "x") for key in ("zoo/a", "acme/b", "acme/a", "middle/z")]
    for fact in facts:
        stage.tk.context(fact.component)
    session = await stage.session()
    await stage.ask(session, "hello")
    assert [one.key for one in (await epoch(stage, session)).baseline] == [
        "core/prompt",
        "core/environment",
        "core/date",
        f"core/instructions/{place}/AGENTS.md",
        "acme/a",
        "acme/b",
        "middle/z",
        "zoo/a",
    ]
    again = await stage.session()
    await stage.ask(again, "hello")
    assert script.requests[0].system == script.requests[1].system


async def test_each_context_component_loader_returns_its_model_visible_baseline_string_and_absolute(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather")
    fact.sample = Loaded(baseline="It rains.", update="It rains now.")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        fact.sample = Loaded(baseline="Rain, as ever.", update="It rains now.")
        await stage.ask(session, "another baseline is no news")
        fact.sample = Loaded(baseline="Rain, as ever.", update="The sun shines.")
        await stage.ask(session, "another update is")
    assert script.requests[0].system[-1] == "It rains."
    assert [news(request) for request in script.requests] == [[], [], ["The sun shines."]]
    assert fact.loads == 3, "one sample gives both"


async def test_unavailable_context_uses_stale_while_revalidate_semantics_and_is_distinct(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        before = await epoch(stage, session)
        loaded, fact.sample = fact.sample, Unavailable(reason="no signal")
        await stage.ask(session, "nothing is said of it")
        assert await epoch(stage, session) == before
        fact.sample = loaded
        await stage.ask(session, "it is as it was")
        assert await epoch(stage, session) == before
        fact.sample = Absent(removal="There is no weather any more.")
        await stage.ask(session, "gone")
        await stage.ask(session, "and stays gone")
    assert [news(request) for request in script.requests[2:]] == [[], *2 * [["There is no weather any more."]]]


async def test_ordinary_context_component_loaders_return_values_directly_loaders_that_intentionally(
    stage: Stage, script: Scripted
) -> None:
    async def directly(_: Sampling) -> Sample:
        return Loaded(baseline="Here.", update="Still here.")

    late = Fact("acme/late")
    late.sample = Unavailable()
    with stage.tk.context(ContextComponent("acme/direct", directly)), stage.tk.context(late.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        assert [one.key for one in (await epoch(stage, session)).baseline][-1] == "acme/direct"
        late.is_now("loaded")
        await stage.ask(session, "it came")
        await stage.ask(session, "and is known")
    assert [news(request) for request in script.requests] == [[], *2 * [["acme/late is now loaded"]]]


async def test_nested_project_instruction_files_discovered_while_reading_join_the_effective_instructions(
    place: Path,
) -> None:
    write(place / "pkg/AGENTS.md", "Only in pkg.")
    write(place / "pkg/deep/code.py", "x = 1\n")
    script = Scripted().calls("read", filePath="pkg/deep/code.py").then().says("Read.").forever()
    async with world(place, script) as stage:
        session = await stage.session()
        await stage.ask(session, "read it")
        nested = str(place / "pkg/AGENTS.md")
        events = await stage.events(session)
        assert [one.path for one in events if isinstance(one, InstructionDiscovered)] == [nested]
        assert not any("Only in pkg." in text for text in script.requests[0].system)
        assert roles(script.requests[1]) == ["user", "assistant", "tool", "system"]
        [message] = await admitted(stage, session)
        assert [update.key for update in message.updates] == [f"core/instructions/{nested}"]
        assert "Only in pkg." in news(script.requests[1])[0]


async def test_a_discovered_nested_project_instruction_remains_active_for_the_session_while_it_stays(
    place: Path,
) -> None:
    write(place / "pkg/AGENTS.md", "Only in pkg.")
    write(place / "pkg/code.py", "x = 1\n")
    script = Scripted().calls("read", filePath="pkg/code.py").then().says("Read.").forever()
    async with world(place, script) as stage:
        session = await stage.session()
        await stage.ask(session, "read it")
        write(place / "pkg/AGENTS.md", "Only in pkg, and briefly.")
        await stage.ask(session, "it changed, though nobody read anything")
        assert "and briefly." in news(script.requests[-1])[-1]
        await compact(stage, session)
        await stage.ask(session, "go on")
        assert "Only in pkg, and briefly." in script.requests[-1].system[-1]
        assert news(script.requests[-1]) == []
        (place / "pkg/AGENTS.md").unlink()
        await stage.ask(session, "it is gone")
        assert news(script.requests[-1]) == [f"The instructions from {place}/pkg/AGENTS.md no longer apply."]


async def test_location_scoped_services_naturally_re_resolve_effective_context_when_a_moved_session(
    place: Path, tmp_path: Path
) -> None:
    write(place / "AGENTS.md", "The old place.")
    write(place / "pkg/AGENTS.md", "Nested in the old place.")
    write(place / "pkg/code.py", "x = 1\n")
    there = write(tmp_path / "there/AGENTS.md", "The new place.").parent.resolve()
    script = Scripted().calls("read", filePath="pkg/code.py").then().says("Read.").forever()
    async with world(place, script) as stage:
        write(there / "turnkeeper.json", (place / "turnkeeper.json").read_text())
        session = await stage.session()
        await stage.ask(session, "read it")
        await stage.tk.move(session, there)
        assert len(script.requests) == 2, "moving asks no model"
        await stage.ask(session, "and here?")
        begun = await epoch(stage, session)
    assert (begun.reason, begun.directory) == ("move", str(there))
    told = "\n".join((*script.requests[-1].system, *news(script.requests[-1])))
    assert f"Working directory: {there}" in told
    assert "The new place." in told
    assert "old place" not in told


async def test_instruction_discovery_source_identity_persistence_and_file_loading_belong_to_the_instruction(
    place: Path,
) -> None:
    write(place / "AGENTS.md", "Be kind.")
    write(place / "pkg/AGENTS.md", "Only in pkg.")
    where = await identify(place)
    environ = {"HOME": str(place)}
    assert discover(where, (), (), environ, place) == [InstructionSource(name=str(place / "AGENTS.md"))]
    assert nearby(place / "pkg/code.py", where, environ) == [str(place / "pkg/AGENTS.md")]
    assert read(InstructionSource(name=str(place / "AGENTS.md"))) == "Be kind."
    for module in ("core/system_context.py", "context/sample.py", "context/components.py", "run/boundary.py"):
        found = {one for one in imports(SOURCE / module) if "instruction" in one or one in ("os", "io", "glob")}
        assert found == set(), f"{module} composes and renders, and knows no file"


def imports(module: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
    return names


async def test_plugin_defined_context_components_register_through_a_scoped_replayable_registry(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    session = await stage.session()
    with stage.tk.context(fact.component):
        await stage.ask(session, "loaded")
    fact.is_now("sun")
    await stage.ask(session, "unloaded: nobody looks, and the model is told that it is gone")
    gone = REMOVED.format(key="acme/weather")
    assert (fact.loads, news(script.requests[-1])) == (1, [gone])
    fact.is_now("rain")
    with stage.tk.context(fact.component):
        await stage.ask(session, "loaded again")
        assert news(script.requests[-1]) == [gone, "acme/weather is now rain"]
    with stage.tk.context(fact.component):
        await stage.ask(session, "loaded again before the next turn, unchanged")
        assert len(news(script.requests[-1])) == 2
    with stage.tk.context(Fact("acme/weather", "snow").component):
        await stage.ask(session, "loaded again, another version")
    assert news(script.requests[-1])[2:] == ["acme/weather is now snow"]
    await compact(stage, session)
    await stage.ask(session, "the next baseline is without it")
    assert not any("acme/weather" in text for text in script.requests[-1].system)


async def test_context_source_changes_never_wake_idle_sessions_the_next_naturally_scheduled(
    stage: Stage, script: Scripted, place: Path
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        rested = await stage.tk.store.journal.view(session)
        fact.is_now("sun")
        write(place / "AGENTS.md", "Be kind.")
        stage.time.advance(DAY_MS)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        assert (len(script.requests), fact.loads) == (1, 1)
        assert await stage.tk.store.journal.view(session) == rested
        await stage.ask(session, "and now?")
    [told] = news(script.requests[1])
    assert all(text in told for text in ("Today's date is now", "Be kind.", "acme/weather is now sun"))


async def test_once_admitted_a_mid_conversation_system_message_remains_durable_even_if_the_following(
    place: Path,
) -> None:
    fact = Fact("acme/weather", "rain")
    script = Scripted().says("Hi.").then().fails(401).then().says("Yes.").forever()
    async with world(place, script) as stage:
        with stage.tk.context(fact.component):
            session = await stage.session()
            await stage.ask(session, "hello")
            fact.is_now("sun")
            await stage.ask(session, "fails")
            await stage.tk.run(session, resume=True)
            await stage.ask(session, "later")
        assert len(await admitted(stage, session)) == 1
        _, failed, again, later = script.requests
        assert failed.messages == again.messages == later.messages[: len(again.messages)]
        assert news(again) == ["acme/weather is now sun"]
        assert [one.cause for one in await prefixes(stage, session)] == ["epoch 1 began: start", None, None, None]


def test_mid_conversation_system_messages_remain_durable_model_projection_history_but_are_hidden(
    place: Path, tmp_path: Path, script: Scripted
) -> None:
    url = f"sqlite:{tmp_path}/store.db"

    async def talk() -> str:
        fact = Fact("acme/weather", "rain")
        async with world(place, script, url=url) as stage:
            with stage.tk.context(fact.component):
                session = await stage.session()
                await stage.ask(session, "hello")
                fact.is_now("sun")
                await stage.ask(session, "and now?")
                await stage.ask(session, "later")
        return session

    session = asyncio.run(talk())
    assert news(script.requests[2]) == ["acme/weather is now sun"]
    shown = said("session", "messages", session, "--store", url)
    assert "and now?" in shown
    assert "acme/weather" not in shown
    assert "acme/weather is now sun" in said("session", "messages", session, "--context", "--store", url)


def said(*words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(words))
    assert (code, err.getvalue()) == (0, "")
    return out.getvalue()


async def test_the_date_context_component_initially_preserves_host_local_calendar_date_behavior(
    place: Path, script: Scripted
) -> None:
    async with world(place, script) as stage:
        session = await stage.session()
        await stage.ask(session, "hello")
        now = stage.mint.now() / 1000
        local = datetime.fromtimestamp(now)
        assert script.requests[-1].system[2] == f"Today's date: {local:%A, %d %B %Y}"
        stage.time.advance(DAY_MS)
        await stage.ask(session, "tomorrow")
        tomorrow = datetime.fromtimestamp(stage.mint.now() / 1000)
        assert news(script.requests[-1]) == [f"Today's date is now: {tomorrow:%A, %d %B %Y}"], "and not what it was"
    dates = set()
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
        async with world(place, script, config={"timezone": zone}) as stage:
            await stage.ask(await stage.session(), "hello")
            there = datetime.fromtimestamp(stage.mint.now() / 1000, ZoneInfo(zone))
            assert script.requests[-1].system[2] == f"Today's date: {there:%A, %d %B %Y}"
            dates.add(script.requests[-1].system[2])
    assert len(dates) == 2, "a day lies between them"


async def test_a_context_epoch_begins_with_one_immutable_baseline_system_context(
    stage: Stage, script: Scripted, place: Path
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        for number in range(5):
            fact.is_now(f"number {number}")
            write(place / "AGENTS.md", f"Version {number}.")
            stage.time.advance(DAY_MS)
            await stage.ask(session, "and now?")
    assert len(await epochs(stage, session)) == 1
    assert {request.system for request in script.requests} == {script.requests[0].system}
    assert len(news(script.requests[-1])) == 4


async def test_a_baseline_system_context_is_stored_durably_and_reused_verbatim_across_process_restarts(
    place: Path, tmp_path: Path, script: Scripted
) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    long = write(place / "AGENTS.md", "A long rule. " * 5000)
    async with world(place, script, url=url) as stage:
        session = await stage.session()
        await stage.ask(session, "hello")
    write(long, "A short rule.")
    async with world(place, script, url=url) as stage:
        await stage.ask(session, "hello again")
        assert len(await epochs(stage, session)) == 1
        assert [one.cause for one in await prefixes(stage, session)] == ["epoch 1 began: start", None]
    assert script.requests[0].system == script.requests[1].system
    assert script.requests[1].system[-1].count("A long rule.") == 5000
    assert "A short rule." in news(script.requests[1])[0]


async def test_a_baseline_system_context_durably_preserves_deterministic_keyed_top_level_component(
    stage: Stage, script: Scripted
) -> None:
    with stage.tk.context(Fact("acme/weather", "rain").component):
        session = await stage.session()
        await stage.ask(session, "hello")
    [begun] = await epochs(stage, session)
    assert [one.key for one in begun.baseline] == ["core/prompt", "core/environment", "core/date", "acme/weather"]
    assert script.requests[0].system == tuple(one.text for one in begun.baseline)
    endpoint = Endpoint(provider_id="acme", protocol="anthropic", base_url="http://x")
    body: Mapping[str, Any] = anthropic.body(script.requests[0], endpoint)
    assert [part["text"] for part in body["system"]] == [one.text for one in begun.baseline]


async def test_compaction_or_a_model_provider_switch_starts_a_new_context_epoch_because_the_baseline(
    stage: Stage,
) -> None:
    session = await stage.session()
    await stage.ask(session, "hello")
    await compact(stage, session)
    await stage.ask(session, "go on")
    await stage.ask(session, "you too", model=OTHER)
    await stage.ask(session, "you still")
    assert [one.reason for one in await epochs(stage, session)] == ["start", "compaction", "model"]
    causes = [one.cause for one in await prefixes(stage, session)]
    assert causes == ["epoch 1 began: start", "epoch 2 began: compaction", "epoch 3 began: model", None]


async def test_a_model_provider_switch_always_starts_a_new_context_epoch_while_preserving(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        fact.is_now("sun")
        await stage.ask(session, "and now?")
        await stage.ask(session, "you too", model=OTHER)
        large = ModelChoice(provider_id="acme", model_id="large")
        await stage.ask(session, "back again", model=large)
    begun = await epochs(stage, session)
    assert [(one.reason, one.model_id) for one in begun] == [("start", "large"), ("model", "other"), ("model", "large")]
    assert begun[1].baseline[-1].text == "acme/weather: sun"
    assert roles(script.requests[2]) == ["user", "assistant", "user", "assistant", "user"]
    users = [first_text(message) for message in script.requests[3].messages if isinstance(message, UserTurn)]
    assert users == ["hello", "and now?", "you too", "back again"]


async def test_a_mid_conversation_system_message_lowers_to_the_provider_s_native_chronological_instruction(
    stage: Stage, script: Scripted
) -> None:
    fact = Fact("acme/weather", "rain")
    with stage.tk.context(fact.component):
        session = await stage.session()
        await stage.ask(session, "hello")
        fact.is_now("<sun> & wind")
        await stage.ask(session, "and now?")
    request = script.requests[1]
    native = request.but(model=request.model.but(protocol="openai-responses"))
    endpoint = Endpoint(provider_id="acme", protocol="openai-responses", base_url="http://x")
    sent: Mapping[str, Any] = openai_responses.body(native, endpoint)
    told = sent["input"][-1]
    assert (told["role"], told["content"]) == ("system", "acme/weather is now <sun> & wind")
    wrapped = request.but(model=request.model.but(protocol="anthropic", api_id="claude-sonnet-4-5"))
    endpoint = Endpoint(provider_id="acme", protocol="anthropic", base_url="http://x")
    spoken: Mapping[str, Any] = anthropic.body(wrapped, endpoint)
    last = spoken["messages"][-1]
    assert last["role"] == "user"
    assert [block["text"] for block in last["content"]] == [
        "and now?",
        "<system-update>\nacme/weather is now <sun> & wind\n</system-update>",
    ]


async def test_when_an_effective_instruction_file_changes_its_mid_conversation_system_message_includes(
    stage: Stage, script: Scripted, place: Path
) -> None:
    file = write(place / "AGENTS.md", "Be kind.\nBe brief.")
    session = await stage.session()
    await stage.ask(session, "hello")
    write(file, "Be kind.\nBe thorough.")
    await stage.ask(session, "changed")
    file.unlink()
    await stage.ask(session, "removed")
    changed = f"The instructions from {file} are now as follows, in place of any earlier version:"
    assert news(script.requests[1]) == [f"{changed}\nBe kind.\nBe thorough."]
    assert news(script.requests[2])[1:] == [f"The instructions from {file} no longer apply."]
