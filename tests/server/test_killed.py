"""A server killed under load and started again: every prompt it said yes to is there, once; nothing is done twice."""

import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import msgspec
import pytest
from served import DEADLINE_S
from served_process import Place

from turnkeeper.app import look
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import ToolPart
from turnkeeper.model.status import BUSY
from turnkeeper.testing.builders import NOW, a_text, an_assistant
from turnkeeper.testing.directives import asked
from turnkeeper.testing.server import Received, ScriptedServer
from turnkeeper.workspace.owner import this_process

SESSIONS = 4
PROMPTS = 5
DELTAS = 6
MOMENTS = SESSIONS * PROMPTS * (DELTAS // 2)
"""Of so many answers to prompts and deltas of turns, one is the moment of the kill. Usually, more are to come."""

DONE = "done.txt"
"""Where commands of the model leave the ids of their prompts."""

STEPS = 2
"""So many turns a prompt has at most: one that calls, and one that answers."""

ROUNDS, ROUNDS_SOAK = 4, 40


@dataclass
class Moment:
    """Counts down what happens, and kills a process in the middle of it."""

    left: int
    process: subprocess.Popen[str] | None = None

    def passes(self) -> None:
        self.left -= 1
        if self.left == 0 and self.process is not None:
            self.process.kill()

    async def pause(self, _seconds: float) -> None:
        """Between two deltas."""
        self.passes()
        await anyio.lowlevel.checkpoint()


@dataclass
class Story:
    """What was sent, and what was said to it."""

    sent: dict[str, list[str]] = field(default_factory=dict)
    """By session, the ids of prompts."""
    safe: set[str] = field(default_factory=set)
    """Ids of prompts that were acknowledged."""


async def send_all(http: httpx2.AsyncClient, session_id: str, story: Story, moment: Moment, chance: Random) -> None:
    """Send prompts one by one, each under an id of ours, in either generation, until the server is gone."""
    for number in range(PROMPTS):
        message_id = f"msg_{session_id.removeprefix('ses_')}{number}"
        story.sent.setdefault(session_id, []).append(message_id)
        does = f"[[bash echo {message_id} >> {DONE}]] " if number % 2 else ""
        text = f"<{message_id}> {does}[[slow {DELTAS} 1]]"
        path, body = chance.choice(
            [
                (f"/session/{session_id}/prompt_async", {"messageID": message_id, "parts": [_text(text)]}),
                (f"/api/session/{session_id}/prompt", {"id": message_id, "prompt": {"text": text}}),
                (
                    f"/api/session/{session_id}/prompt",
                    {"id": message_id, "prompt": {"text": text}, "delivery": "queue"},
                ),
            ]
        )
        try:
            answer = await http.post(path, json=body)
        except httpx2.TransportError:
            return
        assert answer.is_success, answer.text
        story.safe.add(message_id)
        moment.passes()


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def prompt_of(request: Received) -> str:
    """The id of the prompt that a request is about; empty for what is no turn, such as titles."""
    said = asked(request.body, request.protocol)
    return said.prompt.partition("<")[2].partition(">")[0] if said.tools else ""


def asked_by(provider: ScriptedServer, key: str) -> list[Received]:
    """The requests that were made under a key."""
    return [one for one in provider.requests if one.headers["authorization"] == f"Bearer {key}"]


async def history(http: httpx2.AsyncClient, session_id: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = (await http.get(f"/session/{session_id}/message")).raise_for_status().json()
    return messages


def answered(messages: list[dict[str, Any]]) -> Counter[str]:
    """How many answers each prompt has."""
    return Counter(one["info"]["parentID"] for one in messages if one["info"]["role"] == "assistant")


async def lived_through(path: Path, seed: int) -> None:
    """One life: load, the kill, a second start, and everything looked at."""
    chance = Random(seed)
    moment = Moment(chance.randrange(1, MOMENTS))
    story = Story()
    async with ScriptedServer(pause=moment.pause) as provider:
        place = Place(path, provider)
        place.configure("first")
        async with place.serving() as (process, http):
            sessions = [(await http.post("/session")).json()["id"] for _ in range(SESSIONS)]
            moment.process = process
            async with anyio.create_task_group() as group:
                for session_id in sessions:
                    group.start_soon(send_all, http, session_id, story, moment, Random(chance.random()))
            process.kill()  # If all was sent before the moment came.
            await anyio.to_thread.run_sync(process.wait)
        async with look(place.store) as opened:  # Not through a second server: it would go on before it is asked.
            left = [(await opened.messages(session_id)).items for session_id in sessions]
        place.configure("second")
        async with place.serving() as (process, http):
            for session_id in sessions:
                body = {"messageID": f"msg_{session_id.removeprefix('ses_')}last", "parts": [_text("[[text bye]]")]}
                (await http.post(f"/session/{session_id}/message", json=body)).raise_for_status()
                (await http.post(f"/api/session/{session_id}/wait")).raise_for_status()
            last = [await history(http, session_id) for session_id in sessions]
            assert (await http.get("/session/status")).json() == {}, "nothing is busy for ever"
            process.send_signal(signal.SIGTERM)
            assert await anyio.to_thread.run_sync(process.wait) == 0
        times = Counter(map(prompt_of, provider.requests))
        assert [one for one, count in times.items() if one and count > STEPS + 1] == []
        for session_id, before, after in zip(sessions, left, last, strict=True):
            check_history(story, session_id, after)
            check_turns(before, after, asked_by(provider, "second"))
    done = Counter((path / DONE).read_text().split() if (path / DONE).exists() else ())
    assert [one for one, count in done.items() if count > 1] == [], "no command is run twice"
    async with look(place.store) as opened:
        for session_id in sessions:
            assert (await opened.store.journal.view(session_id)).inbox == (), "all that waited was taken up"
        found = await opened.doctor()
        assert found.ok, found.problems


def check_history(story: Story, session_id: str, messages: list[dict[str, Any]]) -> None:
    """Every prompt that was acknowledged is there once, none is there twice, and none is answered twice."""
    whole = [one for one in messages if one["info"].get("finish") == "stop"]
    ids = Counter(one["info"]["id"] for one in messages)
    assert {sent: ids[sent] for sent in story.sent[session_id] if sent in story.safe and ids[sent] != 1} == {}
    assert [one for one, count in ids.items() if count > 1] == []
    assert [one for one, count in answered(whole).items() if count > 1] == []
    open_ = [one for one in messages if one["info"]["role"] == "assistant" and "completed" not in one["info"]["time"]]
    assert open_ == [], "every turn has an end"


def check_turns(left: Sequence[MessageWithParts], after: list[dict[str, Any]], asked_since: list[Received]) -> None:
    """A turn that had said or done anything when the process died is closed, and its prompt is not asked again."""
    infos = {one["info"]["id"]: one["info"] for one in after}
    again = {prompt_of(request) for request in asked_since}
    for turn, parts in ((one.info, one.parts) for one in left):
        if not isinstance(turn, AssistantMessage):
            continue
        said = any(isinstance(part, ToolPart) or getattr(part, "text", "") for part in parts)
        if turn.time.completed is None and not said:
            assert turn.id not in infos, "a turn that had said nothing is taken back"
            assert any(is_open_in(request, turn.parent_id) for request in asked_since), "and asked anew"
        elif turn.time.completed is None:
            assert infos[turn.id]["error"]["name"] == "MessageAbortedError"
            assert turn.parent_id not in again, "what was cut off is not asked again"
        elif turn.finish != "tool-calls" or turn.error is not None:
            assert turn.parent_id not in again, "what was answered is not asked again"


def is_open_in(request: Received, prompt_id: str) -> bool:
    """Whether a request has a prompt, alone or with those that came after it, that nobody has answered yet."""
    messages = msgspec.convert(request.body["messages"], list[dict[str, Any]])
    places = [place for place, one in enumerate(messages) if f"<{prompt_id}>" in str(one["content"])]
    return bool(places) and not any(
        one["role"] == "assistant" and "tool_calls" not in one for one in messages[places[0] :]
    )


async def leave_open(place: Place) -> str:
    """A session as a killed process leaves it, in the middle of a sentence."""
    dead = this_process().but(pid=2**22 + 1, started="long ago")
    async with look(place.store, directory=place.path) as opened:
        session_id = (await opened.create()).id
        turn = an_assistant(session_id, "msg_turn", "msg_user", provider_id="acme", model_id="large")
        await opened.store.journal.append(
            session_id,
            e.StatusChanged(status=BUSY, owner=dead),
            e.TurnStarted(message=turn),
            e.PartRecorded(part=a_text(turn, "prt_half", "half a sen", time=Span(start=NOW))),
            fence=1,
        )
    return session_id


async def test_what_a_dead_process_left_open_is_closed_before_the_first_answer(tmp_path: Path) -> None:
    with anyio.fail_after(DEADLINE_S):
        place = Place(tmp_path, ScriptedServer())
        session_id = await leave_open(place)
        async with place.serving() as (_, http):
            status, [message] = (await http.get("/session/status")).json(), await history(http, session_id)
        assert status == {}
        assert message["info"]["error"]["name"] == "MessageAbortedError"
        assert message["info"]["time"]["completed"] > 0
        assert [part["text"] for part in message["parts"]] == ["half a sen"]


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_killed_under_load_a_server_has_lost_no_prompt_that_it_acknowledged(tmp_path: Path, seed: int) -> None:
    with anyio.fail_after(DEADLINE_S):
        await lived_through(tmp_path, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(ROUNDS, ROUNDS + ROUNDS_SOAK))
async def test_however_often_it_is_killed_nothing_is_lost(tmp_path: Path, seed: int) -> None:
    with anyio.fail_after(DEADLINE_S):
        await lived_through(tmp_path, seed)
