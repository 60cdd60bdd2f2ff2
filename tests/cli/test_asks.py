"""Commands about requests to the user: listed, answered and taken up, and what was allowed for good."""

import asyncio
import subprocess
from pathlib import Path

import anyio
import pytest
from cli_store import Answer, api, tk
from workshop import Shop

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.cli.asks import parse_answer
from turnkeeper.cli.permission_prompt import how_to_allow, parse_choice
from turnkeeper.model import event as e
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.notification import Notification
from turnkeeper.model.permission import AskedBy, PermissionRequest
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.question import Option, Question, QuestionReply
from turnkeeper.run.runtime import Settings
from turnkeeper.testing.builders import a_call, a_question, an_assistant, running

OFFLINE = ModelChoice(provider_id="offline", model_id="tk-1")
DEADLINE_S = 60


def left_waiting(shop: Shop, words: str = "read .env") -> str:
    """A session that a process left while a call waited for permission."""
    (shop.project / ".env").write_text("WIND=7\n")

    async def work() -> str:
        settings = Settings(ask=None, environ=shop.environ(), titles=False)
        url = f"sqlite:{shop.data / 'turnkeeper.db'}"
        with anyio.fail_after(DEADLINE_S):
            async with turnkeeper.open(url, directory=shop.project, settings=settings) as opened:
                session = (await opened.create(title="Tides")).id
                async with opened.subscribe() as heard:
                    await opened.prompt(session, Prompt(parts=(TextInput(text=words),), model=OFFLINE))
                    async for one in heard:
                        if isinstance(one, Notification) and one.type == "permission.asked":
                            break
        return session

    return asyncio.run(work())


def waiting(shop: Shop) -> list[dict[str, object]]:
    found: list[dict[str, object]] = tk(shop.data, "permission", "list", "--json").json["items"]
    return found


def outputs(shop: Shop, session: str) -> list[str]:
    parts = [part for one in shop.messages(session) for part in one["parts"] if part["type"] == "tool"]
    return [part["state"].get("output") or part["state"].get("error") or part["state"]["status"] for part in parts]


def test_what_waits_is_listed_for_people_and_programs(shop: Shop) -> None:
    session = left_waiting(shop)
    [request] = waiting(shop)
    assert (request["sessionID"], request["permission"]) == (session, "read")
    shown = tk(shop.data, "permission", "list").out
    assert str(request["id"]) in shown
    assert ".env" in shown
    assert tk(shop.data, "permission", "list", "--directory", str(shop.home), "--json").json["items"] == []
    assert "No question waits" in tk(shop.data, "question", "list").err


def test_the_list_shows_the_command_that_asks_and_what_always_would_allow(shop: Shop) -> None:
    subprocess.run(["git", "init", "-q", str(shop.project)], check=True)
    shop.configure(permission={"edit": "ask"})
    left_waiting(shop, "run `echo hi > made.txt`")
    [request] = waiting(shop)
    assert tk(shop.data, "permission", "list").out.splitlines() == [
        f"{request['id']}  {request['sessionID']}",
        "  edit: made.txt",
        "  by the command: echo hi > made.txt",
        "  always allows: every edit except of configuration and .git",
    ]


def test_the_list_shows_the_file_outside_the_project_once(shop: Shop) -> None:
    left_waiting(shop, f"read {shop.home}/notes.txt")
    [request] = waiting(shop)
    assert tk(shop.data, "permission", "list").out.splitlines() == [
        f"{request['id']}  {request['sessionID']}",
        f"  external_directory: {shop.home}/*",
        f"  to reach: {shop.home}/notes.txt",
        "  always allows: the same",
    ]


