"""Doctor finds each kind of damage at its place, repairs what is derived, and never touches a log."""

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from msgspec.structs import replace

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.core.entry import Recorded, digest, write
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.mint import FixedMint, Mint
from turnkeeper.model import event as e
from turnkeeper.model.parts import CompactionPart
from turnkeeper.model.session import Revert
from turnkeeper.model.value import encode
from turnkeeper.sessions.diagnosis import Diagnosis
from turnkeeper.sessions.doctor import examine
from turnkeeper.store import keys
from turnkeeper.store.engine import Key
from turnkeeper.testing.builders import a_session, a_text, a_turn, a_user, an_assistant, every_event

OWN = "ses_own"
LONG = "long " * BLOB_CHARS_MIN


async def a_store(tk: Turnkeeper) -> None:
    """Two sessions with histories, a blob they share, and one beside them."""
    for name in (OWN, "ses_two"):
        session = a_session(name, title=f"Title of {name} (fork #3)")
        await tk.store.journal.create(session, *a_turn(name, 1), *a_turn(name, 2, answer=LONG))
    await tk.create(id="ses_child", parent_id=OWN)


def found(diagnosis: Diagnosis) -> list[tuple[str, str | None, int | None]]:
    return [(one.kind, one.session_id, one.seq) for one in diagnosis.problems]


async def whole(tk: Turnkeeper) -> dict[Key, bytes]:
    """Every document but those of projects: they are a cache that a fix completes."""
    return {key: body for key, body in await tk.store.engine.scan(()) if key[0] != "project"}


async def test_a_healthy_store_is_ok_and_counted(tk: Turnkeeper) -> None:
    await a_store(tk)
    diagnosis = await tk.doctor()
    counts = (diagnosis.sessions, diagnosis.messages, diagnosis.parts, diagnosis.events)
    assert (diagnosis.ok, diagnosis.problems, counts) == (True, (), (3, 8, 20, 63))
    assert diagnosis.bytes > 0


async def test_an_empty_store_is_ok(tk: Turnkeeper) -> None:
    diagnosis = await tk.doctor()
    assert (diagnosis.ok, diagnosis.sessions, diagnosis.problems) == (True, 0, ())


async def test_a_session_in_which_everything_happened_is_ok(tk: Turnkeeper) -> None:
    created, *rest = every_event(OWN)
    assert isinstance(created, e.SessionCreated)
    await tk.store.journal.create(created.session, *rest)
    diagnosis = await tk.doctor()
    assert diagnosis.ok
    assert found(diagnosis) == [("dangling reference", OWN, 26)]


async def test_an_open_turn_and_a_waiting_prompt_are_ok(tk: Turnkeeper) -> None:
    user = a_user(OWN, "msg_waiting")
    prompt = e.PromptAdmitted(message=user, parts=(a_text(user, "prt_w", "wait"),), delivery="queue")
    await tk.store.journal.create(a_session(OWN), *a_turn(OWN, 1)[:8], prompt)
    assert (await tk.doctor()).problems == ()


async def test_progress_is_told_session_by_session(tk: Turnkeeper) -> None:
    await a_store(tk)
    told: list[tuple[int, int]] = []
    await tk.doctor(progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 3), (2, 3), (3, 3)]


async def test_the_engine_says_where_and_what_it_is(tk: Turnkeeper, url: str) -> None:
    diagnosis = await tk.doctor()
    assert diagnosis.engine["path"] == (url if url.startswith("postgres") else url.partition(":")[2])
    if url.startswith("sqlite"):
        assert diagnosis.engine["sqlite"] == apsw.sqlite_lib_version()


# Derived documents.

