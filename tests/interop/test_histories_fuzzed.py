"""Damaged histories of other programs: nothing crashes, every line is accounted for, and providers accept them."""

import asyncio
import json
import random
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from histories import FILES, everything
from hypothesis import given, settings
from hypothesis import strategies as st
from wire_cases import MODELS, a_model, an_endpoint

from turnkeeper.app import open_store
from turnkeeper.core.history import HistoryItem, visible
from turnkeeper.core.lowering import lower
from turnkeeper.interop.lines import Account
from turnkeeper.interop.normalise import Incoming, incoming
from turnkeeper.interop.raw import Unreadable
from turnkeeper.interop.transcripts import PROGRAMS, ProgramName
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.request import ModelRequest
from turnkeeper.providers import codec_of
from turnkeeper.providers.codec import encode_body
from turnkeeper.testing import laws

ODD: list[Any] = [None, True, 0, -1, 3.5, 10**30, "", " ", "x", "\ud800", [], [None], {}, {"type": "text"}, [[{}]]]
GARBAGE = [
    b"\n",
    b"{\n",
    b"null\n",
    b"[1]\n",
    b'"x"\n',
    b"\xff\xfe\n",
    b"{}\n",
    b'{"type":7}\n',
    b"\0\0\0\n",
    b'{"a":"\xff"}\n',
]


def damaged(lines: list[bytes], seed: int, times: int) -> list[bytes]:
    """The lines with some of them dropped, repeated, moved, cut or with other fields."""
    chance = random.Random(seed)
    lines = list(lines)
    for _ in range(times):
        if not lines:
            break
        at = chance.randrange(len(lines))
        match chance.randrange(8):
            case 0:
                del lines[at]
            case 1:
                lines.insert(chance.randrange(len(lines)), lines[at])
            case 2:
                lines.insert(chance.randrange(len(lines)), lines.pop(at))
            case 3:
                lines[at] = lines[at][: chance.randrange(len(lines[at]) + 1)]
            case 4:
                lines.insert(at, chance.choice(GARBAGE))
            case _:
                lines[at] = retyped(lines[at], chance)
    return lines


def retyped(line: bytes, chance: random.Random) -> bytes:
    try:
        found = json.loads(line)
    except ValueError:
        return line
    places = list(_places(found)) if isinstance(found, dict) else []
    if not places:
        return line
    inside, key = chance.choice(places)
    match chance.randrange(3):
        case 0 if isinstance(inside, dict):
            del inside[key]
        case 1:
            other, other_key = chance.choice(places)
            inside[key] = other.get(other_key) if isinstance(other, dict) else chance.choice(ODD)
        case _:
            inside[key] = chance.choice(ODD)
    try:
        return json.dumps(found).encode() + b"\n"
    except (ValueError, RecursionError):  # It was put into itself.
        return line


def _places(value: Any) -> Iterable[tuple[Any, Any]]:
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def read(name: ProgramName, file: Path) -> list[Incoming]:
    """The sessions of a file. Every line is accounted for, and nothing that was made of one is refused."""
    account = Account(str(file))
    try:
        found = PROGRAMS[name].read(file, account)
    except Unreadable:
        return []
    if not found:
        account.nothing()
    counts = account.counts()
    assert counts.read == counts.understood + counts.foreign + counts.reported
    skipped, unreadable = account.findings()
    assert not counts.reported or skipped or unreadable
    made = [incoming(one) for one in found]
    assert [finding for one in made for finding in (*one.unreadable, *one.skipped) if finding.message_id] == []
    return made


def accepted(session: Incoming) -> None:
    """Every provider accepts the history."""
    entries = visible([HistoryItem(message=one.info, parts=one.parts) for one in session.messages])
    for protocol in MODELS:
        model = a_model(protocol)
        for same in (False, True):
            said = [one.message for one in entries if isinstance(one.message, AssistantMessage)]
            if same and said:
                model = model.but(provider_id=said[-1].provider_id, id=said[-1].model_id)
            request = ModelRequest(model=model, system=("Be kind.",), messages=lower(entries, model))
            assert laws.check(request) == {}
            body = codec_of(protocol).body(request, an_endpoint(protocol, provider_id=model.provider_id))
            assert json.loads(encode_body(body))


@pytest.mark.parametrize(("name", "file"), FILES, ids=lambda one: one if isinstance(one, str) else one.name[:32])
def test_every_provider_accepts_each_history(name: ProgramName, file: Path) -> None:
    sessions = read(name, file)
    assert sessions
    for session in sessions:
        accepted(session)


@settings(max_examples=200)
@given(st.sampled_from(FILES), st.integers(0, 10**9), st.integers(1, 12))
def test_a_damaged_history_is_read_as_far_as_it_goes(chosen: tuple[ProgramName, Path], seed: int, times: int) -> None:
    name, file = chosen
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "chats" / file.name
        target.parent.mkdir()
        target.write_bytes(b"".join(damaged(file.read_bytes().splitlines(keepends=True), seed, times)))
        for session in read(name, target):
            accepted(session)


@settings(max_examples=25)
@given(st.sampled_from(FILES), st.integers(0, 10**9), st.integers(1, 8))
def test_a_damaged_history_comes_in_once(chosen: tuple[ProgramName, Path], seed: int, times: int) -> None:
    name, file = chosen

    async def twice(target: Path) -> None:
        async with open_store("memory:", directory=target.parent) as tk:
            first = await tk.import_history(name, target)
            before = await everything(tk)
            again = await tk.import_history(name, target)
            assert (again.grown, again.imported.messages, again.conflicts) == (0, 0, ())
            assert (again.lines, again.unreadable, again.skipped) == (first.lines, first.unreadable, first.skipped)
            assert await everything(tk) == before

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder).resolve() / "chats" / file.name
        target.parent.mkdir()
        target.write_bytes(b"".join(damaged(file.read_bytes().splitlines(keepends=True), seed, times)))
        asyncio.run(twice(target))
