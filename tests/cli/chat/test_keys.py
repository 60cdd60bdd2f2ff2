"""What a key means in which state: the whole table."""

from typing import get_args

import pytest

from turnkeeper.cli.chat.keys import Key, Meaning, State, hints, meaning

TABLE: list[tuple[Key, State, bool, Meaning]] = [
    ("enter", "idle", False, "nothing"),
    ("enter", "running", False, "nothing"),
    ("enter", "stopping", False, "nothing"),
    ("enter", "idle", True, "send"),
    ("enter", "running", True, "steer"),
    ("enter", "stopping", True, "steer"),
    ("ctrl-o", "idle", False, "nothing"),
    ("ctrl-o", "running", False, "nothing"),
    ("ctrl-o", "stopping", False, "nothing"),
    ("ctrl-o", "idle", True, "send"),
    ("ctrl-o", "running", True, "queue"),
    ("ctrl-o", "stopping", True, "queue"),
    ("ctrl-c", "idle", False, "hint"),
    ("ctrl-c", "running", False, "stop"),
    ("ctrl-c", "stopping", False, "patience"),
    ("ctrl-c", "idle", True, "clear"),
    ("ctrl-c", "running", True, "stop"),
    ("ctrl-c", "stopping", True, "patience"),
    ("ctrl-d", "idle", False, "leave"),
    ("ctrl-d", "running", False, "leave"),
    ("ctrl-d", "stopping", False, "leave at once"),
    ("ctrl-d", "idle", True, "delete"),
    ("ctrl-d", "running", True, "delete"),
    ("ctrl-d", "stopping", True, "delete"),
]


@pytest.mark.parametrize(("key", "state", "has_text", "expected"), TABLE)
def test_a_key_means_what_the_table_says(key: Key, state: State, has_text: bool, expected: Meaning) -> None:
    assert meaning(key, state, has_text=has_text) == expected


def test_the_table_has_every_key_in_every_state() -> None:
    every = {(key, state, typed) for key in get_args(Key) for state in get_args(State) for typed in (False, True)}
    assert {row[:3] for row in TABLE} == every


@pytest.mark.parametrize("state", get_args(State))
def test_the_keys_that_matter_are_named_in_every_state(state: State) -> None:
    assert hints(state)
