"""Ask: send a prompt, wait until it is answered, and read the answer; also if it was sent before."""

from hashlib import sha256
from typing import Final, NamedTuple

from turnkeeper.core.prompt_answer import AnswerTurn, is_answered, is_newest, turns_of
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Delivery
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.prompt import Prompt, Receipt
from turnkeeper.model.refusal import Conflict, Invalid
from turnkeeper.model.status import Idle
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.runtime import Runtime
from turnkeeper.sessions import prompt as prompting
from turnkeeper.sessions import wait
from turnkeeper.store import documents, keys
from turnkeeper.store.store import Store

MESSAGE_PREFIX: Final = "msg_"
DIGITS: Final = 26
"""The length of an id that is derived from a key."""


class Sent(NamedTuple):
    """A prompt that was admitted, now or before (``is_known``)."""

    receipt: Receipt
    is_known: bool


def derived_session_id(directory: str, key: str) -> str:
    """The session of a prompt with this key, if the caller names none."""
    return f"ses_{_digest(directory, key)}"


def derived_prompt_id(session_id: str, key: str) -> str:
    """The message id of a prompt with this key in a session. A key that is a message id is used as it is."""
    return key if key.startswith(MESSAGE_PREFIX) else f"{MESSAGE_PREFIX}{_digest(session_id, key)}"


def check_key(key: str) -> None:
    """Raise Invalid if a key cannot name a prompt."""
    if not key.strip():
        raise Invalid("the id of the prompt is empty; give it a name of its own, or leave the id out")
    if key.startswith(MESSAGE_PREFIX):
        prompting.checked_id(key)


async def send(store: Store, runtime: Runtime, session_id: str, prompt: Prompt) -> Sent:
    """Admit a prompt. In a session that is busy it waits for its turn, so that it gets an answer of its own."""
    known = await _admitted(store, prompt.message_id)
    if known is None:
        await runtime.lease_keeper.host.check_prompt(session_id)
        try:
            return Sent(await prompting.prompt(store, runtime, session_id, prompt, deliver=own_turn), False)
        except Conflict:
            # It may be the same prompt, which another task has sent meanwhile.
            known = await _admitted(store, prompt.message_id)
            if known is None:
                raise
    return Sent(await prompting.prompt(store, runtime, session_id, prompt.but(delivery=known)), True)


async def settle(store: Store, runtime: Runtime, sent: Sent) -> Outcome:
    """Run the session until the prompt is answered and the session rests.

    A prompt that was sent before is not asked again if it has its answer; if its turn failed, one more turn is run. If
    the process that runs the session dies, the session is taken over: the turn that was cut off is closed, its calls
    are not run again, and the prompt is answered here.
    """
    if sent.is_known:
        outcome = await _continue(store, runtime, sent.receipt)
    else:
        await runtime.request(sent.receipt.session_id)
        outcome = await wait.wait(store, runtime, sent.receipt.session_id)
    while outcome.kind == "abandoned":
        outcome = await _continue(store, runtime, sent.receipt)
    return outcome


async def _continue(store: Store, runtime: Runtime, receipt: Receipt) -> Outcome:
    """Run the session on for a prompt that was sent before, or wait for the process that does."""
    resume = await _resumes(store, receipt)
    if resume is None:
        return Outcome(kind="rested", reason="a later prompt was sent")
    if receipt.session_id not in runtime.active:
        outcome = await runtime.run(receipt.session_id, resume=resume)
        if not outcome.is_busy:
            return outcome
    return await wait.wait(store, runtime, receipt.session_id)


async def answer_turns(store: Store, receipt: Receipt) -> list[AnswerTurn]:
    """The turns that answer a prompt so far."""
    return turns_of(await _after(store, receipt))


async def _resumes(store: Store, receipt: Receipt) -> bool | None:
    """Whether a run must continue the last turn for a prompt that was sent before; None if nothing is to be run."""
    view = await store.journal.view(receipt.session_id)
    if any(waiting.message.id == receipt.message_id for waiting in view.inbox):
        return False
    after = await _after(store, receipt)
    turns = turns_of(after)
    if is_answered(turns) or not is_newest(turns, after):
        return None
    return True


async def _after(store: Store, receipt: Receipt) -> list[MessageWithParts]:
    """The history after a prompt, oldest message first; nothing if the prompt is not in it."""
    found: list[MessageWithParts] = []
    async for message in store.queries.stream(receipt.session_id):
        if message.info.id == receipt.message_id:
            return found[::-1]
        found.append(message)
    return []


async def _admitted(store: Store, message_id: str | None) -> Delivery | None:
    """How a prompt was delivered that was admitted before; None if it was not."""
    if message_id is None:
        return None
    [stored] = await store.engine.get([keys.receipt(message_id)])
    return documents.read_admission(stored).delivery if stored is not None else None


def own_turn(view: SessionView) -> Delivery:
    """The delivery of a prompt that is answered alone. What is steered joins the turn that runs or is about to begin.

    In a session that rests it is steered, because a call that the user refused holds queued prompts back.
    """
    rests = view.turn is None and isinstance(view.status, Idle)
    return "steer" if rests and all(waiting.delivery == "queue" for waiting in view.inbox) else "queue"


def _digest(*parts: str) -> str:
    return sha256("\0".join(parts).encode()).hexdigest()[:DIGITS]
