"""The Mint: ids that never go back, tails without bias, and the same answers twice when fixed."""

import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core import slug
from turnkeeper.mint import Mint
from turnkeeper.model import identifier
from turnkeeper.model.identifier import ALPHABET, WINDOW_MS

WRAPS = [26 * WINDOW_MS, 27 * WINDOW_MS]


def number(identifier_: str) -> int:
    parsed = identifier.parse(identifier_)
    return parsed.ms * 4096 + parsed.counter


def test_ids_have_the_form_of_their_kind() -> None:
    mint = Mint()
    tail = "[0-9a-f]{12}[0-9A-Za-z]{14}"
    assert re.fullmatch(f"ses_{tail}", mint.session_id())
    assert re.fullmatch(f"msg_{tail}", mint.message_id())
    assert re.fullmatch(f"prt_{tail}", mint.part_id())
    assert re.fullmatch(f"evt_{tail}", mint.event_id())
    assert re.fullmatch(f"wrk_{tail}", mint.ascending("wrk"))


def test_the_first_id_of_a_millisecond_has_counter_one() -> None:
    assert Mint.fixed(1_794_767_533_915).message_id()[4:16] == "1e07b375b001"
    assert Mint.fixed(1_794_767_525_690).session_id()[4:16] == "e1f84e8c5ffe"


def test_ids_say_when_they_were_minted() -> None:
    mint = Mint()
    before = mint.now()
    minted = [mint.session_id(), mint.message_id()]
    after = mint.now()
    for each in minted:
        assert before <= identifier.timestamp(each, near=after) <= after


def test_many_ids_at_once_are_as_good_as_one_by_one() -> None:
    mint = Mint.fixed(1_794_767_533_915)
    made = [mint.message_id(), *mint.several("msg", 5000), mint.message_id(), *mint.several("msg", 2)]
    first = number(made[0])
    assert [number(one) for one in made] == list(range(first, first + 5004))
    assert all(re.fullmatch("msg_[0-9a-f]{12}[0-9A-Za-z]{14}", one) for one in made)
    assert len({one[16:] for one in made}) == len(made)
    assert mint.several("msg", 0) == []


def test_a_prefix_is_minted_in_its_own_direction_only() -> None:
    mint = Mint.fixed()
    with pytest.raises(AssertionError):
        mint.ascending("ses")
    with pytest.raises(AssertionError):
        mint.several("ses", 2)
    with pytest.raises(AssertionError):
        mint.descending("msg")


@given(
    start=st.integers(25 * WINDOW_MS, 26 * WINDOW_MS - 10**9),
    steps=st.lists(st.integers(-(10**7), 10**7), max_size=50),
)
def test_ids_rise_whatever_the_clock_does(start: int, steps: list[int]) -> None:
    mint = Mint.fixed(start)
    messages, sessions = [], []
    for step in [0, *steps]:
        mint.advance(step)
        messages += [mint.message_id(), mint.message_id()]
        sessions.append(mint.session_id())
    assert messages == sorted(set(messages))
    assert sessions == sorted(set(sessions), reverse=True)


def test_after_the_clock_stepped_back_ids_go_on_from_the_last_one() -> None:
    mint = Mint.fixed(2_000_000)
    first = mint.message_id()
    mint.set(1_000_000)
    assert number(mint.message_id()) == number(first) + 1
    assert mint.now() == 1_000_000
    mint.set(2_000_001)
    assert identifier.parse(mint.message_id())[1:3] == (2_000_001, 1)


def test_more_ids_than_a_millisecond_can_count_run_on_into_the_next() -> None:
    mint = Mint.fixed(1_000)
    minted = [mint.message_id() for _ in range(4097)]
    assert [number(each) for each in minted] == list(range(1_000 * 4096 + 1, 1_000 * 4096 + 4098))
    assert identifier.timestamp(minted[-1]) == 1_001


