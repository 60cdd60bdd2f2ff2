"""The official npm SDK's routes under /api: every session method, and one log behind both generations."""

from pathlib import Path

import pytest
from clients import Served, needs
from walks import Walk, texts, walk

pytestmark = needs()

LATER = {"permission.create"}
"""What this floor of the server does not serve yet, and says so."""


@pytest.fixture(scope="module")
def api(served: Served, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    return walk("api.mjs", served.url, str(place), home=tmp_path_factory.mktemp("home"))


def test_every_session_method_is_called_and_only_those_of_later_floors_are_not_served(api: Walk) -> None:
    assert list(api.uncalled()) == []
    assert api.unserved() == LATER


def test_a_session_has_the_id_its_caller_chose(api: Walk, place: Path) -> None:
    made = api.answer("create")["data"]
    assert made["location"] == {"directory": str(place)}
    assert api.answer("get")["data"] == made
    assert made["id"] in [one["id"] for one in api.answer("list")["data"]]
    assert made["id"] not in api.answer("active")["data"]
    assert api.refusal("get of nothing", 404)["_tag"] == "SessionNotFoundError"
    assert api.refusal("message of nothing", 404)["_tag"] == "MessageNotFoundError"


def test_a_prompt_with_its_callers_id_is_admitted_once(api: Walk) -> None:
    admitted = api.answer("prompt")["data"]
    assert admitted["delivery"] == "steer"
    assert api.answer("prompt again")["data"] == admitted
    assert api.refusal("prompt with other words", 409)["_tag"] == "ConflictError"
    api.answer("wait", 204)
    asked, answered = api.answer("messages")["data"]
    assert (asked["id"], asked["type"], asked["text"]) == (admitted["id"], "user", "[[text Said by the script.]]")
    assert (answered["type"], answered["content"][0]["text"]) == ("assistant", "Said by the script.")
    assert api.answer("message")["data"] == asked
    assert api.answer("context")["data"] == [asked, answered]


def test_a_tool_waits_for_its_permission(api: Walk) -> None:
    asked = api.told["asked"]
    assert (asked["action"], asked["resources"]) == ("bash", ["echo it-ran"])
    assert api.answer("permission.list")["data"] == [asked]
    assert api.answer("permission.get")["data"] == asked
    api.answer("permission.reply", 204)
    api.answer("wait for the tool", 204)
    page = api.answer("messages of a page")
    assert [one["text"] for one in page["data"][0]["content"]] == ["Allowed."]
    assert page["cursor"]["next"]
    assert api.answer("question.list")["data"] == []
    assert api.refusal("question.reply to nothing", 404)["_tag"] == "QuestionNotFoundError"
    assert api.refusal("question.reject of nothing", 404)["_tag"] == "QuestionNotFoundError"


def test_a_turn_that_is_interrupted_keeps_what_it_said(api: Walk) -> None:
    session = api.answer("create")["data"]["id"]
    assert api.answer("active while busy")["data"] == {session: {"type": "running"}}
    api.answer("interrupt", 204)
    (message,) = api.answer("messages after the interrupt")["data"]
    assert (message["finish"], message["error"]["type"]) == ("error", "unknown")
    assert message["content"][0]["text"].startswith("tick ")
    assert api.answer("prompt not resumed")["data"]["delivery"] == "queue"


def test_agent_and_model_are_switched(api: Walk) -> None:
    api.answer("switchAgent", 204)
    api.answer("switchModel", 204)
    switched = api.answer("get switched")["data"]
    assert (switched["agent"], switched["model"]["id"]) == ("plan", "one")


def test_a_summary_takes_the_place_of_the_context(api: Walk) -> None:
    api.answer("compact", 204)
    assert [one["type"] for one in api.answer("context after the summary")["data"]] == ["compaction"]


def test_the_sessions_own_stream_is_its_history_with_no_gap_and_no_repeat(api: Walk) -> None:
    history = api.answer("history")
    assert history["hasMore"] is False
    assert api.told["own"] == history["data"]
    places = [one["durable"]["seq"] for one in history["data"]]
    assert places == sorted(set(places))
    kinds = [one["type"].removeprefix("session.next.") for one in history["data"]]
    turn = ["prompt.admitted", "prompted", "step.started", "text.started", "text.ended", "step.ended"]
    assert [kind for kind in kinds if kind in turn][: len(turn)] == turn
    assert {"tool.called", "tool.success", "step.failed", "agent.switched", "compaction.ended"} <= set(kinds)
    page = api.answer("history of a page")
    assert (page["data"], page["hasMore"]) == (history["data"][:3], True)


def test_deltas_are_heard_live(api: Walk) -> None:
    (message,) = api.answer("messages after the interrupt")["data"]
    assert "".join(api.told["deltas"]).endswith(message["content"][0]["text"])


def test_the_first_generation_reads_what_the_second_wrote(api: Walk) -> None:
    seen = api.answer("seen by the first")
    assert texts(seen[0]["parts"]) == ["[[text Said by the script.]]"]
    assert texts(seen[1]["parts"]) == ["Said by the script."]
    assert any(part["type"] == "tool" for message in seen for part in message["parts"])
