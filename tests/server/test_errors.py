"""What is refused, and in which words."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from faulty_disk import faulty_disk
from served import served

from turnkeeper.core.limits import BODY_ITEMS_MAX, PROMPT_PARTS_MAX
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.asgi import AsgiMessage
from turnkeeper.server.service import ServerOptions
from turnkeeper.store import keys
from turnkeeper.store.engine import Key, StoreFull, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.sqlite_layout import open_sqlite


async def test_unknown_paths_and_methods_are_not_found_in_json(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        for method, path in (("GET", "/nowhere"), ("PUT", "/session"), ("GET", "/session/"), ("POST", "/")):
            answer = await server.http.request(method, path)
            assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
            assert answer.json()["name"] == "NotFoundError"
        assert set(await server.get("/api/nowhere", 404)) == {"_tag", "message"}


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("DELETE", ""),
        ("PATCH", ""),
        ("GET", "/children"),
        ("GET", "/todo"),
        ("GET", "/message"),
        ("GET", "/message/msg_x"),
        ("DELETE", "/message/msg_x"),
        ("DELETE", "/message/msg_x/part/prt_x"),
        ("POST", "/fork"),
    ],
)
async def test_a_session_that_is_not_there_is_not_found(method: str, path: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        body: dict[str, Any] = {"json": {}} if method in ("PATCH", "POST") else {}
        refused = await server.call(method, f"/session/ses_nope00000000000000000000{path}", 404, **body)
        assert refused["name"] == "NotFoundError"


@pytest.mark.parametrize("path", ["/message", "/prompt_async", "/shell"])
async def test_what_is_asked_of_no_session_is_not_found(path: str, tmp_path: Path) -> None:
    body = {"parts": [{"type": "text", "text": "x"}], "agent": "build", "command": "ls"}
    async with served(tmp_path) as server:
        assert (await server.post(f"/session/ses_nope{path}", body, 404))["name"] == "NotFoundError"


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'"x"', b'{"title": 5}', b"\xff", b"[" * 100_000, b'{"title": "\\ud800"}']
)
async def test_a_body_that_makes_no_sense_is_refused(body: bytes, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        answer = await server.http.post("/session", content=body)
        assert (answer.status_code, answer.json()["_tag"]) == (400, "BadRequest")


async def test_what_is_missing_is_named(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        refused = await server.post(f"/session/{await server.session()}/message", {}, 400)
        assert (refused["name"], refused["data"]["kind"]) == ("BadRequest", "Payload")
        assert "parts" in refused["data"]["message"]


@pytest.mark.parametrize("query", ["limit=-1", "limit=abc", "before=x", "limit=2&before=nonsense"])
async def test_a_page_that_makes_no_sense_is_refused(query: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await server.get(f"/session/{await server.session()}/message?{query}", 400)


@pytest.mark.parametrize("query", ["roots=maybe", "scope=bogus", "limit=abc", "start=abc", "start=1e400"])
async def test_a_list_that_makes_no_sense_is_refused(query: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        refused = await server.get(f"/session?{query}", 400)
        assert (refused["name"], refused["data"]["kind"]) == ("BadRequest", "Query")


@pytest.mark.parametrize(
    "more",
    [{"agent": "nobody"}, {"messageID": "bad"}, {"parts": []}],
)
async def test_a_prompt_for_nobody_is_refused_and_is_no_bug(more: dict[str, object], tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        body = {"parts": [{"type": "text", "text": "x"}], **more}
        answer = await server.http.post(f"/session/{await server.session()}/message", json=body)
        assert answer.status_code in (400, 404)


@pytest.mark.parametrize("title", [rb"\ud800", rb"\uD800 and more", rb"\udc00", rb"\ud800\ud800", rb"\\\ud800"])
async def test_half_a_character_is_refused_as_what_it_is(title: bytes, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        answer = await server.http.post("/session", content=b'{"title":"%b"}' % title)
        assert answer.status_code == 400
        assert "half a character" in answer.text


@pytest.mark.parametrize("body", [b'{"title":"\\ud83d\\ude00" 5}', b'{"title":"\\\\ud800" 5}', b'{"title":"x'])
async def test_other_broken_json_is_not_called_half_a_character(body: bytes, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        answer = await server.http.post("/session", content=body)
        assert answer.status_code == 400
        assert "half a character" not in answer.text


@pytest.mark.parametrize("path", ["/session?directory={}", "/api/session?location[directory]={}"])
async def test_no_session_begins_in_a_directory_that_is_not_there(path: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        answer = await server.http.post(path.format(tmp_path / "nowhere"), json={})
        assert answer.status_code == 400
        assert "is not a directory; make it, or name another" in answer.text
        assert (await server.stage.tk.list()).items == ()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/session?directory={}"),
        ("GET", "/session?directory={}"),
        ("GET", "/config?directory={}"),
        ("GET", "/session?directory={}/below"),
        ("POST", "/api/session?location[directory]={}"),
    ],
)
async def test_a_directory_that_is_a_loop_of_links_is_refused(method: str, path: str, tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    async with served(tmp_path) as server:
        answer = await server.http.request(method, path.format(loop), json={} if method == "POST" else None)
        assert answer.status_code == 400
        assert "cannot be a directory: Too many levels of symbolic links" in answer.text


async def test_a_session_of_the_second_generation_is_not_made_in_a_loop_of_links(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    async with served(tmp_path) as server:
        answer = await server.http.post("/api/session", json={"location": {"directory": str(loop)}})
        assert (answer.status_code, "cannot be a directory" in answer.text) == (400, True)


async def test_a_bug_is_told_by_reference_and_nothing_else(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with served(tmp_path, store=Buggy()) as server:
        broken = await server.get("/session/ses_x", 500)
        assert broken["name"] == "UnknownError"
        assert broken["data"]["ref"] in caplog.text
        assert "a bug" not in str(broken)


@pytest.mark.parametrize(("refusal", "status"), [(StoreFull, 507), (StoreUnavailable, 503)])
async def test_a_store_that_cannot_be_written_says_why(
    tmp_path: Path, refusal: type[StoreUnavailable], status: int
) -> None:
    async with served(tmp_path, store=Failing(refusal("the disk is full; make room and try again"))) as server:
        first = await server.post("/session", {}, status)
        assert first == {
            "name": "StoreUnavailableError",
            "data": {"message": "the disk is full; make room and try again"},
        }
        second = await server.post("/api/session", {}, status)
        assert second == {
            "_tag": "ServiceUnavailableError",
            "message": "the disk is full; make room and try again",
            "service": "store",
        }


class Failing(MemoryEngine):
    """An engine that cannot write."""

    def __init__(self, refusal: StoreUnavailable) -> None:
        super().__init__()
        self._refusal = refusal

    async def append(self, *given: object, **more: object) -> None:
        raise self._refusal


async def test_a_full_disk_is_told_in_the_words_of_the_store(tmp_path: Path) -> None:
    with faulty_disk("full-server") as disk:
        engine = await open_sqlite(tmp_path / "store", vfs="full-server")
        async with served(tmp_path, store=engine) as server:
            session = await server.session()
            disk.fail(("write",), first=1, count=1_000_000, error=apsw.FullError)
            first = await server.post("/session", {}, 507)
            second = await server.call("POST", "/api/session", 507, json={})
            assert (await server.get(f"/session/{session}"))["id"] == session
            disk.heal()
            await server.session()
        assert "the disk is full; make room and try again" in first["data"]["message"]
        assert "the disk is full; make room and try again" in second["message"]


async def test_a_damaged_document_is_named_to_who_asks_for_it(tmp_path: Path) -> None:
    engine = MemoryEngine()
    async with served(tmp_path, store=engine) as server:
        session = await server.session()
        await engine.put({keys.todo(session): b"{"})
        answer = await server.get(f"/session/{session}/todo", 500)
        assert f"todo/{session} cannot be read" in answer["data"]["message"]


async def test_a_damaged_part_leaves_the_rest_of_a_history_to_be_read(tmp_path: Path) -> None:
    engine = MemoryEngine()
    async with served(tmp_path, Scripted().says("answer"), store=engine) as server:
        session = await server.session()
        answer = await server.ask(session, "question")
        lost = answer["parts"].pop(1)
        await engine.put({keys.part(lost["messageID"], lost["id"]): b'{"half'})
        for params in ({}, {"limit": 10}):
            [_, left] = await server.get(f"/session/{session}/message", params=params)
            assert left == answer


async def test_a_damaged_session_leaves_the_others_in_the_list(tmp_path: Path) -> None:
    engine = MemoryEngine()
    async with served(tmp_path, store=engine) as server:
        sound, broken = await server.session(), await server.post("/session")
        await engine.put({keys.session(broken["projectID"], broken["id"]): b"{"})
        assert [one["id"] for one in await server.get("/session")] == [sound]


class Buggy(MemoryEngine):
    """An engine with a bug in its reading."""

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        raise AssertionError("a bug, made on purpose")


async def test_a_body_that_is_too_large_is_not_read_to_its_end(tmp_path: Path) -> None:
    read = []

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1000):
            read.append(1)
            yield b" " * 1000

    async with served(tmp_path, options=ServerOptions(body_bytes_max=10_000, environ={})) as server:
        await server.call("POST", "/session", 413, content=endless())
        assert len(read) < 20
        await server.post("/session", {"title": "x" * 100})


async def test_a_body_that_is_announced_as_too_large_is_not_waited_for(tmp_path: Path) -> None:
    async def never() -> AsyncIterator[bytes]:
        await anyio.sleep_forever()
        yield b""

    async with served(tmp_path, options=ServerOptions(body_bytes_max=10_000, environ={})) as server:
        refused = await server.call("POST", "/session", 413, content=never(), headers={"content-length": "10001"})
        assert "10000 bytes" in refused["data"]["message"]


async def test_a_body_with_too_many_items_is_refused(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        many = {f"k{number}": 1 for number in range(BODY_ITEMS_MAX + 2)}
        for method, path in (("POST", "/session"), ("PATCH", f"/session/{session}")):
            refused = await server.call(method, path, 400, json={"metadata": many})
            assert f"more than {BODY_ITEMS_MAX} items" in refused["data"]["message"]
        await server.call("PATCH", f"/session/{session}", json={"metadata": {"text": 'a, "b",' * BODY_ITEMS_MAX}})


async def test_a_prompt_with_too_many_parts_is_refused(tmp_path: Path) -> None:
    part = {"type": "text", "text": "a"}
    async with served(tmp_path) as server:
        session = await server.session()
        body = {"parts": [part] * (PROMPT_PARTS_MAX + 1), "noReply": True}
        refused = await server.post(f"/session/{session}/message", body, 400)
        assert f"{PROMPT_PARTS_MAX} at the most" in refused["data"]["message"]
        await server.post(f"/session/{session}/message", {**body, "parts": [part] * PROMPT_PARTS_MAX})


@pytest.mark.parametrize("came", [0, 1, 2])
async def test_a_body_that_does_not_come_is_not_waited_for(came: int, tmp_path: Path) -> None:
    pieces: list[AsgiMessage] = [{"type": "http.request", "body": b" ", "more_body": True}] * came
    async with served(tmp_path, options=ServerOptions(body_timeout_s=0.01, environ={})) as server:
        answers = []

        async def receive() -> AsgiMessage:
            if pieces:
                return pieces.pop()
            await anyio.sleep_forever()
            raise AssertionError

        async def send(message: AsgiMessage) -> None:
            answers.append(message.get("status"))

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/session",
            "query_string": b"",
            "headers": [(b"host", b"localhost")],
        }
        await server.app(scope, receive, send)
        assert answers[0] == 408


@pytest.mark.parametrize("path", ["/path", "/session", "/config", "/api/location"])
async def test_a_directory_with_a_name_that_none_can_have_is_refused(path: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        await server.get(path, 400, params={"directory": "a\0b", "location[directory]": "a\0b"})


@pytest.mark.parametrize(
    "path",
    ["/session/a%00b", "/session/ses_x/message/bad", "/permission/bad/reply", "/session/ses_x/diff?messageID=a/b"],
)
async def test_a_name_that_nothing_can_have_never_reaches_the_store(path: str, tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        method = "POST" if path.endswith("/reply") else "GET"
        refused = await server.call(method, path, 400)
        assert (refused["name"], refused["data"]["kind"]) == ("BadRequest", "Query" if "?" in path else "Params")