@pytest.mark.parametrize("wrap", WRAPS)
def test_across_a_wrap_every_time_is_recovered_and_every_id_is_new(wrap: int) -> None:
    mint = Mint.fixed(wrap - 3, step_ms=1)
    minted = [mint.message_id() for _ in range(3)] + [mint.session_id() for _ in range(3)]
    assert [identifier.timestamp(each, near=wrap) - wrap for each in minted] == [-3, -2, -1, 0, 1, 2]
    assert len(set(minted)) == 6


@pytest.mark.parametrize("wrap", WRAPS)
def test_a_clock_that_steps_back_over_a_wrap_does_not_bring_old_numbers_back(wrap: int) -> None:
    mint = Mint.fixed(wrap)
    after = mint.message_id()
    mint.set(wrap - 1)
    again = mint.message_id()
    assert after < again
    assert identifier.timestamp(again, near=wrap) == wrap


def test_threads_never_get_the_same_number() -> None:
    mint = Mint.fixed()
    with ThreadPoolExecutor(8) as pool:
        minted = list(pool.map(lambda _: [mint.message_id() for _ in range(500)], range(8)))
    assert all(batch == sorted(batch) for batch in minted)
    assert len({number(each) for batch in minted for each in batch}) == 4000


def test_one_minting_waits_for_another() -> None:
    during_the_first: list[str] = []
    second = Thread(target=lambda: during_the_first.append(mint.message_id()))

    def clock() -> int:
        if second.ident is None:
            second.start()
            # It cannot finish while the first holds the mint; without that hold it would be done in no time.
            second.join(0.05)
            assert during_the_first == []
        return 0

    mint = Mint(clock=clock)
    assert number(mint.message_id()) == 1
    second.join()
    assert [number(each) for each in during_the_first] == [2]


def test_bytes_that_would_favour_some_symbols_are_drawn_again() -> None:
    draws = iter([bytes(range(248, 256)) + b"\x00", b"\xff" + bytes(range(1, 21)), bytes(range(14))])
    mint = Mint(clock=lambda: 0, random=lambda _: next(draws))
    assert mint.message_id() == "msg_000000000001" + ALPHABET[:14]
    assert mint.message_id() == "msg_000000000002" + ALPHABET[:14]


def test_every_symbol_is_as_likely_as_every_other() -> None:
    mint = Mint(clock=lambda: 0, random=lambda _: bytes(range(256)) * 7)
    symbols = Counter("".join(mint.message_id()[-14:] for _ in range(248 * 7 // 14)))
    assert symbols == dict.fromkeys(ALPHABET, 28)


def test_no_two_ids_share_their_random_symbols() -> None:
    mint = Mint()
    assert len({mint.message_id()[-14:] for _ in range(500)}) == 500


def test_a_forked_process_mints_other_ids_than_its_parent() -> None:
    script = """
import os
from turnkeeper.mint import Mint
mint = Mint(clock=lambda: 0)
mint.message_id()
child = os.fork()
os.write(1, mint.message_id().encode() + b" ")
if child:
    os.waitpid(child, 0)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    parent, child = done.stdout.split()
    assert parent[:16] == child[:16] == "msg_000000000002"
    assert parent != child


def test_a_fixed_mint_gives_the_same_answers_again() -> None:
    def answers(seed: int) -> list[object]:
        mint = Mint.fixed(seed=seed, step_ms=7)
        return [mint.now(), mint.session_id(), mint.message_id(), mint.slug(), mint.now()]

    assert answers(1) == answers(1)
    assert answers(1)[1:4] != answers(2)[1:4]


def test_a_fixed_clock_stands_until_it_is_moved() -> None:
    mint = Mint.fixed(100)
    assert [mint.now(), mint.now()] == [100, 100]
    mint.advance(5)
    assert mint.now() == 105
    mint.set(50)
    mint.step_ms = 10
    assert [mint.now(), mint.now()] == [50, 60]


@given(st.binary(min_size=2, max_size=2))
def test_a_slug_is_two_friendly_words(entropy: bytes) -> None:
    assert re.fullmatch("[a-z]+-[a-z]+", slug.slug(entropy))


def test_every_pair_of_words_can_be_chosen() -> None:
    assert len({slug.slug(bytes([first, second])) for first in range(64) for second in range(64)}) == 4096
