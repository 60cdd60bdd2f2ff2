"""Sessions that are at work: owned by this process, or left by one that died."""

import socket
import subprocess
import sys
from typing import Any

from turnkeeper.app import Turnkeeper
from turnkeeper.model.event import Event, PartRecorded, PromptAdmitted, PromptPromoted, StatusChanged, TurnStarted
from turnkeeper.model.message import AssistantMessage, AssistantTime, MessageTime, ModelChoice, TurnPath, UserMessage
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import RunningTime, ToolRunning
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.status import BUSY, Owner, Retrying
from turnkeeper.workspace.owner import this_process


async def busy_here(tk: Turnkeeper) -> str:
    """A session that this process runs."""
    session = await tk.create(title="At work")
    await tk.store.journal.append(session.id, StatusChanged(status=BUSY, owner=this_process()))
    return session.id


async def retrying_here(tk: Turnkeeper) -> str:
    """A session that this process will try again."""
    session = await tk.create(title="Trying")
    status = Retrying(attempt=2, message="overloaded", next=1)
    await tk.store.journal.append(session.id, StatusChanged(status=status, owner=this_process()))
    return session.id


def dead() -> Owner:
    """A process that is no more."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    return Owner(host=socket.gethostname(), pid=gone.pid, started="long ago")


async def left_open(tk: Turnkeeper, directory: str) -> str:
    """A session of a dead process: half an answer, a command under way, and a prompt that waits."""
    session = await tk.create(title="Left open", directory=directory)
    user = _user(tk, session.id)
    later = _user(tk, session.id)
    answer = AssistantMessage(
        id=tk.store.mint.message_id(),
        session_id=session.id,
        time=AssistantTime(created=1),
        parent_id=user.id,
        model_id="tk-1",
        provider_id="offline",
        mode="build",
        agent="build",
        path=TurnPath(cwd=directory, root=directory),
        cost=0,
        tokens=ZERO_TOKENS,
    )
    own: dict[str, Any] = {"session_id": session.id, "message_id": answer.id}
    call = ToolPart(
        id=tk.store.mint.part_id(),
        call_id="call_1",
        tool="bash",
        state=ToolRunning(input={"command": "echo twice >> ran.txt"}, time=RunningTime(start=1)),
        **own,
    )
    half = TextPart(id=tk.store.mint.part_id(), text="Half an answer", time=Span(start=1), **own)
    await tk.store.journal.append(
        session.id,
        StatusChanged(status=BUSY, owner=dead()),
        *_said(tk, user, "read tides.py"),
        TurnStarted(message=answer),
        PartRecorded(part=half),
        PartRecorded(part=call),
        *_said(tk, later, "read README.md", promoted=False),
    )
    return session.id


def _user(tk: Turnkeeper, session_id: str) -> UserMessage:
    return UserMessage(
        id=tk.store.mint.message_id(),
        session_id=session_id,
        time=MessageTime(created=1),
        agent="build",
        model=ModelChoice(provider_id="offline", model_id="tk-1"),
    )


def _said(tk: Turnkeeper, user: UserMessage, text: str, *, promoted: bool = True) -> list[Event]:
    part = TextPart(id=tk.store.mint.part_id(), session_id=user.session_id, message_id=user.id, text=text)
    admitted = PromptAdmitted(message=user, parts=(part,), delivery="steer")
    return [admitted, PromptPromoted(message_id=user.id)] if promoted else [admitted]