MISSING: Sequence[tuple[str, Key]] = (
    ("state", keys.state(OWN)),
    ("session", keys.session("prj", OWN)),
    ("message", keys.message(OWN, "msg_u1_own")),
    ("order", keys.order(OWN, 3)),
    ("part", keys.part("msg_a1_own", "prt_1_own_c")),
    ("blobused", keys.blob_used(OWN, sha256(LONG.encode()).hexdigest())),
    ("blobuser", keys.blob_user(sha256(LONG.encode()).hexdigest(), OWN)),
)


@pytest.mark.parametrize(("what", "key"), MISSING, ids=[what for what, _ in MISSING])
async def test_a_missing_document_is_found_and_written_again(tk: Turnkeeper, what: str, key: Key) -> None:
    await a_store(tk)
    before = await whole(tk)
    assert key in before
    await tk.store.engine.put({key: None})
    diagnosis = await tk.doctor()
    assert (diagnosis.ok, found(diagnosis)) == (False, [("missing document", OWN, None)])
    assert "/".join(key) in diagnosis.problems[0].message
    repaired = await tk.doctor(fix=True)
    assert (repaired.ok, [one.fixed for one in repaired.problems]) == (True, [True])
    assert await whole(tk) == before
    assert (await tk.doctor()).problems == ()


@pytest.mark.parametrize("kind", ["recent", "fork", "todo", "epoch", "inbox", "share", "session_diff"])
async def test_every_kind_of_document_is_written_again(tk: Turnkeeper, kind: str) -> None:
    life = every_event(OWN)
    user = a_user(OWN, "msg_waiting")
    shared = next(event for event in life if isinstance(event, e.SessionShared))
    prompt = e.PromptAdmitted(message=user, parts=(), delivery="queue")
    await tk.store.journal.create(a_session(OWN), *life[1:], prompt, shared, e.SessionTitled(title="Renamed (fork #1)"))
    before = await whole(tk)
    doomed = [key for key in before if key[0] == kind]
    assert doomed
    await tk.store.engine.put(dict.fromkeys(doomed))
    assert ("missing document", OWN, None) in found(await tk.doctor())
    assert (await tk.doctor(fix=True)).ok
    assert await whole(tk) == before


async def test_a_document_that_says_something_else_is_found_and_written_again(tk: Turnkeeper) -> None:
    await a_store(tk)
    before = await whole(tk)
    key = keys.part("msg_a1_own", "prt_1_own_c")
    await tk.store.engine.put({key: before[key].replace(b"Done", b"Dome")})
    assert found(await tk.doctor()) == [("stale document", OWN, None)]
    assert (await tk.doctor(fix=True)).ok
    assert await whole(tk) == before


async def test_a_document_that_is_no_json_is_found_and_written_again(tk: Turnkeeper) -> None:
    await a_store(tk)
    before = await whole(tk)
    for key in (keys.message(OWN, "msg_u1_own"), keys.session("prj", OWN), keys.state(OWN)):
        await tk.store.engine.put({key: b'{"cut'})
        assert ("stale document", OWN, None) in found(await tk.doctor())
        assert (await tk.doctor(fix=True)).ok
    assert await whole(tk) == before


async def test_the_same_fields_in_another_order_are_no_damage(tk: Turnkeeper) -> None:
    await a_store(tk)
    key = keys.message(OWN, "msg_u1_own")
    [body] = await tk.store.engine.get([key])
    assert body is not None
    fields = msgspec.json.decode(body)
    await tk.store.engine.put({key: msgspec.json.encode(dict(reversed(fields.items())))})
    assert (await tk.doctor()).problems == ()


