"""The official shapes of events and bodies, as far as we serve them: a part of opencode's own OpenAPI document."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs

DOCUMENT = json.loads((Path(__file__).parents[1] / "server/official_shapes.json").read_text())


@cache
def _validator(name: str) -> Any:
    return jsonschema_rs.validator_for({"$ref": f"#/$defs/{name}", **DOCUMENT})


def faults(name: str, value: Any) -> list[str]:
    """What is wrong with a value that should have this shape."""
    return [f"{error.instance_path}: {error.message[:400]}" for error in _validator(name).iter_errors(value)]


def check_event(event: Any) -> None:
    """That an event of the first generation has its official shape. Only the offset of a delta is ours."""
    if event["type"] == "server.heartbeat":  # Sent by the real server, and not in its document.
        assert event["properties"] == {}
        return
    if event["type"] == "message.part.delta":
        event = {**event, "properties": {name: at for name, at in event["properties"].items() if name != "offset"}}
    assert faults(_named("Event", event["type"]), event) == [], event


def check_second(event: Any) -> None:
    """The same of the second generation."""
    assert faults(_named("V2Event", event["type"]), event) == [], event


@cache
def _named(union: str, kind: str) -> str:
    """The one shape of a union that is of this type: its faults say more than that nothing fits."""
    for member in DOCUMENT["$defs"][union]["anyOf"]:
        name = member["$ref"].rsplit("/", 1)[1]
        if DOCUMENT["$defs"][name]["properties"]["type"]["enum"] == [kind]:
            return str(name)
    raise AssertionError(f"{kind} is not an event of {union}")
