"""The loop's table, row by row: what a session does next, from what it shows."""

from typing import Any

import pytest

from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.limits import EMPTY_TURNS_MAX, PAUSED_TURNS_MAX, STEERS_MAX
from turnkeeper.core.next_action import (
    DISABLED,
    PAUSED,
    REFUSED,
    STRUCTURED_TOOL,
    Abandon,
    Action,
    Compact,
    Promote,
    Rest,
    RunTurn,
    is_continuable,
    next_action,
    promotion,
)
from turnkeeper.core.view import Admitted, OpenTurn, Rewritten, SessionView
from turnkeeper.model.event import Delivery, PromptPromoted
from turnkeeper.model.failure import AbortedFailure, ApiData, ApiFailure, Failure, MessageData
from turnkeeper.model.message import AssistantMessage, JsonSchemaFormat, UserMessage
from turnkeeper.model.parts import CompactionPart, FilePart, Part, ReasoningPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import SettledTime, ToolError, ToolProvider
from turnkeeper.testing.builders import (
    NOW,
    a_call,
    a_history,
    a_session,
    a_text,
    a_user,
    an_assistant,
    completed,
    running,
)

ABORTED = AbortedFailure(data=MessageData(message="stopped"))
FAILED = ApiFailure(data=ApiData(message="no", is_retryable=False))
SCHEMA = JsonSchemaFormat(schema={"type": "object"}, retry_count=1)


class Told:
    """A history that grows entry by entry."""

    def __init__(self) -> None:
        self.entries: list[HistoryItem] = []

    def user(self, **changes: object) -> "Told":
        message = a_user("ses_one", f"msg_{len(self.entries)}", seq=len(self.entries) + 1).but(**changes)
        return self._add(message, a_text(message, "prt_u", "go"))

    def mark(self) -> "Told":
        message = a_user("ses_one", f"msg_{len(self.entries)}", seq=len(self.entries) + 1)
        return self._add(message, CompactionPart(id="prt_m", session_id="ses_one", message_id=message.id, auto=True))

    def turn(
        self, *parts: Part, finish: str | None = "stop", error: Failure | None = None, **changes: object
    ) -> "Told":
        number = len(self.entries)
        message = an_assistant("ses_one", f"msg_{number}", "msg_0", seq=number + 1, finish=finish, error=error)
        return self._add(message.but(**changes), *parts)

    def _add(self, message: UserMessage | AssistantMessage, *parts: Part) -> "Told":
        self.entries.append(HistoryItem(message=message, parts=parts))
        return self

    @property
    def history(self) -> History:
        return a_history(tuple(self.entries), seq=len(self.entries))


TURN = an_assistant("ses_one", "msg_1", "msg_0")
WORDS = a_text(TURN, "prt_1", "Yes.")
THOUGHT = ReasoningPart(id="prt_1", session_id="ses_one", message_id="msg_1", text="Hm.", time=Span(start=NOW))
DONE = a_call(TURN, "prt_2", completed())
HOSTED = a_call(TURN, "prt_2", completed(), provider=ToolProvider(executed=True))


def failed(text: str = "no", tool: str = "bash", **metadata: Any) -> ToolPart:
    state = ToolError(input={}, error=text, metadata=metadata or None, time=SettledTime(start=NOW, end=NOW))
    return a_call(TURN, "prt_2", state, tool=tool)


def structured(**metadata: object) -> ToolPart:
    return a_call(TURN, "prt_2", completed().but(metadata=metadata), tool=STRUCTURED_TOOL)


def view(*waiting: tuple[str, Delivery]) -> SessionView:
    inbox = tuple(
        Admitted(seq=number, message=a_user("ses_one", name), parts=(), delivery=delivery)
        for number, (name, delivery) in enumerate(waiting)
    )
    return SessionView(session=a_session(), seq=9, inbox=inbox)


def act(told: Told, *waiting: tuple[str, Delivery], resume: bool = False) -> Action:
    return next_action(view(*waiting), told.history, resume=resume)


def runs(action: Action) -> bool:
    return isinstance(action, RunTurn)