SURPLUS: Sequence[tuple[str, Key, bytes]] = (
    ("message", keys.message(OWN, "msg_ghost"), b"{}"),
    ("order", keys.order(OWN, 2), b'"msg_ghost"'),
    ("part of a message", keys.part("msg_a1_own", "prt_ghost"), b'{"sessionID":"ses_own"}'),
    ("part of no message", keys.part("msg_ghost", "prt_ghost"), b'{"sessionID":"ses_own"}'),
    ("todo", keys.todo(OWN), b"[]"),
    ("inbox", keys.inbox(OWN, "msg_ghost"), b"{}"),
    ("session in another project", keys.session("elsewhere", OWN), b"{}"),
    ("place in a list", (*keys.recent(keys.STORE, keys.LISTED), keys.stamp(5), OWN), b'{"title":"x","created":5}'),
    ("fork number", (*keys.forks("prj", "Title"), "000000000000009", OWN), b"{}"),
    ("blobused", keys.blob_used(OWN, "0" * 64), b"{}"),
    ("blobuser", keys.blob_user("0" * 64, OWN), b"{}"),
)


@pytest.mark.parametrize(("what", "key", "body"), SURPLUS, ids=[what for what, *_ in SURPLUS])
async def test_a_surplus_document_is_found_and_removed(tk: Turnkeeper, what: str, key: Key, body: bytes) -> None:
    await a_store(tk)
    before = await whole(tk)
    await tk.store.engine.put({key: body})
    assert found(await tk.doctor()) == [("surplus document", OWN, None)]
    assert (await tk.doctor(fix=True)).ok
    assert await whole(tk) == before


LEFTOVERS: Sequence[tuple[Key, bytes]] = (
    (keys.message("ses_gone", "msg_x"), b"{}"),
    (keys.part("msg_x", "prt_x"), b'{"sessionID":"ses_gone"}'),
    (keys.order("ses_gone", 1), b'"msg_x"'),
    ((*keys.recent(keys.STORE, keys.UNLISTED), keys.stamp(5), "ses_gone"), b'{"title":"x","created":5}'),
    (keys.blob_user("0" * 64, "ses_gone"), b"{}"),
    (keys.todo("ses_gone"), b"[]"),
)


@pytest.mark.parametrize(("key", "body"), LEFTOVERS, ids=[key[0] for key, _ in LEFTOVERS])
async def test_a_leftover_of_a_session_without_a_log_is_found_and_removed(
    tk: Turnkeeper, key: Key, body: bytes
) -> None:
    await a_store(tk)
    before = await whole(tk)
    await tk.store.engine.put({key: body})
    assert found(await tk.doctor()) == [("surplus document", "ses_gone", None)]
    assert (await tk.doctor(fix=True)).ok
    assert await whole(tk) == before


async def test_a_text_that_search_does_not_find_is_indexed_again(tk: Turnkeeper) -> None:
    await a_store(tk)
    title = keys.text(OWN, "title")
    length = await tk.store.engine.length(OWN)
    await tk.store.engine.append(OWN, length, [], {}, texts={title: None})
    assert found(await tk.doctor()) == [("missing text", OWN, None)]
    assert (await tk.doctor(fix=True)).ok
    assert (await tk.doctor()).problems == ()


# Blobs.


async def test_a_blob_that_is_gone_is_found_at_the_event_that_mentions_it(tk: Turnkeeper) -> None:
    await a_store(tk)
    name = sha256(LONG.encode()).hexdigest()
    await tk.store.engine.put({keys.blob(name): None})
    diagnosis = await tk.doctor(fix=True)
    assert not diagnosis.ok
    assert ("missing blob", OWN, 24) in found(diagnosis)


async def test_a_blob_that_is_not_what_its_name_says_is_found(tk: Turnkeeper) -> None:
    await a_store(tk)
    name = sha256(LONG.encode()).hexdigest()
    await tk.store.engine.put({keys.blob(name): LONG.replace("long", "lung", 1).encode()})
    diagnosis = await tk.doctor(fix=True)
    assert (diagnosis.ok, ("damaged blob", OWN, 24) in found(diagnosis)) == (False, True)


async def test_a_blob_that_nobody_uses_is_found_and_removed(tk: Turnkeeper) -> None:
    await a_store(tk)
    before = await whole(tk)
    await tk.store.engine.put({keys.blob(sha256(b"old").hexdigest()): b"old"})
    assert found(await tk.doctor()) == [("unused blob", None, None)]
    assert (await tk.doctor(fix=True)).ok
    assert await whole(tk) == before


