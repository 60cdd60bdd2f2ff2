"""The command that shows what a model was told."""

from pathlib import Path

from cli_store import Family, api, tk

import turnkeeper.app
from turnkeeper.context.component import ContextComponent, Loaded, Sample, Sampling


async def talk(opened: turnkeeper.app.Turnkeeper) -> str:
    """Two turns of the offline model, between which a fact changes."""
    values = iter(["rain", "sun"])

    async def load(_: Sampling) -> Sample:
        value = next(values)
        return Loaded(baseline=f"Weather: {value}", update=f"The weather is now {value}.")

    session = await opened.create(title="Weather")
    with opened.context(ContextComponent("acme/weather", load)):
        for text in ("hello", "and now?"):
            await opened.prompt(session.id, text)
            await opened.wait(session.id)
    return session.id


def test_what_the_model_knows_is_shown_with_the_reason_for_each_miss(data: Path) -> None:
    session = api(data, talk)
    shown = tk(data, "session", "context", session)
    assert (shown.code, shown.err) == (0, "")
    facts, components, news, turns = (block.splitlines() for block in shown.out.rstrip("\n").split("\n\n"))
    assert facts[0].split() == ["Epoch", "1", "start"]
    assert ["acme/weather", "update", "23", "B"] in [line.split()[:4] for line in components]
    assert ["core/date", "baseline"] in [line.split()[:2] for line in components]
    assert [line.split()[-1] for line in news] == ["OF", "acme/weather"]
    assert turns[0].split() == ["TURN", "TIME", "EPOCH", "SIZE", "REUSED", "WHY"]
    assert [line.split("KB", 1)[1].split(maxsplit=1) for line in turns[1:]] == [
        ["first", "epoch 1 began: start"],
        ["100", "%"],
    ]


def test_programs_are_told_the_same(data: Path) -> None:
    session = api(data, talk)
    told = tk(data, "session", "context", session, "--json").json
    assert [(one["number"], one["reason"]) for one in told["epochs"]] == [(1, "start")]
    assert [one["updates"] for one in told["messages"]] == [
        [{"key": "acme/weather", "text": "The weather is now sun."}]
    ]
    assert [one["percent"] for one in told["requests"]] == [None, 100]
    weather = next(one for one in told["components"] if one["key"] == "acme/weather")
    assert (weather["state"], weather["size"], len(weather["hash"])) == ("told", 23, 32)


def test_a_session_in_which_no_model_was_asked_says_so(data: Path, family: Family) -> None:
    shown = tk(data, "session", "context", family.child.id)
    assert (shown.out, shown.err) == ("", "No request was sent to a model yet.\n")


def test_json_has_the_empty_fields_of_a_session_without_requests(data: Path, family: Family) -> None:
    assert tk(data, "session", "context", family.child.id, "--json").json == {
        "sessionID": family.child.id,
        "epochs": [],
        "components": [],
        "messages": [],
        "requests": [],
        "instructions": [],
    }
