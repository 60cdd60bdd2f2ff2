"""The ledger: one row for each attempt, found without reading any log."""

from typing import Literal

from turnkeeper.app import Turnkeeper
from turnkeeper.model import event as e
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.store import keys
from turnkeeper.testing.builders import SOME_TOKENS, a_session


def usage(purpose: Literal["turn", "title"], cost: float, *, attempt: int = 1) -> e.UsageRecorded:
    return e.UsageRecorded(
        purpose=purpose,
        provider_id="acme",
        model_id="large",
        message_id="msg_1",
        attempt=attempt,
        tokens=SOME_TOKENS,
        cost=cost,
    )


def row(session_id: str, purpose: str, time: int, cost: float, *, attempt: int = 1) -> LedgerRow:
    return LedgerRow(
        session_id=session_id,
        time=time,
        purpose=purpose,
        provider_id="acme",
        model_id="large",
        message_id="msg_1",
        attempt=attempt,
        tokens=SOME_TOKENS,
        cost=cost,
    )


async def some(tk: Turnkeeper, session_id: str, *facts: e.Event) -> list[int]:
    """A session with these facts; when each of them was recorded."""
    await tk.store.journal.create(a_session(session_id), *facts)
    return [one.time for one in await tk.store.journal.read(session_id)][1:]


async def test_every_attempt_is_a_row_and_the_rows_sum_to_the_totals(tk: Turnkeeper) -> None:
    at = await some(tk, "ses_a", usage("turn", 0.25), usage("turn", 0.5, attempt=2), usage("title", 0.125))
    rows = [one async for one in tk.ledger("ses_a")]
    assert rows == [
        row("ses_a", "turn", at[0], 0.25),
        row("ses_a", "turn", at[1], 0.5, attempt=2),
        row("ses_a", "title", at[2], 0.125),
    ]
    session = await tk.get("ses_a")
    assert session.cost == sum(one.cost for one in rows)
    assert session.tokens.input == sum(one.tokens.input for one in rows)


async def test_the_ledger_of_all_sessions_is_theirs_together(tk: Turnkeeper) -> None:
    await some(tk, "ses_a", usage("turn", 0.25))
    await some(tk, "ses_b", usage("turn", 0.5), usage("turn", 0.75))
    assert [(one.session_id, one.cost) async for one in tk.ledger()] == [
        ("ses_a", 0.25),
        ("ses_b", 0.5),
        ("ses_b", 0.75),
    ]


async def test_a_removed_session_takes_its_rows_with_it(tk: Turnkeeper) -> None:
    await some(tk, "ses_a", usage("turn", 0.25))
    await some(tk, "ses_b", usage("turn", 0.5))
    await tk.remove("ses_a")
    assert [one.session_id async for one in tk.ledger()] == ["ses_b"]


async def test_doctor_finds_a_row_that_is_missing_and_writes_it_again(tk: Turnkeeper) -> None:
    await some(tk, "ses_a", usage("turn", 0.25))
    [before] = [one async for one in tk.ledger()]
    await tk.store.engine.put({keys.ledger("ses_a", 2): None})
    found = await tk.doctor(fix=True)
    assert [one.kind for one in found.problems] == ["missing document"]
    assert [one async for one in tk.ledger()] == [before]
