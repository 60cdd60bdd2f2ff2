"""Old and odd shapes become today's; whatever we do not know comes back as it was."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opencode_files import EXPORTS

from turnkeeper.interop.export import message_json, session_json
from turnkeeper.interop.import_json import sessions
from turnkeeper.interop.normalise import incoming
from turnkeeper.interop.raw import parse
from turnkeeper.model.message_with_parts import MessageWithParts


def some_of_everything() -> Any:
    """The real session with the most kinds of parts, and of its messages those that bring another kind."""
    export = json.loads(max(EXPORTS, key=lambda file: file.stat().st_size).read_text())
    met: set[str] = set()
    kept = []
    for message in export["messages"]:
        kinds = {f"{part['type']} {part.get('state', {}).get('status')}" for part in message["parts"]}
        if not kinds <= met:
            kept.append(message)
            met |= kinds
    return {**export, "messages": kept}


WHOLE = some_of_everything()


def through(export: Any) -> Any:
    """What an export is after it came in and went out again."""
    [raw] = sessions(parse(json.dumps(export)), "here")
    made = incoming(raw)
    assert made.unreadable == []
    messages = [MessageWithParts(info=one.info, parts=one.parts) for one in made.messages]
    return {"info": session_json(made.session), "messages": [message_json(one) for one in messages]}


def a_history(*infos: Any, **session: Any) -> dict[str, Any]:
    """An export of the least that can be read, of these messages."""
    return {
        "info": {"id": "ses_1", **session},
        "messages": [
            {"info": {"id": f"msg_{nth}", **info}, "parts": info.pop("parts", [])} for nth, info in enumerate(infos)
        ],
    }


USER: dict[str, Any] = {"role": "user", "time": {"created": 1}}
TURN: dict[str, Any] = {"role": "assistant", "time": {"created": 2}, "providerID": "p", "modelID": "m"}
ZERO = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
# Names that are none of ours; some would be if they were taken for our own bookkeeping.
names = st.sampled_from(["seq", "nth", "$extra", "origin", "set", "in"]) | st.text(min_size=1).map(
    lambda word: f"x-{word}"
)
fields = st.dictionaries(names, values, max_size=3)


def objects(json_value: Any) -> list[dict[str, Any]]:
    """Every object of an export whose shape is ours, each of which may have fields we do not know."""
    session = json_value["info"]
    found = [
        session,
        session["time"],
        session["tokens"],
        session["tokens"]["cache"],
        session["model"],
        session["summary"],
    ]
    for message in json_value["messages"]:
        found += [message["info"], message["info"]["time"], *message["parts"]]
        found += [part[key] for part in message["parts"] for key in ("time", "state", "tokens") if key in part]
        found += [part["state"]["time"] for part in message["parts"] if "state" in part]
    return found


def some_objects(data: st.DataObject) -> tuple[Any, list[dict[str, Any]]]:
    """An export, and a few of its objects to be changed."""
    export = copy.deepcopy(WHOLE)
    found = objects(export)
    places = data.draw(st.lists(st.integers(0, len(found) - 1), max_size=4))
    return export, [found[place] for place in places]


@given(data=st.data())
def test_fields_that_nobody_knows_come_back_at_their_place(data: st.DataObject) -> None:
    export, chosen = some_objects(data)
    for one in chosen:
        for name, value in data.draw(fields).items():
            one.setdefault(name, value)
    assert through(export) == export


@given(data=st.data())
def test_going_round_twice_is_going_round_once(data: st.DataObject) -> None:
    """Whatever is in a known field: what can be taken is normalised once, and then stays as it is."""
    export, chosen = some_objects(data)
    for one in chosen:
        name = data.draw(st.sampled_from(sorted(one)))
        if name not in ("id", "role"):
            one[name] = data.draw(values)
    once = through(export)
    assert len(once["messages"]) == len(WHOLE["messages"])
    assert through(once) == once


def test_a_prompt_too_old_to_name_agent_and_model_gets_those_of_the_next_turn() -> None:
    before, after = through(a_history({**USER, "variant": "high"}, TURN))["messages"]
    assert before["info"]["agent"] == "build"
    assert before["info"]["model"] == {"providerID": "p", "modelID": "m", "variant": "high"}
    assert "variant" not in before["info"]
    assert after["info"]["parentID"] == "msg_0"


def test_a_prompt_that_nobody_answered_asked_for_an_unknown_model() -> None:
    [message] = through(a_history(USER))["messages"]
    assert message["info"]["model"] == {"providerID": "unknown", "modelID": "unknown"}


@pytest.mark.parametrize("named", [{"agent": "plan"}, {"mode": "plan"}])
def test_agent_and_mode_fill_each_other(named: dict[str, str]) -> None:
    [message] = through(a_history({**TURN, **named}))["messages"]
    assert (message["info"]["agent"], message["info"]["mode"]) == ("plan", "plan")


def test_a_turn_without_usage_used_nothing() -> None:
    [message] = through(a_history({**TURN, "tokens": {"input": None, "output": 5, "cache": 3}}))["messages"]
    assert (message["info"]["cost"], message["info"]["tokens"]) == (0, {**ZERO, "output": 5})


def test_states_of_calls_are_filled() -> None:
    time = {"start": 1, "end": 2}
    states = [{"status": "pending"}, {"status": "completed", "input": {"a": 1}, "output": "o", "time": time}]
    parts = [
        {"id": f"prt_{n}", "type": "tool", "callID": "c", "tool": "t", "state": state} for n, state in enumerate(states)
    ]
    [message] = through(a_history({**TURN, "parts": parts}))["messages"]
    assert [part["state"] for part in message["parts"]] == [
        {"status": "pending", "input": {}, "raw": ""},
        {"status": "completed", "input": {"a": 1}, "output": "o", "time": time, "title": "", "metadata": {}},
    ]


def test_a_diff_of_before_and_after_gets_a_patch() -> None:
    old = {"file": "a", "before": "x\ny", "after": "x\nz\n", "additions": 1, "deletions": 1}
    history = a_history({**USER, "summary": {"diffs": [old]}}, summary={"additions": 1, "deletions": 1, "diffs": [old]})
    patch = "--- a\n+++ a\n@@ -1,2 +1,2 @@\n x\n-y\n\\ No newline at end of file\n+z\n"
    done = through(history)
    assert done["messages"][0]["info"]["summary"]["diffs"] == [{**old, "patch": patch}]
    assert done["info"]["summary"] == {"additions": 1, "deletions": 1, "files": 1, "diffs": [{**old, "patch": patch}]}


def test_a_diff_of_very_long_files_replaces_them_whole() -> None:
    long = {"file": "a", "before": "x\n" * 9000, "after": "x\n" * 8999 + "y\n", "additions": 1, "deletions": 1}
    [diff] = through(a_history({**USER, "summary": {"diffs": [long]}}))["messages"][0]["info"]["summary"]["diffs"]
    assert diff["patch"].startswith("--- a\n+++ a\n@@ -1,9000 +1,9000 @@\n-x\n")


def test_a_session_says_the_least_it_can() -> None:
    info = through(a_history({**TURN, "path": {"cwd": "/home/user/a", "root": "/home/user"}}, cost="free"))["info"]
    assert info | {"slug": ""} == {
        "id": "ses_1",
        "slug": "",
        "projectID": "global",
        "directory": "/home/user/a",
        "title": "New session - 1970-01-01T00:00:00.002Z",
        "version": "",
        "cost": 0,
        "tokens": ZERO,
        "time": {"created": 2, "updated": 2},
    }


def a_turn(cost: float, given: int, **changes: Any) -> dict[str, Any]:
    return {**TURN, "cost": cost, "tokens": {**ZERO, "input": given}, **changes}


def test_totals_that_a_session_lacks_are_those_of_its_steps() -> None:
    step = {"id": "prt_1", "type": "step-finish", "reason": "stop", "cost": 0.5, "tokens": {**ZERO, "input": 7}}
    info = through(a_history(a_turn(9, 9, parts=[step]), a_turn(9, 9)))["info"]
    assert (info["cost"], info["tokens"]["input"]) == (0.5, 7)


def test_totals_of_a_history_without_steps_are_those_of_its_turns() -> None:
    info = through(a_history(USER, a_turn(1, 2), a_turn(3, 4)))["info"]
    assert (info["cost"], info["tokens"]["input"]) == (4, 6)


def test_a_failure_of_an_unknown_name_is_kept_beside_one_that_we_know() -> None:
    error = {"name": "SolarFlare", "data": {"message": "hot"}}
    [message] = through(a_history({**TURN, "error": error}))["messages"]
    assert message["info"]["error"] == {"name": "UnknownError", "data": {"message": "SolarFlare: hot"}}
    assert message["info"]["importedError"] == error


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ({"name": "MessageAbortedError", "data": {}}, {"message": ""}),
        ({"name": "APIError", "data": {"message": "m"}}, {"message": "m", "isRetryable": False}),
        ({"name": "MessageOutputLengthError"}, {}),
        ({"name": "ProviderAuthError", "data": {"message": "m"}}, {"message": "m", "providerID": "unknown"}),
        ({"name": "StructuredOutputError", "data": {"message": "m"}}, {"message": "m", "retries": 0}),
    ],
)
def test_a_failure_with_gaps_is_filled(given: dict[str, Any], filled: dict[str, Any]) -> None:
    [message] = through(a_history({**TURN, "error": given}))["messages"]
    assert message["info"]["error"] == {"name": given["name"], "data": filled}


def test_a_known_field_of_a_wrong_shape_is_kept_as_if_unknown() -> None:
    wrong = {"format": {"type": "poem"}, "tools": {"bash": "yes"}, "system": 5}
    [message] = through(a_history({**USER, **wrong, "agent": "a", "model": {"providerID": "p", "modelID": "m"}}))[
        "messages"
    ]
    assert {key: message["info"][key] for key in wrong} == wrong


def test_a_part_without_an_id_gets_the_same_one_every_time() -> None:
    history = a_history({**USER, "parts": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
    first, second = through(history), through(history)
    assert first == second
    assert len({part["id"] for part in first["messages"][0]["parts"]}) == 2


def test_a_fraction_of_a_millisecond_is_cut() -> None:
    assert through(a_history(time={"created": 1.0, "updated": 2.75}))["info"]["time"] == {"created": 1, "updated": 2}


@pytest.mark.parametrize(("given", "kept"), [(1e300, 253_402_300_799_999), (-1e300, 0), (5, 5)])
def test_times_of_which_no_keys_can_be_made_are_bounded(given: float, kept: int) -> None:
    exported = through(a_history(time={"created": given, "updated": given}))
    assert exported["info"]["time"] == {"created": kept, "updated": kept}