def test_a_transcript_says_what_a_call_waits_for_and_how_it_is_answered(shop: Shop) -> None:
    session = left_waiting(shop)
    [request] = waiting(shop)
    shown = tk(shop.data, "session", "messages", session).out
    call = [
        "  ◌ read  .env  waits for permission",
        "    │ read: .env",
        f"    │ answer: turnkeeper permission allow {request['id']}, or permission deny {request['id']}",
    ]
    assert shown.splitlines()[-3:] == call
    assert "running" not in shown
    seq = api(shop.data, lambda opened: opened.store.journal.view(session)).seq
    assert tk(shop.data, "session", "messages", session, "--at", str(seq)).out == shown
    tk(shop.data, "permission", "allow", str(request["id"]))
    assert "waits for" not in tk(shop.data, "session", "messages", session).out


def test_allow_records_the_answer_and_runs_the_session_on(shop: Shop) -> None:
    session = left_waiting(shop)
    [request] = waiting(shop)
    done = tk(shop.data, "permission", "allow", str(request["id"])[:16], "--json")
    assert (done.code, done.json) == (
        0,
        {"id": request["id"], "sessionID": session, "answer": "once", "outcome": "answered"},
    )
    [output] = outputs(shop, session)
    assert "WIND=7" in output
    assert waiting(shop) == []
    assert tk(shop.data, "permission", "saved", "--json").json["items"] == []


def test_an_answer_that_is_only_recorded_is_taken_up_later(shop: Shop) -> None:
    session = left_waiting(shop)
    [request] = waiting(shop)
    recorded = tk(shop.data, "permission", "allow", str(request["id"]), "--record-only", "--json").json
    assert "outcome" not in recorded
    assert (waiting(shop), outputs(shop, session)) == ([], ["running"])
    tk(shop.data, "session", "recover")
    assert "WIND=7" in outputs(shop, session)[0]


def test_deny_with_a_message_tells_the_model(shop: Shop) -> None:
    session = left_waiting(shop)
    [request] = waiting(shop)
    done: Answer = tk(shop.data, "permission", "deny", str(request["id"]), "--message", "not that file")
    assert done.code == 0
    assert outputs(shop, session) == ["The user rejected this call. The user says: not that file"]


def test_always_is_saved_listed_and_revoked(shop: Shop) -> None:
    left_waiting(shop)
    [request] = waiting(shop)
    tk(shop.data, "permission", "allow", str(request["id"]), "--always")
    [saved] = tk(shop.data, "permission", "saved", "--json").json["items"]
    assert (saved["permission"], saved["pattern"], saved["directory"]) == ("read", "*", str(shop.project))
    assert saved["id"] in tk(shop.data, "permission", "saved").out
    assert tk(shop.data, "permission", "revoke", saved["id"], "--json").json == {"id": saved["id"]}
    assert tk(shop.data, "permission", "saved", "--json").json["items"] == []
    assert tk(shop.data, "permission", "revoke", saved["id"]).code == 1


def test_what_does_not_wait_cannot_be_answered(shop: Shop) -> None:
    left_waiting(shop)
    for words in (("permission", "allow", "per_nope"), ("question", "reject", "que_nope")):
        answered = tk(shop.data, *words)
        assert answered.code == 1
        assert "nope" in answered.err
        assert f"`turnkeeper {words[0]} list` lists what does" in answered.err


def asked(data: Path, *, restarts: bool = True) -> str:
    """A session whose model asks two questions, and whose process is gone."""

    async def work(opened: Turnkeeper) -> str:
        session = (await opened.create(title="Colours")).id
        turn = an_assistant(session, "msg_a", "msg_u")
        call = a_call(turn, "prt_c", running(), tool="question")
        request = a_question(call, "que_colours")
        both = request.questions * 2
        await opened.store.journal.append(
            session,
            e.TurnStarted(message=turn),
            e.PartRecorded(part=call),
            e.QuestionAsked(request=request.but(questions=both), restarts=restarts),
        )
        return session

    return api(data, work)


