"""The prefix law is measured: what can be reused, and if not all of it, why."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.limits import CACHE_KEPT_S
from turnkeeper.core.persistent_list import PersistentList
from turnkeeper.core.prefix import (
    CHOICE,
    HISTORY,
    MODEL,
    PASSED,
    SYSTEM,
    TOOLS,
    Meter,
    is_cold,
    measure,
    reuse_percent,
)
from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.request import AssistantTurn, ModelRequest, SystemTurn, Text, ToolDefinition, UserTurn
from turnkeeper.model.value import encode
from turnkeeper.providers.catalog import OFFLINE

EPOCH = Epoch(number=1, reason="start", provider_id="offline", model_id="tk-1", baseline=(), checkpoint={})
HELLO = UserTurn(content=(Text(text="hello"),))
YES = AssistantTurn(content=(Text(text="yes"),))
REMINDER = SystemTurn(text="Answer without tools.")
TOOL = ToolDefinition(name="read", description="Reads.", schema={})
FIRST = ModelRequest(model=OFFLINE, system=("Be kind.", "It is Monday."), messages=(HELLO,), tools=(TOOL,))
MEASURED = measure(FIRST, None, EPOCH, now=1000)
NEXT = FIRST.but(messages=(HELLO, YES, HELLO))


def pieces(request: ModelRequest) -> list[bytes]:
    """A request in the order a provider's cache reads it: tools, system, then message by message."""
    head = encode([f"{request.model.provider_id}/{request.model.api_id}", request.tools])
    return [head, *map(encode, request.system), *map(encode, request.messages)]


def after(request: ModelRequest, before: Prefix = MEASURED, epoch: Epoch = EPOCH, **given: Any) -> Prefix:
    return measure(request, before, epoch, **{"now": 2000, **given})


def told(prefix: Prefix) -> tuple[int | None, str | None, str | None]:
    return reuse_percent(prefix), prefix.cause, prefix.note


def test_the_first_request_reuses_nothing_and_says_why() -> None:
    assert told(MEASURED) == (None, "epoch 1 began: start", None)
    assert (MEASURED.bytes, MEASURED.pieces) == (sum(map(len, pieces(FIRST))), 4)


def test_a_request_that_extends_the_one_before_reuses_all_of_it() -> None:
    measured = after(NEXT)
    assert told(measured) == (100, None, None)
    assert (measured.reused, measured.before) == (MEASURED.bytes, MEASURED.bytes)


def test_the_same_request_again_reuses_all_of_it() -> None:
    assert told(after(FIRST)) == (100, None, None)


def test_a_changed_history_still_reuses_tools_and_baseline() -> None:
    measured = after(FIRST.but(messages=(UserTurn(content=(Text(text="other"),)),)))
    assert (measured.cause, measured.reused) == (HISTORY, sum(map(len, pieces(FIRST)[:3])))
    shorter = measure(FIRST, after(NEXT), EPOCH, now=3000)
    assert shorter.cause == HISTORY


def test_a_rewritten_baseline_still_reuses_the_tools() -> None:
    measured = after(NEXT.but(system=("Be kind.", "It is Tuesday.")))
    assert (measured.cause, measured.reused) == (SYSTEM, len(pieces(FIRST)[0]))


def test_another_tool_list_or_model_reuses_nothing() -> None:
    assert told(after(NEXT.but(tools=()))) == (0, TOOLS, None)
    assert told(after(NEXT.but(model=OFFLINE.but(api_id="tk-2")))) == (0, MODEL, None)


def test_a_new_epoch_is_the_cause_unless_nothing_was_lost() -> None:
    begun = EPOCH.but(number=2, reason="compaction")
    assert after(NEXT.but(system=("Other.",)), epoch=begun).cause == "epoch 2 began: compaction"
    assert told(after(NEXT, epoch=begun)) == (100, None, None)


def test_words_for_one_request_cost_just_themselves() -> None:
    reminded = after(NEXT.but(messages=(*NEXT.messages, REMINDER)), passing=1)
    assert told(reminded) == (100, None, None), "they stand behind all that is reused"
    later = measure(NEXT.but(messages=(*NEXT.messages, YES, HELLO)), reminded, EPOCH, now=3000)
    assert (later.cause, later.reused) == (PASSED, after(NEXT).bytes)
    assert later.before - later.reused == len(pieces(ModelRequest(model=OFFLINE, system=(), messages=(REMINDER,)))[1])