# References.


async def test_a_part_without_a_message_is_damage(tk: Turnkeeper) -> None:
    await a_store(tk)
    lost = a_text(a_user(OWN, "msg_never"), "prt_lost", "lost")
    await tk.store.journal.append(OWN, e.PartRecorded(part=lost))
    diagnosis = await tk.doctor(fix=True)
    assert (diagnosis.ok, found(diagnosis)) == (False, [("stray part", OWN, None)])
    assert found(await tk.doctor()) == [("stray part", OWN, None)]


async def test_references_to_what_is_gone_are_told_and_are_no_damage(tk: Turnkeeper) -> None:
    place: dict[str, Any] = {"session_id": OWN, "message_id": "msg_b"}
    compaction = CompactionPart(id="prt_c", auto=True, tail_start_id="msg_no_tail", **place)
    await tk.store.journal.create(
        a_session(OWN, parent_id="ses_no_parent", revert=Revert(message_id="msg_no_revert")),
        e.MessageRecorded(message=an_assistant(OWN, "msg_a", "msg_no_parent")),
        e.MessageRecorded(message=a_user(OWN, "msg_b"), parts=(compaction,)),
    )
    diagnosis = await tk.doctor()
    assert diagnosis.ok
    assert found(diagnosis) == [
        ("dangling reference", OWN, 2),
        ("dangling reference", OWN, 3),
        ("dangling reference", OWN, None),
        ("dangling reference", OWN, 1),
    ]


async def test_sessions_that_are_their_own_ancestors_are_named_and_are_no_damage(tk: Turnkeeper) -> None:
    parents = {
        "ses_a": "ses_c",
        "ses_b": "ses_a",
        "ses_c": "ses_b",
        "ses_d": "ses_a",
        "ses_e": "ses_e",
        "ses_f": "ses_d",
    }
    for name, parent in parents.items():
        await tk.store.journal.create(a_session(name, parent_id=parent))
    diagnosis = await tk.doctor(fix=True)
    assert (diagnosis.ok, found(diagnosis)) == (True, [("parent cycle", "ses_a", 1), ("parent cycle", "ses_e", 1)])
    assert [one.message.rpartition(": ")[2] for one in diagnosis.problems] == [
        "ses_a -> ses_c -> ses_b -> ses_a",
        "ses_e -> ses_e",
    ]
    assert not any(one.fixed for one in diagnosis.problems)


async def test_the_advice_for_sessions_that_are_their_own_ancestors_parts_them(tk: Turnkeeper, tmp_path: Path) -> None:
    for name, parent in (("ses_a", "ses_b"), ("ses_b", "ses_a")):
        await tk.store.journal.create(a_session(name, parent_id=parent), *a_turn(name, 1))
    for name in ("ses_a", "ses_b"):
        exported = msgspec.json.decode(b"".join([piece async for piece in tk.export(name)]))
        if name == "ses_a":
            del exported["info"]["parentID"]
        (tmp_path / f"{name}.json").write_bytes(msgspec.json.encode(exported))
    await tk.remove("ses_a")
    for name in ("ses_a", "ses_b"):
        await tk.import_sessions(tmp_path / f"{name}.json")
    assert (await tk.doctor()).problems == ()
    assert [(one.id, one.parent_id) for one in await tk.children("ses_a")] == [("ses_b", "ses_a")]


# Logs, damaged behind the store's back.


@pytest.fixture
async def file(tmp_path: Path, mint: FixedMint, place: Path) -> Path:
    """A SQLite store that nobody has open."""
    store = tmp_path / "store.db"
    async with turnkeeper.open(f"sqlite:{store}", directory=place, mint=mint) as tk:
        await a_store(tk)
    return store


