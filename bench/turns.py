"""What a trivial turn costs us, from prompt to rest, with a short and with a long history behind it."""

import time
from pathlib import Path
from statistics import median

import turnkeeper
from bench.data import a_message, an_answer
from bench.measure import Figure, ms
from bench.provider import a_prompt, talking
from turnkeeper.app import Turnkeeper
from turnkeeper.model.event import Event
from turnkeeper.run.runtime import Settings

LENGTHS = (10, 2000)
SESSIONS, WARM_UP, TURNS = 3, 3, 12


async def measure(folder: Path) -> list[Figure]:
    """A turn costs the same in any history, and little.

    CPU of our process; and time, in which the provider reads all that was said, too. Sessions of both lengths take
    turns, so that what else the machine does falls on both; the median of all turns counts.
    """
    async with (
        talking(folder, 1),
        turnkeeper.open(f"sqlite:{folder / 'turns.db'}", directory=folder, settings=Settings(titles=False)) as tk,
    ):
        spent: dict[int, list[float]] = {length: [] for length in LENGTHS}
        taken: dict[int, list[float]] = {length: [] for length in LENGTHS}
        for _ in range(SESSIONS):
            sessions = {length: await _session(tk, length) for length in LENGTHS}
            for number in range(WARM_UP + TURNS):
                for length, session_id in sessions.items():
                    cost, time_taken = await _turn(tk, session_id)
                    if number >= WARM_UP:
                        spent[length].append(cost)
                        taken[length].append(time_taken)
    short, long = (median(spent[length]) for length in LENGTHS)
    quick, slow = (median(taken[length]) for length in LENGTHS)
    growth, best, slower = long / short, min(spent[LENGTHS[0]]), slow / quick
    return [
        Figure("CPU of a turn at 2,000 messages", ms(long), f"at 10: {ms(short)}", growth, "<= 1.20", growth <= 1.2),
        Figure("CPU of a turn at 10 messages", ms(short), f"best {ms(best)}", short / best, "<= 10 ms", short <= 0.01),
        Figure("time of a turn at 2,000 messages", ms(slow), f"at 10: {ms(quick)}", slower, "<= 1.50", slower <= 1.5),
    ]


async def _turn(tk: Turnkeeper, session_id: str) -> tuple[float, float]:
    begun, begun_at = time.process_time(), time.perf_counter()
    await tk.prompt(session_id, a_prompt())
    await tk.wait(session_id)
    return time.process_time() - begun, time.perf_counter() - begun_at


async def _session(tk: Turnkeeper, messages: int) -> str:
    """A session in which people ask and the model reads files and answers."""
    session = await tk.create(title=f"{messages} messages")
    while messages > 0:
        batch: list[Event] = []
        for _ in range(min(messages, 500) // 2):
            asked = a_message(tk.store.mint, session.id, parts=1)
            batch += [asked, an_answer(tk.store.mint, asked.message)]
        await tk.store.journal.append(session.id, *batch)
        messages -= len(batch)
    return session.id
