"""Sessions as a killed process leaves them, in the middle of a turn."""

from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.parts import StepStartPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.status import BUSY, Owner
from turnkeeper.testing.builders import NOW, a_text, an_assistant
from turnkeeper.testing.harness import Stage
from turnkeeper.workspace.owner import this_process

DEAD = this_process().but(pid=2**22 + 1, started="long ago")
"""A process that cannot be: its number is larger than any the kernel gives."""


async def left_behind(stage: Stage, *events: Event, owner: Owner = DEAD, session: str | None = None) -> str:
    """A session as a killed process leaves it: prompted, busy, and in the middle of these events of a turn."""
    session = session or await stage.session()
    receipt = await stage.say(session, "go", resume=False)
    turn = an_assistant(session, turn_of(session), receipt.message_id, provider_id="acme", model_id="large")
    placed = [_placed(event, session) for event in events]
    await stage.tk.store.journal.append(
        session,
        e.StatusChanged(status=BUSY, owner=owner),
        e.PromptPromoted(message_id=receipt.message_id),
        *([e.TurnStarted(message=turn), *placed] if events else []),
        fence=1,
    )
    return session


def turn_of(session: str) -> str:
    return f"msg_{session}"


def _placed(event: Event, session: str) -> Event:
    if isinstance(event, e.PartRecorded):
        return event.but(part=event.part.but(session_id=session, message_id=turn_of(session)))
    return event.but(message_id=turn_of(session))


TURN = an_assistant("ses_one", "msg_turn", "msg_user")
STEP = e.PartRecorded(part=StepStartPart(id="prt_0", session_id="", message_id=""))
OPEN_TEXT: list[Event] = [
    e.PartRecorded(part=a_text(TURN, "prt_1", "", time=Span(start=NOW))),
    e.PartExtended(message_id="msg_turn", part_id="prt_1", offset=0, text="Half an "),
    e.PartExtended(message_id="msg_turn", part_id="prt_1", offset=8, text="answer"),
]