def tamper(file: Path, sql: str, *bindings: str | int) -> None:
    connection = apsw.Connection(str(file))
    connection.execute(sql, bindings)
    assert connection.changes() > 0
    connection.close()


async def doctored(file: Path, *, fix: bool = False) -> Diagnosis:
    async with turnkeeper.open(f"sqlite:{file}", mint=Mint.fixed()) as tk:
        return await tk.doctor(fix=fix)


LOG = "(SELECT id FROM log WHERE name = 'ses_own')"


@pytest.mark.parametrize("seq", [1, 2, 3, 9, 30, 31])
async def test_a_changed_time_is_found_at_its_event(file: Path, seq: int) -> None:
    tamper(file, f"UPDATE entry SET body = replace(body, '\"time\":17', '\"time\":16') WHERE id = {LOG} << 32 | ?", seq)
    diagnosis = await doctored(file)
    assert (diagnosis.ok, found(diagnosis)) == (False, [("altered entry", OWN, seq)])


@pytest.mark.parametrize("seq", [1, 2, 15, 31])
async def test_a_changed_link_is_found_at_its_event(file: Path, seq: int) -> None:
    forged = "0" * 32
    tamper(
        file,
        f"UPDATE entry SET body = json_set(body, '$.prev', ?) WHERE id = {LOG} << 32 | ?",
        forged,
        seq,
    )
    assert found(await doctored(file)) == [("altered entry", OWN, seq)]


@pytest.mark.parametrize("seq", [1, 12, 31])
async def test_an_entry_that_is_no_json_is_found_at_its_event(file: Path, seq: int) -> None:
    tamper(file, f"UPDATE entry SET body = substr(body, 1, 90) WHERE id = {LOG} << 32 | ?", seq)
    assert found(await doctored(file)) == [("unreadable entry", OWN, seq)]


async def test_an_event_of_an_unknown_type_is_found(file: Path) -> None:
    tamper(file, f"UPDATE entry SET body = replace(body, 'turn.ended.1', 'turn.ended.9') WHERE id = {LOG} << 32 | 15")
    diagnosis = await doctored(file)
    assert found(diagnosis) == [("unreadable entry", OWN, 15)]
    assert "a newer turnkeeper may have written it" in diagnosis.problems[0].message


@pytest.mark.parametrize(("left", "first"), [(30, 31), (20, 21), (1, 2)])
async def test_a_log_cut_short_is_found_at_the_first_event_that_is_missing(file: Path, left: int, first: int) -> None:
    tamper(file, f"DELETE FROM entry WHERE id >> 32 = {LOG} AND id & 4294967295 > ?", left)
    assert found(await doctored(file)) == [("truncated log", OWN, first)]


async def test_a_log_that_is_gone_altogether_is_found(file: Path) -> None:
    tamper(file, f"DELETE FROM entry WHERE id >> 32 = {LOG}")
    diagnosis = await doctored(file, fix=True)
    assert (diagnosis.ok, ("lost log", OWN, 1) in found(diagnosis)) == (False, True)


async def test_an_event_that_could_not_have_happened_is_found(tk: Turnkeeper) -> None:
    await tk.store.journal.create(a_session(OWN))
    [first] = await tk.store.engine.read(OWN)
    event = e.PromptPromoted(message_id="msg_nobody")
    forged = write(Recorded(2, 5, event), digest(first), encode(event))
    following = write(Recorded(3, 5, e.SessionTouched()), digest(forged), b"{}")
    await tk.store.engine.append(OWN, 1, [forged, following])
    assert ("impossible event", OWN, 2) in found(await tk.doctor())


