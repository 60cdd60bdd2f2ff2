"""The interface without ``async`` has every method of the other, and they do the same."""

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import turnkeeper
from turnkeeper import BlockingTurnkeeper, Invalid, NotFound, Scripted, Settings, TurnFailed, Turnkeeper

ROOT = Path(__file__).resolve().parents[2]


def test_a_script_asks_streams_and_reads(place: Path, settings: Settings) -> None:
    model = Scripted().says("West.").then().calls("StructuredOutput", value=4).then().says("The wind is west.")
    with turnkeeper.open_sync("memory:", directory=place, provider=model, settings=settings) as tk:
        answer = tk.ask("Wind?")
        assert answer.text == "West."
        assert tk.ask("How strong?", session=answer.session_id, output_type=int).output == 4
        assert "".join(stream := tk.stream("Again?")) == "The wind is west." == stream.answer.text
        assert [one.info.id for one in tk.iter_messages(answer.session_id)] == [
            one.info.id for one in reversed(tk.messages(answer.session_id).items)
        ]
        assert b"".join(tk.export(answer.session_id)).startswith(b"{")
        assert tk.state(answer.session_id).session == tk.get(answer.session_id)


def test_a_script_asks_one_question(place: Path, settings: Settings) -> None:
    def tide(place: str) -> str:
        """When the tide is high."""
        return f"6:12 at {place}"

    model = Scripted().calls("tide", place="the bay").then().says("At 6:12.")
    asked = turnkeeper.ask_sync(
        "Tide?", store="memory:", directory=place, settings=settings, provider=model, tools=[tide]
    )
    assert asked.text == "At 6:12."
    failing = Scripted().fails(400, message="no such thing")
    with pytest.raises(TurnFailed):
        turnkeeper.ask_sync("Tide?", store="memory:", directory=place, settings=settings, provider=failing)


def test_leaving_the_block_of_a_stream_stops_the_turn(place: Path, settings: Settings) -> None:
    model = Scripted().says("The ").hangs().then().says("is west.")
    with turnkeeper.open_sync("memory:", directory=place, provider=model, settings=settings) as tk:
        with tk.stream("Wind?") as answer:
            assert next(answer) == "The "
        assert tk.ask("Go on.", session=answer.session_id).text == "is west."


def test_a_script_hears_of_changes(place: Path, settings: Settings) -> None:
    with (
        turnkeeper.open_sync("memory:", directory=place, settings=settings) as tk,
        tk.subscribe() as notifications,
    ):
        session = tk.create(title="Wind")
        heard = next(notifications)
        assert isinstance(heard, turnkeeper.SessionAdded)
        assert heard.session == session
        tk.rename(session.id, "Tide")
        notifications.close()
        assert [type(one) for one in notifications] == [turnkeeper.SessionUpdated]


def test_what_is_raised_is_raised_in_the_script(place: Path, settings: Settings) -> None:
    model = Scripted().fails(400, message="no")
    with turnkeeper.open_sync("memory:", directory=place, provider=model, settings=settings) as tk:
        with pytest.raises(NotFound):
            tk.get("ses_nope")
        with pytest.raises(TurnFailed, match="no"):
            tk.ask("Wind?")
    with pytest.raises(Invalid), turnkeeper.open_sync("no://store"):
        pass


def test_every_method_is_there() -> None:
    def methods(kind: type) -> set[str]:
        return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}

    assert methods(BlockingTurnkeeper) == methods(Turnkeeper)


def test_the_types_of_the_methods_are_current() -> None:
    command = [sys.executable, str(ROOT / "scripts/blocking_stub.py"), "--check"]
    run = subprocess.run(command, env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("", 0)
