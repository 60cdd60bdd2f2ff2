"""Ill-formed requests: whatever stands in a path, a query, a header or a body, the answer is a refusal in its shape."""

import copy
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from served import Served, served

from turnkeeper.model import event as e
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server import routes
from turnkeeper.server.route import Route
from turnkeeper.testing.builders import a_text, a_user

ROUTES = [one for one in routes.load() if one.operation != "v2.session.wait"]

LONG = "x" * 5000
TEXTS = {
    "empty": "",
    "blank": "%20",
    "long": LONG,
    "huge": "ses_" + "9" * 300,
    "NUL": "ses_%00",
    "half a character": "%ED%A0%80",
    "no UTF-8": "%FF%FE",
    "up": "..",
    "slash": "ses_%2F..%2Fx",
    "wide": quote("ses_日本"),
    "line break": "ses_%0D%0Aset-cookie:%20a=b",
    "number": "1" * 5000,
    "negative": "-1",
    "exponent": "1e999",
    "not a number": "nan",
}
"""What stands in a path or a query, escaped."""

VALUES: dict[str, bytes] = {
    "null": b"null",
    "true": b"true",
    "empty": b'""',
    "NUL": rb'"a\u0000b"',
    "half a character": rb'"\ud800"',
    "long": b'"%b"' % LONG.encode(),
    "slash": b'"../../x"',
    "zero": b"0",
    "negative": b"-1",
    "fraction": b"1.5",
    "huge": b"9" * 5000,
    "exponent": b"1e400",
    "negative exponent": b"-1e400",
    "list": b"[]",
    "object": b"{}",
    "nested": b"[[[[{}]]]]",
    "deep": b"[" * 100_000 + b"]" * 100_000,
}
"""What stands in a body, as JSON."""

TEXT = {"type": "text", "text": "go"}
FILE = {"type": "file", "mime": "text/plain", "url": "data:text/plain,x", "filename": "x"}
MODEL = {"providerID": "acme", "modelID": "large"}
RULE = {"permission": "bash", "pattern": "*", "action": "ask"}
BODIES: dict[str, Any] = {
    "session.create": {
        "title": "One",
        "parentID": "ses_nope",
        "agent": "build",
        "model": {"id": "large", "providerID": "acme", "variant": "high"},
        "metadata": {"a": 1},
        "permission": [RULE],
    },
    "session.update": {"title": "One", "metadata": {"a": 1}, "permission": [RULE], "time": {"archived": 1}},
    "session.fork": {"messageID": "msg_nope"},
    "turnkeeper.session.undo": {"messageID": "msg_nope", "dryRun": True},
    "turnkeeper.session.redo": {"dryRun": True},
    "session.prompt": {
        "parts": [TEXT, FILE],
        "model": MODEL,
        "agent": "build",
        "system": "be",
        "tools": {"bash": False},
        "variant": "high",
        "noReply": True,
    },
    "session.prompt_async": {"parts": [TEXT, FILE], "model": MODEL, "noReply": True, "delivery": "queue"},
    "session.command": {"command": "init", "arguments": "x", "agent": "build", "model": "acme/nope", "parts": [FILE]},
    "session.shell": {"agent": "build", "command": "true", "model": MODEL},
    "session.init": {"providerID": "acme", "modelID": "nope", "messageID": "msg_mine"},
    "session.summarize": {"providerID": "acme", "modelID": "large", "auto": False},
    "session.revert": {"messageID": "msg_nope", "partID": "prt_nope"},
    "part.update": {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "x"},
    "permission.reply": {"reply": "once", "message": "x"},
    "permission.respond": {"response": "once"},
    "question.reply": {"answers": [["x"]]},
    "mcp.add": {
        "name": "tides",
        "config": {
            "type": "local",
            "command": ["false"],
            "cwd": ".",
            "environment": {"TIDE": "low"},
            "enabled": True,
            "timeout": 1000,
        },
    },
    "mcp.auth.callback": {"code": "x"},
    "turnkeeper.share": {"include": ["messages", "tools"], "expires": 60},
    "app.log": {"service": "kit", "level": "info", "message": "x", "extra": {"a": 1}},
    "v2.session.create": {
        "agent": "build",
        "model": {"id": "large", "providerID": "acme"},
        "location": {"directory": "/"},
    },
    "v2.session.prompt": {
        "prompt": {"text": "go", "files": [{"uri": "data:text/plain,x", "name": "x"}], "agents": []},
        "delivery": "queue",
        "resume": False,
    },
    "v2.session.switchAgent": {"agent": "build"},
    "v2.session.switchModel": {"model": {"id": "large", "providerID": "acme", "variant": "high"}},
    "v2.session.revert.stage": {"messageID": "msg_nope", "files": False},
    "v2.session.permission.reply": {"reply": "once", "message": "x"},
    "v2.session.question.reply": {"answers": [["x"]]},
}