async def test_a_fix_leaves_a_damaged_log_and_its_documents_alone(file: Path) -> None:
    tamper(file, f"UPDATE entry SET body = replace(body, '\"time\":17', '\"time\":16') WHERE id = {LOG} << 32 | 9")
    async with turnkeeper.open(f"sqlite:{file}", mint=Mint.fixed()) as tk:
        before, log = await whole(tk), await tk.store.engine.read(OWN)
        diagnosis = await tk.doctor(fix=True)
        assert (diagnosis.ok, [one.fixed for one in diagnosis.problems]) == (False, [False])
        assert (await whole(tk), await tk.store.engine.read(OWN)) == (before, log)


async def test_a_fix_makes_a_session_readable_from_the_sound_beginning_of_its_log(file: Path) -> None:
    tamper(file, f"UPDATE entry SET body = replace(body, '\"time\":17', '\"time\":16') WHERE id = {LOG} << 32 | 22")
    tamper(file, "DELETE FROM document WHERE key LIKE '%/ses_own' OR key LIKE '%/ses_own/%' OR key LIKE 'part/%_own/%'")
    async with turnkeeper.open(f"sqlite:{file}", mint=Mint.fixed()) as tk:
        diagnosis = await tk.doctor(fix=True)
        assert not diagnosis.ok
        own = [one for one in found(diagnosis) if one[1] == OWN]
        assert own == [("altered entry", OWN, 22), ("missing document", OWN, None)]
        page = await tk.messages(OWN)
        assert [one.info.id for one in page.items] == ["msg_u1_own", "msg_a1_own", "msg_u2_own", "msg_a2_own"]


async def test_the_other_sessions_of_a_damaged_store_are_examined_too(file: Path) -> None:
    tamper(file, f"DELETE FROM entry WHERE id >> 32 = {LOG} AND id & 4294967295 > 3")
    tamper(file, "DELETE FROM document WHERE key = 'state/ses_two'")
    assert found(await doctored(file)) == [("truncated log", OWN, 4), ("missing document", "ses_two", None)]


async def test_a_damaged_file_is_reported_as_the_engine_sees_it(file: Path) -> None:
    # A table whose rows break its own schema is the least damage that SQLite's own check sees.
    checked = "replace(sql, 'NOT NULL DEFAULT 0', 'NOT NULL DEFAULT 0 CHECK (fence > 0)')"
    tamper(file, f"PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = {checked} WHERE name = 'log'")
    diagnosis = await doctored(file)
    assert (diagnosis.ok, set(found(diagnosis))) == (False, {("medium", None, None)})


async def test_a_session_that_is_written_meanwhile_is_examined_again_and_not_reported(tk: Turnkeeper) -> None:
    await a_store(tk)

    class Growing:
        """The same engine, on which somebody appends between two readings of a session's documents."""

        def __init__(self) -> None:
            self.left = 5

        def __getattr__(self, name: str) -> object:
            return getattr(tk.store.engine, name)

        async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
            if self.left and ("message", OWN) in prefixes:
                self.left -= 1
                await tk.store.journal.append(OWN, *a_turn(OWN, 10 + self.left))
            return await tk.store.engine.gather(prefixes)

    growing = Growing()
    diagnosis = await examine(replace(tk.store, engine=growing))
    assert (growing.left, diagnosis.problems) == (0, ())


@pytest.mark.parametrize("body", [None, b"{", b"[]", b"\xff"])
async def test_a_project_document_is_made_again_from_its_sessions(tk: Turnkeeper, body: bytes | None) -> None:
    session = await tk.create()
    key = keys.project(session.project_id)
    [before] = await tk.store.engine.get([key])
    assert before is not None
    await tk.store.engine.put({key: body})
    report = await tk.doctor(fix=True)
    expected = [] if body is None else ["stale document"]
    assert [one.kind for one in report.problems] == expected
    [after] = await tk.store.engine.get([key])
    assert after is not None
    kept = ("id", "worktree")
    ours, theirs = msgspec.json.decode(before), msgspec.json.decode(after)
    assert [ours[name] for name in kept] == [theirs[name] for name in kept]
    assert (await tk.doctor()).ok