ROWS: list[tuple[str, Told, bool]] = [
    ("nobody has spoken", Told(), False),
    ("only the model has spoken", Told().turn(WORDS), False),
    ("an unanswered prompt", Told().user(), True),
    ("two unanswered prompts", Told().user().user(), True),
    ("an answer", Told().user().turn(WORDS), False),
    ("an answer, and a prompt after it", Told().user().turn(WORDS).user(), True),
    ("a call that came back", Told().user().turn(DONE, finish="tool-calls"), True),
    ("a call that came back, though the provider says stop", Told().user().turn(WORDS, DONE), True),
    ("a call that failed", Told().user().turn(failed()), True),
    ("a call that was denied by a rule", Told().user().turn(failed("denied")), True),
    ("a call that was interrupted", Told().user().turn(failed(interrupted=True)), False),
    ("a call marked as not interrupted", Told().user().turn(failed(interrupted=False)), True),
    ("an interrupted call beside one that came back", Told().user().turn(failed(interrupted=True), DONE), True),
    ("a call when tools were off", Told().user().turn(failed("no", "bash", **{DISABLED: True})), False),
    ("a call refused by the user", Told().user().turn(failed(rejected=True)), False),
    ("a refused call beside one that came back", Told().user().turn(DONE, failed(rejected=True)), False),
    ("a call refused with advice", Told().user().turn(failed("use the other")), True),
    ("a call run by the provider", Told().user().turn(HOSTED, WORDS), False),
    ("a failed turn", Told().user().turn(WORDS, finish=None, error=FAILED), False),
    ("a failed turn with results", Told().user().turn(DONE, finish=None, error=FAILED), False),
    ("a stopped turn", Told().user().turn(finish=None, error=ABORTED), False),
    ("a stopped turn and a prompt after it", Told().user().turn(finish=None, error=ABORTED).user(), True),
    ("a turn that broke off after its calls", Told().user().turn(DONE, finish="error"), True),
    ("a turn without a word", Told().user().turn(), True),
    ("a turn of blanks", Told().user().turn(a_text(TURN, "prt_1", " \n")), True),
    ("a turn that only thought", Told().user().turn(THOUGHT), False),
    ("a turn cut at its length", Told().user().turn(finish="length"), False),
    ("an unknown finish with words", Told().user().turn(WORDS, finish="unknown"), False),
    ("an unknown finish without", Told().user().turn(finish="unknown"), True),
    ("a summary", Told().user().turn(WORDS, summary=True), False),
    ("a structured answer", Told().user(format=SCHEMA).turn(structured(structured=True), structured={"a": 1}), False),
    ("words for a structured answer", Told().user(format=SCHEMA).turn(WORDS), True),
    ("a wrong structured answer", Told().user(format=SCHEMA).turn(failed(tool=STRUCTURED_TOOL)), True),
]