def test_there_is_a_body_for_every_operation_that_takes_one() -> None:
    assert {one.operation for one in ROUTES if one.body is not type(None)} == set(BODIES)


def places(value: Any, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where something stands in a body, itself first."""
    yield here
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from places(item, (*here, name))


def replaced(body: Any, place: tuple[str | int, ...], value: bytes) -> bytes:
    """A body with something else at a place."""
    mark = "here it stands"
    if not place:
        return value
    changed = copy.deepcopy(body)
    inner = changed
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = mark
    return json.dumps(changed).encode().replace(f'"{mark}"'.encode(), value)


@asynccontextmanager
async def a_server(directory: Path) -> AsyncIterator[tuple[Served, str]]:
    """A server with one session that was answered once."""
    async with served(directory, Scripted().says("yes").forever()) as server:
        session = await server.session()
        user = a_user(session, "msg_1")
        await server.stage.tk.store.journal.append(
            session, e.MessageRecorded(message=user, parts=(a_text(user, "prt_1", "x"),))
        )
        yield server, session


async def send(server: Served, route: Route, address: str, **given: Any) -> None:
    """Send a request; its answer is no defect, and a refusal has the shape of its generation."""
    answer = await server.http.request(route.method, address, **given)
    said = f"{route.method} {address[:200]} {str(given)[:200]}: {answer.status_code} {answer.text[:300]}"
    assert answer.status_code < 500, said
    if answer.status_code >= 400:
        body = answer.json()
        if answer.url.path.startswith("/api/"):
            assert isinstance(body["_tag"], str), said
            assert body["message"], said
        else:
            assert body.get("name") or body.get("_tag"), said
            assert body.get("message") or body["data"]["message"], said


def filled(route: Route, session: str) -> str:
    """The path of a route, about things that are there where there are any."""
    names = {"sessionID": session, "messageID": "msg_1", "partID": "prt_1", "projectID": "global"}
    names |= {
        "permissionID": "per_1",
        "providerID": "acme",
        "requestID": "que_1" if "question" in route.operation else "per_1",
    }
    path = route.path.replace("/*", "/x")
    for name, value in names.items():
        path = path.replace(f"{{{name}}}", value)
    return path


NAMED = [one for one in ROUTES if "{" in one.path]
ASKED = [one for one in ROUTES if one.media == "application/json"]
TAKING = [one for one in ROUTES if one.body is not type(None)]


@pytest.mark.parametrize("route", NAMED, ids=lambda one: one.operation)
async def test_whatever_stands_in_a_path_is_refused_in_its_shape(tmp_path: Path, route: Route) -> None:
    async with a_server(tmp_path) as (server, session):
        body = BODIES.get(route.operation)
        for segment in [one for one in route.path.split("/") if one.startswith("{")]:
            for text in TEXTS.values():
                before = route.path.partition(segment)[0]
                rest = filled(route, session).split("/")
                rest[before.count("/")] = text
                # A stream that begins never ends; what is not found does not begin.
                if route.media == "application/json":
                    await send(server, route, "/".join(rest), json=body)


@pytest.mark.parametrize("route", ASKED, ids=lambda one: one.operation)
async def test_whatever_stands_in_a_query_is_refused_in_its_shape(tmp_path: Path, route: Route) -> None:
    names = ["directory", "location[directory]", "workspace"]
    if route.query is not type(None):
        names += [one.encode_name for one in msgspec.structs.fields(route.query)]
    async with a_server(tmp_path) as (server, session):
        body = BODIES.get(route.operation)
        for name in names:
            for text in TEXTS.values():
                await send(server, route, f"{filled(route, session)}?{name}={text}", json=body)
        for text in TEXTS.values():
            if "\r" not in text:
                header = {"x-opencode-directory": text}
                await send(server, route, filled(route, session), json=body, headers=header)


@pytest.mark.parametrize("route", TAKING, ids=lambda one: one.operation)
async def test_whatever_stands_in_a_body_is_refused_in_its_shape(tmp_path: Path, route: Route) -> None:
    async with a_server(tmp_path) as (server, session):
        address, body = filled(route, session), BODIES[route.operation]
        if route.operation == "part.update":
            body = {**body, "sessionID": session}
        for place in places(body):
            for value in VALUES.values():
                await send(server, route, address, content=replaced(body, place, value))
        whole = json.dumps(body).encode()
        for content in (
            b"{",
            b"\xff\xfe",
            b"\x00",
            whole[:-1],
            b"\xef\xbb\xbf" + whole,
            whole.decode().encode("utf-16"),
        ):
            await send(server, route, address, content=content)
        for kind in (
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "application/json; charset=x",
            "?",
        ):
            await send(server, route, address, content=whole, headers={"content-type": kind})
