"""Requests that official clients were recorded to send: our answers have the recorded status and the official shape.

recordings.jsonl holds what was sent, with our own ids and models in the place of those of that day, and the status of
opencode 1.18.33; official_answers.json is the part of its OpenAPI document that describes the answers.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from served import Served, served
from shapes import DOCUMENT

from turnkeeper.providers.scripted import Scripted

FOLDER = Path(__file__).parent
RECORDINGS = [json.loads(line) for line in (FOLDER / "recordings.jsonl").read_text().splitlines()]
ANSWERS = json.loads((FOLDER / "official_answers.json").read_text())

BETTER = {
    500: (200, 400, 404),
    "session.list": (400,),
    "session.fork": (404,),
}
"""Where we differ on purpose: nothing that a caller does wrong is a defect of ours, and what makes no sense is told."""


@cache
def validator(operation: str) -> Any:
    known = {**DOCUMENT["$defs"], **ANSWERS["$defs"]}
    return jsonschema_rs.validator_for({**ANSWERS["answers"][operation], "$defs": known})


def check_shape(operation: str, value: object) -> None:
    """That an answer has its official shape."""
    faults = [f"{error.instance_path}: {error.message[:300]}" for error in validator(operation).iter_errors(value)]
    assert faults == []


async def a_history(server: Served) -> dict[str, str]:
    """A session in which something was said and done, by the names that recordings have for its parts."""
    session = await server.session()
    answer = await server.ask(session, "look")
    first = await server.http.get(f"/session/{session}/message?limit=1")
    project = await server.get("/project/current")
    [text] = [part for part in answer["parts"] if part["type"] == "text"]
    return {
        "{sessionID}": session,
        "{messageID}": answer["info"]["id"],
        "{partID}": text["id"],
        '"{part}"': json.dumps(text),
        "{cursor}": first.headers["x-next-cursor"],
        "{projectID}": project["id"],
    }


def filled(piece: object, names: dict[str, str]) -> Any:
    text = json.dumps(piece)
    for name, value in names.items():
        text = text.replace(name, value)
    return json.loads(text)


def a_name(recording: dict[str, Any]) -> str:
    return f"{recording['client']} {recording['operation']} {recording['status']}"


@pytest.mark.parametrize("recording", RECORDINGS, ids=a_name)
async def test_a_recorded_request_is_answered_as_recorded(recording: dict[str, Any], tmp_path: Path) -> None:
    provider = Scripted().thinks("Hm.").says("I look.").calls("echo", text="x").then().says("It is x.").forever()
    async with served(tmp_path, provider) as server:
        asked = filled(recording, await a_history(server))
        body = {"content": b'{"x"'} if asked["request"] == "BROKEN" else {"json": asked["request"]}
        given = body if asked["request"] is not None else {}
        answer = await server.http.request(asked["method"], asked["path"], params=asked["query"], **given)
        better = BETTER.get(recording["status"], BETTER.get(recording["operation"], ()))
        assert answer.status_code in (recording["status"], *better), answer.text
        if answer.status_code == 200:
            # A prompt that wants no reply is answered with itself, whatever the document says.
            is_itself = asked["request"] is not None and "noReply" in asked["request"]
            check_shape("session.message" if is_itself else recording["operation"], answer.json())
        elif answer.status_code == recording["status"] and recording.get("refused"):
            check_refusal(recording["refused"], answer.json())
        if "/prompt_async" in asked["path"] and answer.is_success:
            await server.stage.tk.wait(asked["path"].split("/")[2])


def check_refusal(recorded: dict[str, Any], ours: dict[str, Any]) -> None:
    """That a refusal says all that the recorded one says, in the same words but for the message."""
    assert set(recorded) <= set(ours)
    for name in ("name", "_tag", "sessionID", "requestID"):
        assert recorded.get(name) in (None, ours.get(name))
    assert recorded.get("data", {}).get("kind") in (None, ours.get("data", {}).get("kind"))