def test_what_the_provider_may_have_forgotten_is_a_note_and_no_break() -> None:
    late = 1000 + CACHE_KEPT_S * 1000
    assert told(after(NEXT, now=late)) == (100, None, None)
    forgotten = "more than 5 minutes have passed: the provider may have let go of its cache"
    assert told(after(NEXT, now=late + 1)) == (100, None, forgotten)
    assert told(after(NEXT.but(options={"cacheTtl": 3600}), now=late + 1)) == (100, None, None)
    assert told(after(NEXT.but(tool_choice="none"))) == (100, None, CHOICE)


def test_a_percentage_is_rounded_down() -> None:
    almost = Prefix(pieces=1, bytes=1000, hash="", reused=999, before=1000)
    assert (reuse_percent(almost), reuse_percent(almost, almost), reuse_percent()) == (99, 99, None)


def test_pieces_that_are_divided_otherwise_are_not_the_same() -> None:
    one, two = FIRST.but(system=("ab", "c")), FIRST.but(system=("a", "bc"))
    assert measure(two, measure(one, None, EPOCH, now=0), EPOCH, now=0).cause == SYSTEM


@given(
    requests=st.lists(st.tuples(st.lists(st.sampled_from([b"a", b"ab", b""]), max_size=6), st.sets(st.integers(1, 7))))
)
def test_a_meter_marks_as_if_it_had_seen_nothing_before(requests: list[tuple[list[bytes], set[int]]]) -> None:
    meter = Meter()
    for parts, places in requests:
        front, said = tuple(parts[:2]), PersistentList(parts[2:])
        assert meter.marks(front, said, places) == Meter().marks(front, said, places)


def test_a_meter_hashes_only_what_is_new() -> None:
    class Counted(bytes):
        seen = 0

        def __len__(self) -> int:
            Counted.seen += 1
            return super().__len__()

    meter, front, said = Meter(), (Counted(b"a"),), PersistentList[bytes]([Counted(b"b")])
    meter.marks(front, said, {1, 2})
    before = Counted.seen
    meter.marks(front, said, {1, 2})
    assert Counted.seen == before


PRUNED = "the provider's cache is cold, so it reads everything anew in any case"
CHANGED = FIRST.but(messages=(UserTurn(content=(Text(text="other"),)), YES))


def test_history_that_an_event_says_was_rewritten_is_a_declared_place() -> None:
    declared = after(CHANGED, rewritten=PRUNED)
    assert (declared.cause, declared.reused) == (PRUNED, sum(map(len, pieces(FIRST)[:3])))
    assert after(CHANGED).cause == HISTORY, "and without an event it is a break"


def test_what_is_declared_excuses_only_the_history() -> None:
    assert after(CHANGED.but(tools=()), rewritten=PRUNED).cause == TOOLS
    assert after(CHANGED.but(system=("Other.",)), rewritten=PRUNED).cause == SYSTEM
    assert after(CHANGED.but(model=OFFLINE.but(api_id="tk-2")), rewritten=PRUNED).cause == MODEL
    begun = EPOCH.but(number=2, reason="compaction")
    assert after(CHANGED, epoch=begun, rewritten=PRUNED).cause == "epoch 2 began: compaction"


def test_a_declared_change_that_changed_nothing_sent_is_no_cause() -> None:
    assert told(after(NEXT, rewritten=PRUNED)) == (100, None, None)


def test_a_cache_is_cold_once_the_provider_may_have_let_go_of_it() -> None:
    kept = CACHE_KEPT_S * 1000
    assert not is_cold(None, {}, 10**12), "there is none"
    assert [is_cold(MEASURED, {}, 1000 + passed) for passed in (0, kept, kept + 1)] == [False, False, True]
    hour = {"cacheTtl": 3600}
    waits = (kept + 1, 3_600_000, 3_600_001)
    assert [is_cold(MEASURED, hour, 1000 + passed) for passed in waits] == [False, False, True]
    assert is_cold(MEASURED, {"cacheTtl": "1h"}, 1001 + kept), "what cannot be read is not believed"
