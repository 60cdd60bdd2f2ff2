"""Tell what a session's model was told, and how much of each request its provider could reuse. Read from the log."""

from collections.abc import AsyncIterator
from typing import Literal

from turnkeeper.core.entry import Recorded
from turnkeeper.core.prefix import reuse_percent
from turnkeeper.core.system_context import GONE
from turnkeeper.model.context import Epoch, EpochReason
from turnkeeper.model.event import ContextAdmitted, EpochStarted, TurnStarted
from turnkeeper.model.message import ContextUpdate, SystemMessage
from turnkeeper.model.value import Value
from turnkeeper.store.store import Store

PAGE = 500
"""How many events are read at once."""


class EpochBegun(Value):
    """That an epoch began: when, why, and for whom."""

    number: int
    reason: EpochReason
    seq: int
    time: int
    provider_id: str
    model_id: str
    directory: str


class ComponentKnown(Value):
    """What the model knows of a component: from the baseline, told since, or told to be gone."""

    key: str
    state: Literal["baseline", "told", "gone"]
    size: int
    """Of the text in force, in bytes."""
    hash: str


class RequestMade(Value):
    """A turn's request, and how much of the one before it could be reused. Without ``percent`` it was the first."""

    message_id: str
    time: int
    epoch: int
    size: int
    reused: int
    percent: int | None = None
    cause: str | None = None
    note: str | None = None


class ContextReport(Value):
    """The System Context of a session."""

    session_id: str
    epochs: tuple[EpochBegun, ...] = ()
    components: tuple[ComponentKnown, ...] = ()
    """As they stand in the newest epoch."""
    messages: tuple[SystemMessage, ...] = ()
    """Mid-Conversation System Messages of all epochs; those before the newest are no longer shown to the model."""
    requests: tuple[RequestMade, ...] = ()
    instructions: tuple[str, ...] = ()
    """Files that were met while reading."""


async def report(store: Store, session_id: str) -> ContextReport:
    """What is to be known of a session's System Context. Raises NotFound."""
    view = await store.journal.view(session_id)
    epochs, messages, requests = list[EpochBegun](), list[SystemMessage](), list[RequestMade]()
    async for seq, time, event in _events(store, session_id):
        match event:
            case EpochStarted(epoch=begun):
                epochs.append(_begun(begun, seq, time))
            case ContextAdmitted(message=message):
                messages.append(await store.queries.whole(message.but(seq=seq)))
            case TurnStarted(message=turn, prefix=prefix) if prefix is not None:
                requests.append(
                    RequestMade(
                        message_id=turn.id,
                        time=time,
                        epoch=prefix.epoch,
                        size=prefix.bytes + prefix.passing,
                        reused=prefix.reused,
                        percent=reuse_percent(prefix),
                        cause=prefix.cause,
                        note=prefix.note,
                    )
                )
            case _:
                pass
    epoch = await store.queries.whole(view.epoch) if view.epoch is not None else None
    return ContextReport(
        session_id=session_id,
        epochs=tuple(epochs),
        components=tuple(_components(epoch, messages)) if epoch is not None else (),
        messages=tuple(messages),
        requests=tuple(requests),
        instructions=view.instructions,
    )


async def _events(store: Store, session_id: str) -> AsyncIterator[Recorded]:
    after = 0
    while events := await store.journal.read(session_id, after=after, limit=PAGE):
        for recorded in events:
            yield recorded
        after = events[-1].seq


def _begun(epoch: Epoch, seq: int, time: int) -> EpochBegun:
    return EpochBegun(
        number=epoch.number,
        reason=epoch.reason,
        seq=seq,
        time=time,
        provider_id=epoch.provider_id,
        model_id=epoch.model_id,
        directory=epoch.directory,
    )


def _components(epoch: Epoch, messages: list[SystemMessage]) -> list[ComponentKnown]:
    """In the order of the baseline, then as they were told."""
    texts = {one.key: one.text for one in epoch.baseline}
    told = {update.key: update for message in messages if message.seq > epoch.seq for update in message.updates}
    keys = [*texts, *(key for key in {**told, **epoch.checkpoint} if key not in texts)]
    return [_known(key, epoch.checkpoint.get(key, GONE), texts.get(key, ""), told.get(key)) for key in keys]


def _known(key: str, hash: str, baseline: str, told: ContextUpdate | None) -> ComponentKnown:
    text = told.text if told is not None else baseline
    state: Literal["baseline", "told", "gone"] = "baseline" if told is None else "gone" if told.gone else "told"
    return ComponentKnown(key=key, state=state, size=len(text.encode()), hash=hash)
