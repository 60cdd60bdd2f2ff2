"""Golden logs: what an earlier version wrote opens for ever, and stands for the same documents."""

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from turnkeeper.core import entry
from turnkeeper.core.projector import project
from turnkeeper.mint import Mint
from turnkeeper.model.event import SessionTouched
from turnkeeper.model.value import encode
from turnkeeper.sessions.doctor import examine
from turnkeeper.sessions.past import past
from turnkeeper.store import keys
from turnkeeper.store.engine import path
from turnkeeper.store.engines import open_engine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store

HERE = Path(__file__).parent
LOGS = sorted(HERE.glob("*.jsonl"))
INDEXES = frozenset({"recent", "receipted"})
"""How a version finds sessions and receipts is its own affair; it tells nothing that other documents do not."""


class Golden(NamedTuple):
    """A log as it was written, and what it stood for then."""

    session: str
    entries: list[bytes]
    blobs: dict[str, str]
    documents: dict[str, object]


@pytest.fixture(params=LOGS, ids=[file.stem for file in LOGS])
def golden(request: pytest.FixtureRequest) -> Golden:
    file: Path = request.param
    then = json.loads(file.with_suffix(".json").read_text("utf-8"))
    return Golden(then["session"], file.read_bytes().splitlines(), then["blobs"], then["documents"])


async def restored(golden: Golden, *, documents: bool = False) -> Store:
    """A store that holds the log and its blobs; with ``documents`` also those of the day, else nothing derived."""
    engine = await open_engine("memory:")
    await engine.put({keys.blob(name): text.encode() for name, text in golden.blobs.items()})
    if documents:
        await engine.put({tuple(place.split("/")): encode(body) for place, body in golden.documents.items()})
    await engine.append(golden.session, 0, golden.entries)
    mint = Mint.fixed()
    return Store(engine, Journal(engine, mint, lambda notification: None), Queries(engine), mint)


def as_object(body: object) -> dict[str, object]:
    assert isinstance(body, dict)
    return body


def test_its_chain_is_sound(golden: Golden) -> None:
    assert len(list(entry.chain(golden.session, golden.entries))) == len(golden.entries)


async def test_it_opens_from_the_log_alone(golden: Golden) -> None:
    store = await restored(golden)
    view = await store.journal.view(golden.session)
    assert view == project(recorded for recorded, _ in entry.chain(golden.session, golden.entries))
    assert (await store.queries.session(golden.session)).id == golden.session


async def test_it_opens_from_the_documents_of_its_day_as_the_same_view(golden: Golden) -> None:
    store = await restored(golden, documents=True)
    view = await store.journal.view(golden.session)
    assert view == project(recorded for recorded, _ in entry.chain(golden.session, golden.entries))


async def test_it_stands_for_the_documents_it_stood_for(golden: Golden) -> None:
    """Later versions may derive further kinds of documents, and more fields of the view are in the state document."""
    store = await restored(golden)
    assert (await examine(store, fix=True)).ok
    then = {place: body for place, body in golden.documents.items() if place.partition("/")[0] not in INDEXES}
    kinds = {place.partition("/")[0] for place in then}
    found = {path(key): json.loads(body) for key, body in await store.engine.scan(()) if key[0] in kinds}
    state = path(keys.state(golden.session))
    # A new field changes the hash of the field names, by which a state document of another version is told.
    expected = {name: value for name, value in as_object(then[state]).items() if name != "shape"}
    assert {**found, state: {**as_object(found[state]), **expected}} == found
    assert {place: body for place, body in found.items() if place != state} == {
        place: body for place, body in then.items() if place != state
    }


async def test_each_of_its_beginnings_is_what_a_reader_of_that_time_found(golden: Golden) -> None:
    whole = await restored(golden)
    for seq in range(1, len(golden.entries) + 1):
        then = await restored(golden._replace(entries=golden.entries[:seq]))
        view = await then.journal.view(golden.session)
        found = await past(whole, golden.session, seq)
        assert (found.view, await found.session()) == (view, await then.queries.session(golden.session))
        assert [one async for one in found.stream()] == [one async for one in then.queries.stream(golden.session)]


async def test_it_can_be_written_on(golden: Golden) -> None:
    store = await restored(golden)
    await store.journal.append(golden.session, SessionTouched())
    diagnosis = await examine(store)
    assert (diagnosis.ok, diagnosis.events) == (True, len(golden.entries) + 1)


def test_every_kind_of_event_that_can_be_written_is_in_a_golden_log() -> None:
    written = {json.loads(line)["type"] for file in LOGS for line in file.read_bytes().splitlines()}
    assert entry.KINDS.keys() <= written, "run scripts/make_golden.py with a new name"
