"""Small routes that the clients' libraries call: the log, the tools, and lists in their official shape."""

import logging
from pathlib import Path
from typing import Any

import pytest
from heard import listening
from served import served
from shapes import faults

from turnkeeper.model import event as e
from turnkeeper.model.todo import Todo
from turnkeeper.testing.builders import a_system, a_text, a_user, an_epoch


async def test_a_line_of_a_client_is_written_to_the_log_as_one_line(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path) as server:
        body = {"service": "kit", "level": "warn", "message": "two\nlines", "extra": {"n": 1}}
        assert await server.post("/log", body) is True
        [line] = [one for one in caplog.records if one.name == "turnkeeper.client"]
        assert line.levelno == logging.WARNING
        assert line.getMessage() == '{"service":"kit","level":"warn","message":"two\\nlines","extra":{"n":1}}'
        for wrong in ({}, {**body, "level": "loud"}, {**body, "message": 1}, {**body, "extra": []}):
            await server.post("/log", wrong, 400)


async def test_tools_are_listed_by_name_and_with_their_schemas(tmp_path: Path) -> None:
    async with served(tmp_path) as server:
        names: Any = await server.get("/experimental/tool/ids")
        assert "echo" in names
        tools: Any = await server.get("/experimental/tool?provider=acme&model=large")
        assert [one["id"] for one in tools] == names
        assert all(set(one) == {"id", "description", "parameters"} for one in tools)
        assert tools[0]["parameters"]["type"] == "object"
        await server.get("/experimental/tool?provider=acme", 400)
        await server.get("/experimental/tool?provider=acme&model=nope", 400)


async def test_a_todo_is_shown_without_what_clients_do_not_know_and_kept_with_it(tmp_path: Path) -> None:
    todo = Todo(content="Test it", status="pending", priority="high", id="1")
    async with served(tmp_path) as server:
        session = await server.session()
        async with listening(server.service, "/event") as first, listening(server.service, "/api/event") as second:
            await server.stage.tk.store.journal.append(session, e.TodosSet(todos=(todo,)))
            for stream in (first, second):
                await stream.until_type("todo.updated")
                [told] = stream.events[-1].said["todos"]
                assert faults("Todo", told) == []
        [shown] = await server.get(f"/session/{session}/todo")
        assert faults("Todo", shown) == []
        assert await server.stage.tk.todos(session) == (todo,)


@pytest.mark.parametrize("limit", range(1, 9))
async def test_pages_are_as_long_as_asked_for_though_news_is_not_shown(tmp_path: Path, limit: int) -> None:
    async with served(tmp_path) as server:
        session = await server.session()
        life: list[e.Event] = [e.EpochStarted(epoch=an_epoch())]
        for nth in range(6):
            user = a_user(session, f"msg_{nth}")
            life.append(e.MessageRecorded(message=user, parts=(a_text(user, f"prt_{nth}", str(nth)),)))
            news = (a_system(session, f"msg_s{nth}{more}", "It is Monday.") for more in range(nth % 3))
            life += [e.ContextAdmitted(message=one, checkpoint={}) for one in news]
        await server.stage.tk.store.journal.append(session, *life)
        whole = [f"msg_{nth}" for nth in range(6)]
        pages: list[list[str]] = []
        cursor: str | None = None
        while True:
            answer = await server.http.get(
                f"/session/{session}/message", params={"limit": limit, **({"before": cursor} if cursor else {})}
            )
            pages.append([one["info"]["id"] for one in answer.json()])
            if (cursor := answer.headers.get("x-next-cursor")) is None:
                break
        assert [name for page in reversed(pages) for name in page] == whole
        assert all(len(page) == limit for page in pages[:-1])
