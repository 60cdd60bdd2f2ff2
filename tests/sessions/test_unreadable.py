"""A session that an older version stored with fields nobody can read: it is listed, exported, repaired and removed."""

import json
from pathlib import Path
from typing import Any

import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core import entry
from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.model.event import Event, ModelSelected, PartRecorded, SessionCreated
from turnkeeper.model.value import encode
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine
from turnkeeper.testing.builders import NOW, a_session, a_text, a_turn, a_user

BAD = "ses_bad"
WRONG: dict[str, dict[str, object]] = {
    "a model as one word": {"model": "anthropic/claude"},
    "a number for an agent": {"agent": 3},
    "a list for metadata": {"metadata": [1]},
}


async def append_raw(engine: Engine, event: Event, body: dict[str, Any], documents: dict[str, Any]) -> None:
    """Append an event whose JSON is not checked, with documents by their paths, as older versions did."""
    [stored] = await engine.get([keys.state(BAD)])
    state: dict[str, Any] = json.loads(stored) if stored else {"seq": 0, "projectID": "global"}
    seq = state["seq"] + 1
    written = entry.write(Recorded(seq, NOW, event), state.get("head") or entry.genesis(BAD), encode(body))
    state = {**state, "seq": seq, "head": entry.digest(written)}
    state.pop("shape", None)
    bodies = {tuple(path.split("/")): encode(value) for path, value in documents.items()}
    await engine.append(BAD, seq - 1, [written], {keys.state(BAD): encode(state), **bodies})


async def brick(tk: Turnkeeper, wrong: dict[str, object]) -> None:
    """What ``create`` with this argument left in a store."""
    session = a_session(BAD, project_id="global")
    said = {**json.loads(encode(session)), **wrong}
    listing = {"title": session.title, "created": session.time.created}
    documents = {f"session/global/{BAD}": said, **{"/".join(key): listing for key in keys.places(session)}}
    await append_raw(tk.store.engine, SessionCreated(session=session), {"session": said}, documents)


async def exported(tk: Turnkeeper, session_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"".join([piece async for piece in tk.export(session_id, damaged=[])]))
    return found


@pytest.mark.parametrize("name", WRONG)
async def test_it_is_listed_read_and_exported_without_what_cannot_be_read(name: str, tk: Turnkeeper) -> None:
    sound = await tk.create(title="Sound")
    await brick(tk, WRONG[name])
    assert {one.id for one in (await tk.list()).items} == {BAD, sound.id}
    assert (await tk.get(BAD)).title == a_session().title
    assert (await exported(tk, BAD))["info"]["id"] == BAD
    assert WRONG[name].keys().isdisjoint((await exported(tk, BAD))["info"])


@pytest.mark.parametrize("name", WRONG)
async def test_it_can_be_removed(name: str, tk: Turnkeeper) -> None:
    sound = await tk.create(title="Sound")
    await brick(tk, WRONG[name])
    await tk.create(title="Its child", parent_id=BAD)
    assert len(await tk.remove(BAD)) == 2
    assert [one.id for one in (await tk.list(roots=False)).items] == [sound.id]
    assert (await tk.doctor()).problems == ()


@pytest.mark.parametrize("name", WRONG)
async def test_doctor_repairs_its_documents_and_goes_on_reporting_its_log(name: str, tk: Turnkeeper) -> None:
    await brick(tk, WRONG[name])
    with pytest.raises(Damaged):
        await tk.rename(BAD, "Not yet")
    first = await tk.doctor(fix=True)
    assert [(one.kind, one.fixed) for one in first.problems] == [("unreadable entry", False), ("stale document", True)]
    await tk.rename(BAD, "Renamed")
    assert (await tk.get(BAD)).title == "Renamed"
    again = await tk.doctor(fix=True)
    assert [(one.kind, one.seq) for one in again.problems] == [("unreadable entry", 1)]