def test_questions_are_listed_and_answered_in_their_order(data: Path) -> None:
    session = asked(data)
    shown = tk(data, "question", "list").out
    assert "Which colour?" in shown
    assert "Red" in shown
    for words in (["Red"], ["Red", "only", "after", "backup"]):
        wrong = tk(data, "question", "answer", "que_c", *words, "--record-only")
        assert wrong.code == 2
        assert f"asks 2 question(s) and you gave {len(words)} answer(s)" in wrong.err
        assert "in quotes" in wrong.err
    given = tk(data, "question", "answer", "que_c", "red", "Something else", "--record-only", "--json").json
    assert given == {"id": "que_colours", "sessionID": session, "answer": "answered"}
    [recorded] = api(data, lambda opened: opened.store.journal.view(session)).asks
    assert recorded.reply == QuestionReply(answers=(("Red",), ("Something else",)))
    status = tk(data, "session", "status", session, "--json").json
    assert status["asks"] == []


def test_a_transcript_shows_questions_that_wait(data: Path) -> None:
    session = asked(data)
    assert tk(data, "session", "messages", session).out.splitlines()[1:] == [
        "  ◌ question  waits for an answer",
        "    │ Which colour?",
        "    │ Which colour?",
        "    │ answer: turnkeeper question answer que_colours ANSWER ANSWER, or question reject que_colours",
    ]


def test_what_a_call_asked_that_ended_with_its_process_is_not_listed(data: Path) -> None:
    session = asked(data, restarts=False)
    assert tk(data, "question", "list", "--json").json["items"] == []
    assert "waits for" not in tk(data, "session", "messages", session).out
    assert tk(data, "question", "answer", "que_colours", "Red", "Red", "--record-only").code == 1


def test_a_rejected_question_is_recorded_as_dismissed(data: Path) -> None:
    session = asked(data)
    assert tk(data, "session", "status", session, "--json").json["asks"] == ["que_colours"]
    assert tk(data, "question", "reject", "que_c", "--record-only").code == 0
    [recorded] = api(data, lambda opened: opened.store.journal.view(session)).asks
    assert recorded.reply == QuestionReply()


COLOURS = Question(
    question="Which?",
    header="Colour",
    options=(Option(label="Red", description=""), Option(label="Dark blue", description="")),
)


@pytest.mark.parametrize(
    ("typed", "multiple", "chosen"),
    [
        ("red", False, ("Red",)),
        ("red, dark blue", True, ("Red", "Dark blue")),
        ("red, pink", True, ("red, pink",)),
        ("", False, ()),
    ],
)
def test_an_answer_names_options_or_is_a_text(typed: str, multiple: bool, chosen: tuple[str, ...]) -> None:
    assert parse_answer(COLOURS.but(multiple=multiple), typed) == chosen


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("2\n", ("Dark blue",)),
        ("1, 2\n", ("Red", "Dark blue")),
        ("3\n", ("3",)),
        ("²\n", ("²",)),  # It stands on a key of French keyboards.
        ("pink\n", ("pink",)),
        ("\n", ()),
    ],
)
def test_a_choice_at_the_terminal_is_a_number_or_a_text(typed: str, chosen: tuple[str, ...]) -> None:
    assert parse_choice(COLOURS.but(multiple=True), typed) == chosen
    assert parse_choice(COLOURS, typed) == (chosen if len(chosen) < 2 else None)


def test_a_directory_without_requests_says_so(data: Path) -> None:
    assert "No permission request waits" in tk(data, "permission", "list").err


@pytest.mark.parametrize(
    ("permission", "pattern", "expected"),
    [
        ("bash", "make", 'To allow it, set "permission": {"bash": {"make": "allow"}} in turnkeeper.json;'),
        ("edit", "a.txt", 'To allow it, set "permission": {"edit": {"a.txt": "allow"}} in turnkeeper.json;'),
        ("edit", ".git/hooks/pre-commit", "A change of such a file is always asked about, whatever the rules say;"),
        ("edit", "sub/opencode.json", "A change of such a file is always asked about, whatever the rules say;"),
    ],
)
def test_a_setting_is_named_only_if_it_allows_the_call(permission: str, pattern: str, expected: str) -> None:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission=permission,
        patterns=(pattern,),
        metadata={},
        always=(),
        tool=AskedBy(message_id="msg_1", call_id="call_1"),
    )
    assert how_to_allow(request) == f"{expected} --auto allows everything."
