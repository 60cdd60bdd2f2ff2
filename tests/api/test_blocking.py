"""The interface without ``async`` has every method of the other, and they do the same."""

import inspect
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import turnkeeper
from turnkeeper import BlockingTurnkeeper, Invalid, NotFound, Scripted, Settings, TurnFailed, Turnkeeper
from turnkeeper.store.engine import StoreUnavailable

LIMIT_S = 60
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


def test_leaving_the_block_of_a_stream_that_another_thread_reads_stops_the_turn(
    place: Path, settings: Settings
) -> None:
    model = Scripted().says("The ").hangs().then().says("is west.")
    with turnkeeper.open_sync("memory:", directory=place, provider=model, settings=settings) as tk:
        pieces, ended = queue.Queue[str](), queue.Queue[object]()

        def read(answer: Iterable[str]) -> None:
            try:
                for piece in answer:
                    pieces.put(piece)
            except TurnFailed as failed:
                ended.put(failed.error)

        with tk.stream("Wind?") as answer:
            reader = threading.Thread(target=read, args=(answer,))
            reader.start()
            assert pieces.get(timeout=LIMIT_S) == "The "
            with pytest.raises(Invalid, match="another task reads this answer"):
                answer.close()
        reader.join(LIMIT_S)
        assert isinstance(ended.get(timeout=LIMIT_S), turnkeeper.AbortedFailure)
        assert tk.ask("Go on.", session=answer.session_id).text == "is west."


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_a_script_that_is_ended_in_its_block_ends_as_usual(
    place: Path, settings: Settings, error: BaseException
) -> None:
    def script() -> None:
        model = Scripted().says("The ").hangs()
        with turnkeeper.open_sync("memory:", directory=place, provider=model, settings=settings) as tk:
            assert next(tk.stream("Wind?")) == "The "
            raise error

    with pytest.raises(type(error)) as raised:
        script()
    assert raised.value is error


def test_a_store_that_was_closed_says_so(place: Path, settings: Settings) -> None:
    with turnkeeper.open_sync("memory:", directory=place, settings=settings) as tk, tk.subscribe() as heard:
        stream = tk.stream("Wind?")
    for late in (tk.list, lambda: tk.ask("Wind?"), lambda: next(stream), lambda: next(heard)):
        with pytest.raises(StoreUnavailable, match="the store was closed; open it again"):
            late()


FORKED = """
import asyncio, os, sys, turnkeeper

with turnkeeper.open_sync(sys.argv[1]) as tk:
    session = tk.create(title="Wind").id
    if child := os.fork():
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), tk.get(session).title)
    else:
        try:
            tk.rename(session, "Tide")
        except turnkeeper.StoreUnavailable as refused:
            print(refused, flush=True)
        with turnkeeper.open_sync(sys.argv[1]) as again:
            again.rename(session, "Tide")
        tk.list()
"""


def test_a_forked_process_is_refused_at_once_and_opens_the_store_again(tmp_path: Path) -> None:
    run = _script(FORKED, f"sqlite:{tmp_path}/store.db")
    refusal = "before a fork; open it again in this one"
    assert [line.rpartition(") ")[2] for line in run.stdout.splitlines()] == [refusal, "1 Tide"]
    assert run.stderr.splitlines()[-1].endswith(refusal)
    assert run.stderr.count("Traceback") == 1


FORKED_ASYNC = """
import asyncio, os, sys, threading, turnkeeper

async def child(tk):
    for call in (lambda: tk.create(title="Wind"), lambda: tk.subscribe().__aenter__()):
        try:
            await call()
        except turnkeeper.StoreUnavailable as refused:
            print(str(refused).rpartition(") ")[2], flush=True)

async def main():
    async with turnkeeper.open(sys.argv[1]) as tk:
        if not (pid := os.fork()):
            apart = threading.Thread(target=lambda: asyncio.run(child(tk)))
            apart.start()
            apart.join()
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), len((await tk.list()).items))

asyncio.run(main())
"""


def test_a_forked_process_is_refused_with_async_too(tmp_path: Path) -> None:
    run = _script(FORKED_ASYNC, f"sqlite:{tmp_path}/store.db")
    refusal = "before a fork; open it again in this one"
    assert (run.stdout.splitlines(), run.stderr) == ([refusal, refusal, "0 0"], "")


def _script(text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", text, *arguments]
    environ = {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=LIMIT_S)


def test_threads_with_stores_of_their_own_ask_once_for_one_id(place: Path, settings: Settings, tmp_path: Path) -> None:
    def ask(number: int) -> tuple[str, int]:
        model = Scripted().says(f"West, says {number}.")
        with turnkeeper.open_sync(
            f"sqlite:{tmp_path / 'one.db'}", directory=place, provider=model, settings=settings
        ) as tk:
            ready.wait(LIMIT_S)
            return tk.ask("Wind?", id="the wind").text, len(model.requests)

    ready = threading.Barrier(4)
    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(ask, range(4)))
    assert len({text for text, _ in answers}) == 1
    assert sum(count for _, count in answers) == 1


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
