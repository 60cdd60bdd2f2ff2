"""A view that is loaded from documents equals the fold of its log."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from stores import store_url

from turnkeeper.core.entry import Damaged
from turnkeeper.core.projector import project
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.sessions.doctor import examine
from turnkeeper.sessions.doctor_session import differing
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine
from turnkeeper.store.engine_table import ENGINES
from turnkeeper.store.engines import open_engine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.testing.builders import every_event

SESSION = "ses_all"


@pytest.fixture(params=ENGINES)
async def engine(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    opened = await open_engine(store_url(request.param, tmp_path))
    yield opened
    await opened.aclose()


def a_journal(engine: Engine) -> Journal:
    """A journal that has nothing in memory, as after a restart."""
    return Journal(engine, Mint.fixed(step_ms=1), lambda notification: None)


async def lived(engine: Engine) -> SessionView:
    """A session in which every kind of event happened."""
    journal = a_journal(engine)
    created, *rest = every_event(SESSION)
    assert isinstance(created, e.SessionCreated)
    await journal.create(created.session)
    return await journal.append(SESSION, *rest)


async def without_fields(engine: Engine, *names: str) -> dict[str, object]:
    """Rewrite the state document as a version wrote it whose views had not these fields."""
    [stored] = await engine.get([keys.state(SESSION)])
    assert stored is not None
    old = {name: value for name, value in json.loads(stored).items() if name not in (*names, "shape")}
    await engine.put({keys.state(SESSION): json.dumps(old).encode()})
    return old


async def test_after_each_kind_of_event_a_loaded_view_equals_the_fold_of_the_log(engine: Engine) -> None:
    journal = a_journal(engine)
    created, *rest = every_event(SESSION)
    assert isinstance(created, e.SessionCreated)
    view = await journal.create(created.session)
    for event in rest:
        view = await journal.append(SESSION, event)
        loaded = await a_journal(engine).view(SESSION)
        assert differing(loaded, view) == [], f"after {event.KIND}"
        assert loaded == view == project(await journal.read(SESSION))


async def test_every_field_of_a_view_is_set_at_some_time_in_that_life(engine: Engine) -> None:
    """Or the test above would compare defaults."""
    journal = a_journal(engine)
    created, *rest = every_event(SESSION)
    assert isinstance(created, e.SessionCreated)
    first = await journal.create(created.session)
    changed: set[str] = set()
    for event in rest:
        changed.update(differing(first, await journal.append(SESSION, event)))
    assert changed >= set(SessionView.__struct_fields__), "give the builders an event that sets it"


async def test_a_state_document_of_an_older_version_is_completed_from_the_log(engine: Engine) -> None:
    view = await lived(engine)
    assert view.quarantined
    assert view.rewritten is not None
    await without_fields(engine, "quarantined", "rewritten")
    assert await a_journal(engine).view(SESSION) == view


async def test_the_next_append_writes_a_whole_state_document(engine: Engine) -> None:
    await lived(engine)
    await without_fields(engine, "quarantined", "rewritten")
    after = await a_journal(engine).append(SESSION, e.SessionTouched())
    [stored] = await engine.get([keys.state(SESSION)])
    assert stored is not None
    assert json.loads(stored)["quarantined"] == list(after.quarantined)


async def test_an_older_state_document_behind_its_log_is_brought_up_to_it(engine: Engine) -> None:
    """A kill may leave documents behind the log, also those of an older version."""
    await lived(engine)
    old = await without_fields(engine, "quarantined", "rewritten")
    view = await a_journal(engine).append(SESSION, e.SessionTitled(title="Later"))
    await engine.put({keys.state(SESSION): json.dumps(old).encode()})
    assert await a_journal(engine).view(SESSION) == view


async def test_an_older_state_document_of_a_log_that_was_cut_is_reported() -> None:
    engine = await open_engine("memory:")
    view = await lived(engine)
    entries = await engine.read(SESSION)
    await without_fields(engine, "quarantined")
    [state] = await engine.get([keys.state(SESSION)])
    await engine.remove({SESSION: view.seq}, [])
    await engine.append(SESSION, 0, entries[:-2], {keys.state(SESSION): state})
    with pytest.raises(Damaged, match="is missing from the log"):
        await a_journal(engine).view(SESSION)


async def test_doctor_finds_a_store_of_an_older_version_sound(engine: Engine) -> None:
    await lived(engine)
    await without_fields(engine, "quarantined", "rewritten")
    journal = a_journal(engine)
    diagnosis = await examine(Store(engine, journal, Queries(engine), Mint.fixed()))
    assert [one for one in diagnosis.problems if one.is_damage] == []


async def test_doctor_reports_a_state_document_that_lacks_a_field_it_should_have(engine: Engine) -> None:
    await lived(engine)
    [stored] = await engine.get([keys.state(SESSION)])
    assert stored is not None
    lacking = {name: value for name, value in json.loads(stored).items() if name != "quarantined"}
    await engine.put({keys.state(SESSION): json.dumps(lacking).encode()})
    store = Store(engine, a_journal(engine), Queries(engine), Mint.fixed())
    assert [one.kind for one in (await examine(store, fix=True)).problems if one.is_damage] == ["stale document"]
    assert (await examine(store)).ok
    assert (await a_journal(engine).view(SESSION)).quarantined


async def test_two_views_are_compared_field_by_field() -> None:
    view = await lived(await open_engine("memory:"))
    assert differing(view, view) == []
    assert differing(view, view.but(quarantined=(), todos=())) == ["quarantined", "todos"]
