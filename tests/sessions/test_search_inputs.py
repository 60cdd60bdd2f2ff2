"""Search finds calls by their inputs: the command or the file name that a person remembers."""

import pytest

from turnkeeper.app import Turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.core.search_text import searchable
from turnkeeper.model.event import MessageRecorded, PartRecorded
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import SettledTime, ToolError
from turnkeeper.model.value import JsonObject
from turnkeeper.sessions.search import search
from turnkeeper.store import keys
from turnkeeper.testing.builders import a_call, a_session, a_text, a_user, an_assistant, completed

SESSION = "ses_one"
USER = a_user(SESSION, "msg_1")
ANSWER = an_assistant(SESSION, "msg_2", "msg_1", finish="stop")
FAILED = ToolError(input={"filePath": "/srv/lost/ledger.csv"}, error="no such file", time=SettledTime(start=1, end=2))
COMMAND = "pg_restore --jobs 4 harbour.dump"


def call(given: JsonObject, id: str = "prt_2") -> ToolPart:
    return a_call(ANSWER, id, completed("done").but(input=given))


async def with_call(tk: Turnkeeper, *parts: ToolPart) -> None:
    text = a_text(USER, "prt_1", "Please restore it")
    await tk.store.journal.create(
        a_session(SESSION, title="Harbour work"),
        MessageRecorded(message=USER, parts=(text,)),
        MessageRecorded(message=ANSWER, parts=parts),
    )


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (call({"command": COMMAND}), "pg_restore harbour.dump"),
        (call({"edits": [{"filePath": "src/tide/gauge.py"}], "port": 8452}), "tide/gauge.py 8452"),
        (call({"content": "x " * BLOB_CHARS_MIN + "barometer"}), "barometer"),
        (a_call(ANSWER, "prt_2", FAILED), "lost/ledger.csv"),
    ],
    ids=["a command", "nested, and a number", "a long text", "a failed call"],
)
async def test_a_call_is_found_by_its_input(tk: Turnkeeper, part: ToolPart, words: str) -> None:
    await with_call(tk, part)
    assert [hit.part_id for hit in await tk.search(words)] == ["prt_2"]


async def test_a_hit_in_an_input_is_shown_with_the_words_around_it(tk: Turnkeeper) -> None:
    await with_call(tk, call({"command": COMMAND}))
    [hit] = await search(tk.store, "pg_restore", damaged=[])
    assert (hit.kind, hit.snippet) == ("bash", "ls pg_restore --jobs 4 harbour.dump done")


async def index_as_before(tk: Turnkeeper, part: ToolPart) -> None:
    """Index a call as earlier versions did, without its input."""
    text = searchable(part.but(state=part.state.but(input={})))
    length = await tk.store.engine.length(SESSION)
    key = keys.text(SESSION, part.message_id, part.id)
    await tk.store.engine.append(SESSION, length, [], {}, texts={key: text})


@pytest.mark.parametrize("output", ["done", "filesystem available mounted capacity percentage restored_everything"])
async def test_a_store_of_an_earlier_version_is_sound_and_doctor_indexes_its_inputs(
    tk: Turnkeeper, output: str
) -> None:
    old, new = a_call(ANSWER, "prt_2", completed(output).but(input={"command": "pg_restore"})), call({}, "prt_3")
    await with_call(tk, old, new)
    await index_as_before(tk, old)
    assert await tk.search("pg_restore") == []
    found = await tk.doctor()
    assert (found.ok, [one.kind for one in found.problems]) == (True, ["outdated text"])
    await tk.doctor(fix=True)
    assert [hit.part_id for hit in await tk.search("pg_restore")] == ["prt_2"]
    assert (await tk.doctor()).problems == ()


async def test_a_call_that_search_does_not_find_at_all_is_damage(tk: Turnkeeper) -> None:
    part = call({"command": COMMAND})
    await with_call(tk, part)
    length = await tk.store.engine.length(SESSION)
    await tk.store.engine.append(SESSION, length, [], {}, texts={keys.text(SESSION, "msg_2", part.id): None})
    assert [one.kind for one in (await tk.doctor()).problems] == ["missing text"]


async def test_a_call_that_is_recorded_again_is_found_by_its_last_input(tk: Turnkeeper) -> None:
    await with_call(tk, call({"command": COMMAND}))
    [stored] = (await tk.message(SESSION, "msg_2")).parts
    await tk.store.journal.append(SESSION, PartRecorded(part=call({"command": "uptime"}).but(seq=stored.seq)))
    assert await tk.search("pg_restore") == []
    assert [hit.part_id for hit in await tk.search("uptime")] == ["prt_2"]