@pytest.mark.parametrize(("told", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_the_model_is_asked_when_it_owes_an_answer(told: Told, expected: bool) -> None:
    assert runs(act(told)) is expected


def test_an_open_turn_that_nobody_runs_is_abandoned_before_all_else() -> None:
    opened = view(("msg_9", "steer")).but(turn=OpenTurn(message=TURN, parts={}))
    assert next_action(opened, Told().user().history) == Abandon()


def test_steers_are_promoted_in_order_before_anything_is_asked_and_only_so_many_at_once() -> None:
    waiting: list[tuple[str, Delivery]] = [(f"msg_s{number}", "steer") for number in range(STEERS_MAX + 1)]
    assert act(Told().user(), ("msg_q", "queue"), *waiting) == Promote(
        message_ids=tuple(name for name, _ in waiting[:STEERS_MAX])
    )


def test_a_promotion_leaves_out_prompts_that_wait_no_longer_and_all_of_them_while_a_turn_is_open() -> None:
    waiting, wanted = view(("msg_a", "steer"), ("msg_b", "steer")), Promote(message_ids=("msg_b", "msg_gone", "msg_a"))
    promoted = [PromptPromoted(message_id=message_id) for message_id in ("msg_b", "msg_a")]
    assert promotion(wanted, waiting) == promoted
    turn = OpenTurn(message=an_assistant("ses_one", "msg_t", "msg_0"), parts={})
    assert promotion(wanted, waiting.but(turn=turn)) == []


def test_the_first_queued_prompt_is_promoted_when_the_session_would_rest() -> None:
    waiting: list[tuple[str, Delivery]] = [("msg_q1", "queue"), ("msg_q2", "queue")]
    assert runs(act(Told().user(), *waiting))
    assert act(Told().user().turn(WORDS), *waiting) == Promote(message_ids=("msg_q1",))
    assert act(Told(), *waiting) == Promote(message_ids=("msg_q1",))
    assert act(Told().user().turn(error=FAILED), *waiting) == Promote(message_ids=("msg_q1",))


def test_after_a_refusal_queued_prompts_wait_until_the_user_speaks() -> None:
    refused = Told().user().turn(failed(rejected=True))
    assert act(refused, ("msg_q", "queue")) == Rest(reason=REFUSED)
    assert act(refused, ("msg_s", "steer"), ("msg_q", "queue")) == Promote(message_ids=("msg_s",))


def test_a_prompt_that_is_queued_after_a_refusal_is_the_next_one_and_releases_those_before_it() -> None:
    refused = Told().user().turn(failed(rejected=True)).history
    waiting = view(("msg_before", "queue"), ("msg_after", "queue"))
    before, after = (one.seq for one in waiting.inbox)
    assert next_action(waiting.but(turn_ended=after), refused) == Rest(reason=REFUSED)
    assert next_action(waiting.but(turn_ended=before), refused) == Promote(message_ids=("msg_before",))


@pytest.mark.parametrize(
    "told",
    [
        Told().user().turn(WORDS, finish=None, error=ABORTED),
        Told().user().turn(finish=None, error=FAILED),
        Told().user().turn(failed(rejected=True)),
    ],
    ids=["stopped", "failed", "refused"],
)
def test_resuming_asks_once_more_where_the_last_turn_came_to_nothing(told: Told) -> None:
    assert not runs(act(told))
    assert runs(act(told, resume=True))


def test_resuming_what_is_answered_asks_nothing() -> None:
    assert act(Told().user().turn(WORDS), resume=True) == Rest(reason="answered")


def test_turns_without_a_word_are_asked_for_again_so_often_and_no_more() -> None:
    told = Told().user()
    for _ in range(EMPTY_TURNS_MAX + 1):
        assert runs(act(told))
        told.turn()
    assert act(told) == Rest(reason="the model said nothing")


def test_a_word_between_begins_the_count_of_empty_turns_anew() -> None:
    told = Told().user()
    for _ in range(EMPTY_TURNS_MAX):
        told.turn()
    told.turn(DONE).turn()
    assert runs(act(told))


def test_a_provider_that_pauses_is_asked_to_go_on_so_often_and_no_more() -> None:
    told = Told().user()
    for _ in range(PAUSED_TURNS_MAX + 1):
        assert runs(act(told))
        told.turn(WORDS, finish=PAUSED)
    assert act(told) == Rest(reason="answered")


def test_a_turn_that_made_a_file_is_not_empty() -> None:
    file = FilePart(
        id="prt_f", session_id="ses_one", message_id="msg_1", mime="image/png", url="data:image/png;base64,AA"
    )
    assert act(Told().user().turn(file)) == Rest(reason="answered")


def test_steps_count_the_turns_since_the_user_spoke() -> None:
    told = Told().user().turn(DONE).turn(DONE)
    action = act(told)
    assert isinstance(action, RunTurn)
    assert (action.step, action.user) == (3, told.entries[0])
    action = act(told.user())
    assert isinstance(action, RunTurn)
    assert (action.step, action.user) == (1, told.entries[3])


def test_tries_at_a_structured_answer_are_counted_down_and_other_calls_are_none() -> None:
    told = Told().user(format=SCHEMA)
    counts = []
    for parts in ((DONE,), (WORDS,), (failed(tool=STRUCTURED_TOOL),)):
        action = act(told)
        assert isinstance(action, RunTurn)
        counts.append((action.tries, action.tries_left))
        told.turn(*parts)
    assert counts == [(0, 1), (0, 1), (1, 0)]


def test_what_is_still_under_way_is_owed_to_nobody() -> None:
    assert not is_continuable(a_call(TURN, "prt_2"))
    assert not is_continuable(a_call(TURN, "prt_2", running()))
    assert not is_continuable(WORDS)


def compacts(action: Action) -> bool:
    return isinstance(action, Compact)


def test_a_compaction_that_nobody_has_begun_comes_before_everything_but_an_open_turn() -> None:
    told = Told().user().turn(WORDS).mark()
    action = act(told, ("msg_s", "steer"), ("msg_q", "queue"))
    assert isinstance(action, Compact)
    assert action.marker == told.entries[-1]
    opened = view().but(turn=OpenTurn(message=TURN, parts={}))
    assert next_action(opened, told.history) == Abandon()


@pytest.mark.parametrize(
    ("told", "resume", "expected"),
    [
        (Told().mark(), False, True),
        (Told().user().mark(), False, True),
        (Told().user().turn(WORDS).mark().turn(WORDS, summary=True), False, False),
        (Told().user().turn(WORDS).mark().turn(WORDS, summary=True), True, False),
        # One that failed is done again only if the user asks for it.
        (Told().user().turn(WORDS).mark().turn(summary=True, finish=None, error=FAILED), False, False),
        (Told().user().turn(WORDS).mark().turn(summary=True, finish=None, error=FAILED), True, True),
        (Told().user().turn(WORDS).mark().turn(summary=True, finish=None, error=ABORTED), True, True),
        # A prompt behind it is the newer thing.
        (Told().user().turn(WORDS).mark().user(), False, False),
        (Told().user().turn(WORDS).mark().turn(summary=True, finish=None, error=FAILED).user(), True, False),
    ],
)
def test_a_compaction_is_carried_out_once(told: Told, resume: bool, expected: bool) -> None:
    assert compacts(act(told, resume=resume)) is expected


def test_after_a_compaction_the_session_rests_unless_something_follows_it() -> None:
    done = Told().user().turn(WORDS).mark().turn(WORDS, summary=True)
    assert act(done) == Rest(reason="answered")
    assert act(done, ("msg_q", "queue")) == Promote(message_ids=("msg_q",))
    assert runs(act(done.user())), "the prompt that is asked again, or the word to go on"


def test_after_a_compaction_that_failed_the_session_rests_and_goes_on_with_the_next_prompt() -> None:
    broken = Told().user().turn(WORDS).mark().turn(summary=True, finish=None, error=FAILED)
    assert act(broken) == Rest(reason="the last turn failed: ApiFailure")
    assert act(broken, ("msg_s", "steer")) == Promote(message_ids=("msg_s",))
    assert runs(act(broken.user()))


REMEDY = Rewritten(seq=3, reason="the image is left out", is_remedy=True)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (REMEDY, True),
        (None, False),
        (REMEDY.but(is_remedy=False), False),
        # What was taken away before the turn began did not make it work.
        (REMEDY.but(seq=2), False),
        (REMEDY.but(seq=1), False),
    ],
    ids=["a remedy", "nothing", "a pruning", "at its beginning", "before it"],
)
def test_a_failed_turn_is_tried_again_once_its_cause_was_taken_away(change: Rewritten | None, expected: bool) -> None:
    told = Told().user().turn(finish=None, error=FAILED)
    assert runs(next_action(view().but(rewritten=change), told.history)) is expected


def test_a_remedy_asks_nothing_of_who_has_answered_or_said_no() -> None:
    remedied = view().but(rewritten=REMEDY)
    assert next_action(remedied, Told().user().turn(WORDS).history) == Rest(reason="answered")
    assert next_action(remedied, Told().history) == Rest(reason="nobody has spoken")


def test_a_second_failure_after_a_remedy_is_the_end() -> None:
    told = Told().user().turn(finish=None, error=FAILED).turn(finish=None, error=FAILED)
    assert not runs(next_action(view().but(rewritten=REMEDY), told.history))
