"""Report the System Context of a session, and how much of each request its provider could reuse, from the log."""

from typing import Literal

from turnkeeper.core.prefix import reuse_percent
from turnkeeper.core.system_context import GONE
from turnkeeper.core.view import SessionView
from turnkeeper.model.context import Epoch, EpochReason
from turnkeeper.model.event import ContextAdmitted, EpochStarted, TurnStarted
from turnkeeper.model.message import ContextUpdate, SystemMessage
from turnkeeper.model.value import Value
from turnkeeper.sessions.timeline import events
from turnkeeper.store.store import Store


class EpochBegun(Value):
    """The start of an epoch: its time, its reason, its model and its directory."""

    number: int
    reason: EpochReason
    seq: int
    time: int
    provider_id: str
    model_id: str
    directory: str


class ComponentKnown(Value):
    """The version of a component that the model has: from the baseline, from an update, or removed by an update."""

    key: str
    state: Literal["baseline", "told", "gone"]
    size: int
    """The bytes of the current text."""
    hash: str


class RequestMade(Value):
    """The request of a turn, and how much of the previous request it repeats. ``percent`` is None for the first."""

    message_id: str
    time: int
    epoch: int
    size: int
    reused: int
    percent: int | None
    cause: str | None
    note: str | None
    changes: tuple[str, ...]
    """The changes of plugins to it, each as ``plugin: what``."""


class ContextReport(Value):
    """The System Context of a session. No field has a default, so that JSON has the empty ones too."""

    session_id: str
    epochs: tuple[EpochBegun, ...]
    components: tuple[ComponentKnown, ...]
    """The components of the newest epoch."""
    messages: tuple[SystemMessage, ...]
    """The Mid-Conversation System Messages of all epochs. The model is only sent those of the newest."""
    requests: tuple[RequestMade, ...]
    instructions: tuple[str, ...]
    """Instruction files that were discovered next to files the model read."""


async def report(store: Store, view: SessionView) -> ContextReport:
    """The System Context of a session at the moment of its view."""
    epochs, messages, requests = list[EpochBegun](), list[SystemMessage](), list[RequestMade]()
    async for seq, time, event in events(store, view.session.id, until=view.seq):
        match event:
            case EpochStarted(epoch=begun):
                epochs.append(
                    EpochBegun(
                        number=begun.number,
                        reason=begun.reason,
                        seq=seq,
                        time=time,
                        provider_id=begun.provider_id,
                        model_id=begun.model_id,
                        directory=begun.directory,
                    )
                )
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
                        changes=prefix.changes,
                    )
                )
            case _:
                pass
    epoch = await store.queries.whole(view.epoch) if view.epoch is not None else None
    return ContextReport(
        session_id=view.session.id,
        epochs=tuple(epochs),
        components=tuple(_components(epoch, messages)) if epoch is not None else (),
        messages=tuple(messages),
        requests=tuple(requests),
        instructions=view.instructions,
    )


def _components(epoch: Epoch, messages: list[SystemMessage]) -> list[ComponentKnown]:
    """The components in the order of the baseline, followed by those that only updates have."""
    texts = {one.key: one.text for one in epoch.baseline}
    updates = {update.key: update for message in messages if message.seq > epoch.seq for update in message.updates}
    keys = [*texts, *(key for key in {**updates, **epoch.checkpoint} if key not in texts)]
    return [_known(key, epoch.checkpoint.get(key, GONE), texts.get(key, ""), updates.get(key)) for key in keys]


def _known(key: str, hash: str, baseline: str, update: ContextUpdate | None) -> ComponentKnown:
    text = update.text if update is not None else baseline
    state: Literal["baseline", "told", "gone"] = "baseline" if update is None else "gone" if update.gone else "told"
    return ComponentKnown(key=key, state=state, size=len(text.encode()), hash=hash)
