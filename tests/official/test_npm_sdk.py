"""The official npm SDK, both generations: every session method, on the routes they share."""

from pathlib import Path

import pytest
from clients import Served, needs
from walks import Walk, texts, walk

pytestmark = needs()


@pytest.fixture(scope="module", params=["first", "second"])
def sdk(request: pytest.FixtureRequest, served: Served, place: Path, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    home = tmp_path_factory.mktemp("home")
    return walk("sessions.mjs", served.url, str(place), request.param, home=home)


def test_every_session_method_is_called_and_served(sdk: Walk) -> None:
    assert list(sdk.uncalled()) == []
    assert sdk.unserved() == set()


def test_a_session_is_shared_under_a_link_with_a_secret_and_unshared(sdk: Walk) -> None:
    shared = sdk.answer("share")
    address, _, secret = shared["share"]["url"].partition("#")
    assert (address.rpartition("/")[2], len(secret)) == (shared["id"], 43)
    assert "share" not in sdk.answer("unshare")


def test_sessions_are_made_renamed_listed_and_deleted(sdk: Walk, place: Path) -> None:
    made, child = sdk.answer("create"), sdk.answer("create a child")
    assert (made["title"], made["directory"]) == ("Made by the SDK", str(place))
    assert sdk.answer("get") == made
    assert sdk.answer("update") == {**made, "title": "Renamed by the SDK", "time": sdk.answer("update")["time"]}
    assert sdk.answer("children") == [child]
    assert {made["id"], child["id"]} <= {one["id"] for one in sdk.answer("list")}
    assert sdk.answer("status") == {}
    assert sdk.answer("delete") is True
    assert sdk.refusal("get deleted", 404)["name"] == "NotFoundError"


def test_a_prompt_is_answered_and_read_again(sdk: Walk) -> None:
    answered = sdk.answer("prompt")
    assert texts(answered["parts"]) == ["Said by the script."]
    assert answered["info"]["finish"] == "stop"
    assert sdk.answer("message") == answered
    messages = sdk.answer("messages")
    assert texts(messages[0]["parts"]) == ["[[text Said by the script.]]"]
    assert messages[1] == answered
    assert sdk.answer("messages of a page") == messages[-2:]
    assert sdk.answer("diff") == []


def test_a_repository_is_described_on_demand(sdk: Walk) -> None:
    assert sdk.answer("init") is True
    asked, answer = sdk.answer("messages of init")
    assert (asked["info"]["role"], answer["info"]["finish"]) == ("user", "stop")
    assert texts(asked["parts"])[0].startswith("Write AGENTS.md")


def test_a_prompt_that_is_not_waited_for_is_told_by_events(sdk: Walk) -> None:
    assert sdk.told["promptAsync"]["status"] == 204
    assert [one["content"] for one in sdk.answer("todo")] == ["sow", "reap"]
    told = [one["type"] for one in sdk.told["events"]]
    assert {"session.created", "session.updated", "session.idle", "todo.updated"} <= set(told)
    assert told.index("session.status") < told.index("session.idle")


def test_what_a_client_hears_is_what_is_stored(sdk: Walk) -> None:
    shown: dict[str, str] = {}
    for event in sdk.told["events"]:
        said = event["properties"]
        if event["type"] == "message.part.updated" and said["part"]["type"] == "text":
            shown[said["part"]["id"]] = said["part"]["text"]
        elif event["type"] == "message.part.delta":
            shown[said["partID"]] += said["delta"]  # Of no part that was not announced.
    stored = [part for message in sdk.answer("messages") for part in message["parts"] if part["type"] == "text"]
    stored += [part for part in sdk.answer("messages after the abort")[0]["parts"] if part["type"] == "text"]
    assert len(stored) == 7
    if "message with another text" in sdk.told:  # That was said first is said otherwise in the end, and then removed.
        shown[stored[1]["id"]] = stored[1]["text"]
    assert {part["id"]: shown[part["id"]] for part in stored} == {part["id"]: part["text"] for part in stored}
    assert "message.part.delta" in [event["type"] for event in sdk.told["events"]]


def test_a_command_is_asked_about_and_runs_once_it_is_allowed(sdk: Walk) -> None:
    assert (sdk.told["asked"]["permission"], sdk.told["asked"]["patterns"]) == ("bash", ["echo it-ran"])
    assert sdk.answer("permission") is True
    tool = next(part for part in sdk.answer("messages")[-2]["parts"] if part["type"] == "tool")
    assert (tool["tool"], tool["state"]["status"], tool["state"]["output"]) == ("bash", "completed", "it-ran")
    assert texts(sdk.answer("messages")[-1]["parts"]) == ["Allowed."]


def test_a_command_of_the_users_own_runs(sdk: Walk) -> None:
    (tool,) = [part for part in sdk.answer("shell")["parts"] if part["type"] == "tool"]
    assert tool["state"]["output"].strip() == "by-hand"


def test_a_turn_that_is_aborted_keeps_what_it_said(sdk: Walk) -> None:
    assert sdk.told["status while busy"] == {"type": "busy"}
    assert sdk.answer("abort") is True
    (message,) = sdk.answer("messages after the abort")
    assert message["info"]["error"]["name"] == "MessageAbortedError"
    assert texts(message["parts"])[0].startswith("tick ")


def test_a_fork_has_what_came_before_its_message(sdk: Walk) -> None:
    assert sdk.answer("fork")["title"].startswith("Renamed by the SDK (fork #")
    assert "parentID" not in sdk.answer("fork")
    (message,) = sdk.answer("messages of the fork")
    assert texts(message["parts"]) == ["[[text Said by the script.]]"]
    assert sdk.answer("fork of all")["id"] not in (sdk.answer("fork")["id"], sdk.answer("create")["id"])


def test_a_session_is_summarised(sdk: Walk) -> None:
    assert sdk.answer("summarize") is True
    (message,) = sdk.answer("messages after the summary")
    assert (message["info"]["agent"], message["info"]["summary"]) == ("compaction", True)
    assert "session.compacted" in [one["type"] for one in sdk.told["events"]]


@pytest.mark.parametrize("sdk", ["second"], indirect=True)
def test_messages_and_parts_are_changed_and_deleted(sdk: Walk) -> None:
    assert sdk.answer("part.update")["text"] == "Said otherwise."
    assert texts(sdk.answer("message with another text")["parts"]) == ["Said otherwise."]
    assert sdk.answer("part.delete") is True
    assert texts(sdk.answer("message without its text")["parts"]) == []
    assert sdk.answer("deleteMessage") is True
    assert sdk.refusal("message deleted", 404)["name"] == "NotFoundError"


@pytest.mark.parametrize("sdk", ["second"], indirect=True)
def test_what_is_asked_is_listed_and_what_is_not_asked_cannot_be_answered(sdk: Walk) -> None:
    assert sdk.answer("permission.list") == []
    (asked,) = sdk.answer("permission.list while asked")
    assert asked["patterns"] == ["false"]
    assert sdk.answer("permission.respond") is True
    assert sdk.refusal("permission.reply to nothing", 404)["_tag"] == "PermissionNotFoundError"
    assert sdk.answer("question.list") == []
    assert sdk.refusal("question.reply to nothing", 404)["_tag"] == "QuestionNotFoundError"
    assert sdk.refusal("question.reject of nothing", 404)["_tag"] == "QuestionNotFoundError"