async def test_an_update_that_nobody_can_read_costs_only_that_field(tk: Turnkeeper, place: Path) -> None:
    await tk.store.journal.create(a_session(BAD, project_id="global"), *a_turn(BAD, 1))
    [stored] = await tk.store.engine.get([keys.session("global", BAD)])
    assert stored is not None
    said = {**json.loads(stored), "model": "a/b"}
    documents = {f"session/global/{BAD}": said}
    await append_raw(tk.store.engine, ModelSelected(model=None), {"model": "a/b"}, documents)
    assert [one.id for one in (await tk.list()).items] == [BAD]
    assert len((await exported(tk, BAD))["messages"]) == 2
    assert [one.fixed for one in (await tk.doctor(fix=True)).problems] == [False, True]
    tk.store.journal.cache.forget(BAD)
    assert (await tk.rename(BAD, "Goes on")).model is None
    await tk.remove(BAD)
    assert (await tk.doctor()).problems == ()


async def test_a_part_that_nobody_can_read_is_exported_as_it_stands(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session(BAD, project_id="global"), *a_turn(BAD, 1))
    user = a_user(BAD, "msg_u1_bad")
    part = a_text(user, "prt_1_bad_a", "Do it")
    said = {**json.loads(encode(part.but(seq=2))), "text": 3}
    documents = {f"part/{user.id}/{part.id}": said}
    await append_raw(tk.store.engine, PartRecorded(part=part), {"part": said}, documents)
    assert (await exported(tk, BAD))["messages"][0]["parts"][0]["text"] == 3
    assert len((await tk.messages(BAD)).items) == 2
    assert not (await tk.doctor()).ok
    await tk.remove(BAD)
    assert (await tk.doctor()).problems == ()


@pytest.mark.parametrize("garbage", [b"", b"[]", b'{"id":"ses_bad"}', b"\xff\xfe"], ids=repr)
async def test_a_session_without_any_readable_document_is_skipped_and_named(tk: Turnkeeper, garbage: bytes) -> None:
    if tk.store.engine.name == "files" and garbage in (b"", b"\xff\xfe"):
        pytest.skip("this engine keeps documents as formatted JSON")
    sound = await tk.create(title="Sound")
    await brick(tk, {})
    await tk.store.engine.put({keys.session("global", BAD): garbage})
    page = await tk.list()
    assert ([one.id for one in page.items], page.damaged) == ([sound.id], (f"session/{BAD}",))
    assert await tk.remove(BAD) == []
    assert (await tk.list()).damaged == ()
    assert (await tk.doctor()).problems == ()


async def test_a_log_and_documents_that_nobody_can_read_leave_the_lists(tk: Turnkeeper) -> None:
    await brick(tk, {"model": "a/b", "title": 3})
    assert (await tk.list()).damaged == (f"session/{BAD}",)
    fixed = await tk.doctor(fix=True)
    assert [(one.kind, one.fixed) for one in fixed.problems] == [
        ("unreadable entry", False),
        ("surplus document", True),
    ]
    assert (await tk.list()).damaged == ()
    await tk.remove(BAD)
    assert (await tk.doctor()).problems == ()


def nested(depth: int) -> object:
    deep: object = 1
    for _ in range(depth):
        deep = [deep]
    return deep


def is_writable(depth: int) -> bool:
    try:
        encode(nested(depth))
    except RecursionError:
        return False
    return True


async def test_what_is_nested_too_deeply_does_not_keep_doctor_from_the_rest(tk: Turnkeeper) -> None:
    sound = await tk.create(title="Sound")
    # Which depth is too deep for which reader depends on the depth of the calls around it, so all are tried.
    deepest = next(depth for depth in range(1000, 0, -1) if is_writable(depth))
    for depth in range(deepest - 80, deepest - 10):
        await brick(tk, {"metadata": {"deep": nested(depth)}})
        diagnosis = await tk.doctor(fix=True)
        assert {one.session_id for one in diagnosis.problems} <= {BAD}
        assert diagnosis.sessions == 2
        assert sound.id in [one.id for one in (await tk.list()).items]
        await tk.remove(BAD)
    assert (await tk.doctor()).problems == ()
