"""``turnkeeper stats``: what the ledger adds up to."""

import asyncio
from decimal import Decimal
from pathlib import Path

from cli_store import api, tk

from turnkeeper.app import Turnkeeper
from turnkeeper.cli.stats import short
from turnkeeper.mint import Mint
from turnkeeper.model.event import UsageRecorded
from turnkeeper.model.session import CacheTokens, Tokens

TOKENS = Tokens(input=1000, output=200, reasoning=30, cache=CacheTokens(read=4000, write=5))
COSTS = {"acme/large": [0.1, 0.2, 0.7], "acme/small": [0.0001]}


def usage(name: str, cost: float) -> UsageRecorded:
    provider_id, _, model_id = name.partition("/")
    return UsageRecorded(purpose="turn", provider_id=provider_id, model_id=model_id, tokens=TOKENS, cost=cost)


async def spend(opened: Turnkeeper) -> list[str]:
    ids = []
    for title, costs in (("Wind", COSTS), ("Tide", {"acme/large": [0.3]})):
        session = await opened.create(title=title)
        rows = [usage(name, cost) for name, each in costs.items() for cost in each]
        await opened.store.journal.append(session.id, *rows)
        ids.append(session.id)
    return ids


def test_without_a_ledger_nothing_was_spent(data: Path) -> None:
    said = tk(data, "stats")
    assert (said.code, said.out, said.err) == (0, "", "There are no requests yet.\n")
    assert tk(data, "stats", "--json").json["total"]["cost"] == 0


def test_the_totals_are_the_sum_of_the_rows(data: Path) -> None:
    wind, tide = api(data, spend)
    found = tk(data, "stats", "--json").json
    assert found["total"] == {
        "attempts": 5,
        "cost": 1.3001,
        "tokens": {"input": 5000, "output": 1000, "reasoning": 150, "cache": {"read": 20_000, "write": 25}},
    }
    assert [(one["model"], one["attempts"], one["cost"]) for one in found["models"]] == [
        ("acme/large", 4, 1.3),
        ("acme/small", 1, 0.0001),
    ]
    assert [(one["sessionID"], one["title"], one["cost"]) for one in found["sessions"]] == [
        (wind, "Wind", 1.0001),
        (tide, "Tide", 0.3),
    ]
    for kind in ("days", "models", "sessions"):
        assert sum(Decimal(str(one["cost"])) for one in found[kind]) == Decimal("1.3001")
    shown = [tk(data, "session", "show", one, "--json").json["cost"] for one in (wind, tide)]
    assert round(sum(shown), 10) == 1.3001


def test_a_fork_counts_nothing_twice(data: Path) -> None:
    wind, _ = api(data, spend)
    assert tk(data, "session", "fork", wind).code == 0
    assert tk(data, "stats", "--json").json["total"]["cost"] == 1.3001


def test_each_day_model_and_session_has_its_bar(data: Path) -> None:
    wind, tide = api(data, spend)
    page = tk(data, "stats").out
    assert page.startswith("$1.30  5 attempts, 2 sessions  5.0K input, 1.0K output, 150 reasoning, 20.0K cache read")
    lines = page.splitlines()
    assert f"acme/large    $1.30    20.9K  {'█' * 24}" in lines
    assert "acme/small  $0.0001     5.2K  ▏" in lines
    assert f"{wind}    $1.00    20.9K  {'█' * 12}  Wind" in lines
    assert any(line.startswith(f"{tide}  $0.3000") and line.endswith("  Tide") for line in lines)


def test_one_kind_can_be_asked_for(data: Path) -> None:
    api(data, spend)
    models, sessions = tk(data, "stats", "--models").out, tk(data, "stats", "--sessions").out
    assert ("MODEL" in models, "SESSION" in models, "DAY" in models) == (True, False, False)
    assert ("MODEL" in sessions, "SESSION" in sessions, "DAY" in sessions) == (False, True, False)


def test_days_leave_out_what_was_spent_before(data: Path) -> None:

    import turnkeeper

    async def long_ago() -> None:
        mint = Mint.fixed(1_700_000_000_000, step_ms=1)
        async with turnkeeper.open(f"sqlite:{data / 'turnkeeper.db'}", directory=data, mint=mint) as opened:
            session = await opened.create(title="Old")
            await opened.store.journal.append(session.id, usage("acme/old", 5))

    asyncio.run(long_ago())
    api(data, spend)
    everything, today = tk(data, "stats", "--json").json, tk(data, "stats", "--days", "1", "--json").json
    assert [len(one["days"]) for one in (everything, today)] == [2, 1]
    assert [one["total"]["cost"] for one in (everything, today)] == [6.3001, 1.3001]
    assert tk(data, "stats", "--days", "0", "--json").json == today
    assert tk(data, "stats", "--days", "-1").code in (1, 2)


def test_long_counts_are_shortened_to_thousands_and_millions() -> None:
    assert [short(count) for count in (7, 999, 1000, 12_345, 999_949, 1_000_000, 12_345_678)] == [
        "7",
        "999",
        "1.0K",
        "12.3K",
        "999.9K",
        "1.0M",
        "12.3M",
    ]
