"""Admission: which events a prompt brings, and which model answers it."""

import pytest

from turnkeeper.core.admission import admission_events, discovered, model_of
from turnkeeper.core.limits import INBOX_MAX, NESTED_MAX
from turnkeeper.core.view import Admitted, OpenTurn, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.agent import Agent
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Rule
from turnkeeper.model.prompt import Prompt
from turnkeeper.model.refusal import Busy
from turnkeeper.model.session import SessionModel
from turnkeeper.model.status import BUSY
from turnkeeper.testing.builders import MODEL, a_session, a_user, an_assistant

USER = a_user("ses_one", "msg_1")
ADMITTED = e.PromptAdmitted(message=USER, parts=(), delivery="steer", digest="d")
CHOSEN = SessionModel(id="large", provider_id="acme", variant="default")
KNOWN = SessionView(seq=5, session=a_session(agent="build", model=CHOSEN))
TURN = OpenTurn(message=an_assistant("ses_one", "msg_9", "msg_8"), parts={})
PROMOTED = e.PromptPromoted(message_id="msg_1")
RULES = e.PermissionsSet(
    rules=(
        Rule(permission="bash", pattern="*", action="deny"),
        Rule(permission="read", pattern="*", action="allow"),
    )
)


@pytest.mark.parametrize(
    ("prompt", "view", "instructions", "rest"),
    [
        (Prompt(parts=()), KNOWN, [], []),
        (Prompt(parts=()), KNOWN.but(session=a_session(model=CHOSEN)), [], [e.AgentSelected(agent="build")]),
        (Prompt(parts=()), KNOWN.but(session=a_session(agent="build")), [], [e.ModelSelected(model=CHOSEN)]),
        (Prompt(parts=(), tools={"bash": False, "read": True}), KNOWN, [], [RULES]),
        (Prompt(parts=(), no_reply=True), KNOWN, [], [PROMOTED]),
        (Prompt(parts=(), no_reply=True), KNOWN.but(turn=TURN), [], []),
        (Prompt(parts=(), no_reply=True), KNOWN.but(status=BUSY), [], []),
        (Prompt(parts=()), KNOWN.but(instructions=("/b",)), ["/a", "/b"], [e.InstructionDiscovered(path="/a")]),
    ],
)
def test_a_prompt_brings_its_admission_and_what_it_changes(
    prompt: Prompt, view: SessionView, instructions: list[str], rest: list[e.Event]
) -> None:
    assert admission_events(ADMITTED, prompt, view, instructions) == [ADMITTED, *rest]


def test_a_full_inbox_takes_no_more_prompts() -> None:
    waiting = Admitted(seq=1, message=USER, parts=(), delivery="queue")
    with pytest.raises(Busy, match="waiting already"):
        admission_events(ADMITTED, Prompt(parts=()), KNOWN.but(inbox=(waiting,) * INBOX_MAX), [])


def test_a_session_follows_only_so_many_instruction_files() -> None:
    known = [f"/{number}" for number in range(NESTED_MAX - 1)]
    assert discovered(["/a", "/b"], known) == [e.InstructionDiscovered(path="/a")]


SMALL = ModelChoice(provider_id="acme", model_id="small")
PLAIN = Agent(name="build")
LOW = Agent(name="low", model=SMALL, variant="low")


@pytest.mark.parametrize(
    ("prompt", "agent", "last", "expected"),
    [
        (Prompt(parts=(), model=SMALL, variant="high"), PLAIN.but(model=MODEL), CHOSEN, SMALL.but(variant="high")),
        (Prompt(parts=()), LOW, CHOSEN, SMALL.but(variant="low")),
        (Prompt(parts=(), variant="high"), LOW, CHOSEN, SMALL.but(variant="high")),
        (Prompt(parts=(), model=SMALL), LOW, CHOSEN, SMALL.but(variant="low")),
        (Prompt(parts=(), model=MODEL), LOW, CHOSEN, MODEL),
        (Prompt(parts=()), PLAIN.but(variant="low"), CHOSEN, MODEL),
        (Prompt(parts=()), PLAIN, CHOSEN, MODEL),
        (Prompt(parts=()), PLAIN, CHOSEN.but(variant="low"), MODEL.but(variant="low")),
        (Prompt(parts=(), variant="high"), PLAIN, None, SMALL.but(variant="high")),
    ],
)
def test_the_model_is_the_prompts_the_agents_the_sessions_or_the_fallback(
    prompt: Prompt, agent: Agent, last: SessionModel | None, expected: ModelChoice
) -> None:
    assert model_of(prompt, agent, last, lambda: SMALL) == expected
