"""System Context: the epoch of a turn, and the changed components that are announced to the model before it.

``reconcile`` decides both. It gives at most one event: an epoch begins, or changes are admitted as one
Mid-Conversation System Message.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from typing import TypeAlias

from turnkeeper.core.history import is_completed_summary
from turnkeeper.model.context import Absent, ComponentText, Epoch, EpochReason, Loaded, Sample, Unavailable
from turnkeeper.model.event import ContextAdmitted, EpochStarted
from turnkeeper.model.message import AssistantMessage, ContextUpdate, Message, MessageTime, SystemMessage
from turnkeeper.model.value import Value

INSTRUCTIONS = "core/instructions/"
"""The key prefix of instruction sources; the rest of the key is the path or URL.

A sample under the prefix itself stands for all of them, if they could not be listed.
"""

OURS = "core/"
"""The prefix of the keys of built-in components."""

REMOVED = "What you were told by {key} no longer applies: it is not there any more."
"""The update text for a component of a plugin or program that is no longer registered."""

GONE = ""
"""The checkpoint entry of a component whose removal was announced."""

Samples: TypeAlias = Sequence[tuple[str, Sample]]
"""One sample of every component, in the order of declaration."""


class Circumstances(Value):
    """The facts besides the components that decide the epoch of a turn."""

    provider_id: str
    model_id: str
    directory: str
    compacted_at: int = 0
    """The seq of the newest completed compaction; 0 if there is none."""


class ContextNews(Value):
    """Changed components to announce to the model, and the checkpoint that includes them."""

    updates: tuple[ContextUpdate, ...]
    checkpoint: dict[str, str]


class DuplicateComponent(Exception):
    """Two components have the same key."""


def reconcile(
    samples: Samples, epoch: Epoch | None, now: Circumstances, told: Sequence[ContextUpdate] = ()
) -> Epoch | ContextNews | None:
    """The epoch to begin, or the changes to admit; None if nothing changed.

    ``told`` are the updates of this epoch that the history holds, in order.
    """
    check_keys(samples)
    reason = reason_to_begin(epoch, now)
    if reason is not None:
        return _begin(samples, epoch, now, reason, told)
    assert epoch is not None, "without an epoch one begins"
    return _changes(samples, known(epoch, told))


def context_event(
    decided: Epoch | ContextNews | None, session_id: str, message_id: Callable[[], str], now: int
) -> EpochStarted | ContextAdmitted | None:
    """The event of a decision of ``reconcile``."""
    if decided is None:
        return None
    if isinstance(decided, Epoch):
        return EpochStarted(epoch=decided)
    time, updates = MessageTime(created=now), decided.updates
    message = SystemMessage(id=message_id(), session_id=session_id, time=time, updates=updates)
    return ContextAdmitted(message=message, checkpoint=decided.checkpoint)


def reason_to_begin(epoch: Epoch | None, now: Circumstances) -> EpochReason | None:
    """Why a new epoch begins; None if the current epoch continues."""
    if epoch is None:
        return "start"
    if now.compacted_at > epoch.seq:
        return "compaction"
    if (epoch.provider_id, epoch.model_id) != (now.provider_id, now.model_id):
        return "model"
    if epoch.is_over:
        return "revert"
    return "move" if epoch.directory != now.directory else None


def known(epoch: Epoch, told: Iterable[ContextUpdate]) -> dict[str, str]:
    """The checkpoint of an epoch, without updates that were removed from the history: they are announced again."""
    if epoch.initial is None:
        return dict(epoch.checkpoint)
    checkpoint = dict(epoch.initial)
    for update in told:
        checkpoint[update.key] = GONE if update.gone else _hash(update.text)
    return checkpoint


def look_back(messages: Iterable[Message], epoch_seq: int) -> tuple[int, list[ContextUpdate]]:
    """The seq of the newest completed Summary since ``epoch_seq`` (0 if there is none), and the updates, in order.

    ``messages`` are newest first.
    """
    compacted_at = 0
    told: list[SystemMessage] = []
    for message in messages:
        if message.seq <= epoch_seq:
            break
        if isinstance(message, SystemMessage):
            told.append(message)
        elif isinstance(message, AssistantMessage) and is_completed_summary(message):
            compacted_at = max(compacted_at, message.seq)
    return compacted_at, [update for message in reversed(told) for update in message.updates]


def fingerprint(sample: Loaded) -> str:
    """The hash that detects a change of a component: of its update text, which is the whole current value."""
    return _hash(sample.update)


def check_keys(samples: Samples) -> None:
    """Raise DuplicateComponent if two samples have one key."""
    seen: set[str] = set()
    for key, _ in samples:
        if key in seen:
            raise DuplicateComponent(f"two Context Components have the key {key!r}; keys must differ")
        seen.add(key)


def revocation(source: str) -> str:
    """The update text for an instruction source that was removed."""
    return f"The instructions from {source} no longer apply."


def _begin(
    samples: Samples, before: Epoch | None, now: Circumstances, reason: EpochReason, told: Sequence[ContextUpdate]
) -> Epoch:
    """A new epoch: the baseline of all loaded components, and its checkpoint.

    An unavailable component keeps its text of the previous epoch. In another directory, where that text may be wrong,
    or without such a text, it is left out and announced once it is loaded.
    """
    kept = _kept(before, told) if before is not None and before.directory == now.directory else {}
    baseline: list[ComponentText] = []
    checkpoint: dict[str, str] = {}
    for key, sample in samples:
        match sample:
            case Loaded():
                baseline.append(ComponentText(key=key, text=sample.baseline))
                checkpoint[key] = fingerprint(sample)
            case Unavailable():
                for one in (one for one in kept if one == key or (key == INSTRUCTIONS and one.startswith(key))):
                    baseline.append(ComponentText(key=one, text=kept[one][0]))
                    checkpoint[one] = kept[one][1]
            case Absent():
                pass
    return Epoch(
        number=before.number + 1 if before is not None else 1,
        reason=reason,
        provider_id=now.provider_id,
        model_id=now.model_id,
        directory=now.directory,
        baseline=tuple(one for one in baseline if one.text),
        checkpoint=checkpoint,
        initial=checkpoint,
    )


def _kept(before: Epoch, told: Sequence[ContextUpdate]) -> dict[str, tuple[str, str]]:
    """The last announced text of each component in the previous epoch, and its hash."""
    texts = {one.key: one.text for one in before.baseline} | {one.key: one.text for one in told}
    checkpoint = known(before, told)
    return {key: (texts[key], hash) for key, hash in checkpoint.items() if hash != GONE and key in texts}


def _changes(samples: Samples, checkpoint: dict[str, str]) -> ContextNews | None:
    """The components whose announced value is outdated. The checkpoint of an unavailable component stays."""
    updates: list[ContextUpdate] = []
    for key, sample in samples:
        match sample:
            case Loaded(update=update) if update and checkpoint.get(key) != fingerprint(sample):
                checkpoint[key] = fingerprint(sample)
                updates.append(ContextUpdate(key=key, text=update))
            case Absent(removal=removal) if removal and checkpoint.get(key, GONE) != GONE:
                checkpoint[key] = GONE
                updates.append(ContextUpdate(key=key, text=removal, gone=True))
            case _:
                pass
    updates.extend(_revoked({key for key, _ in samples}, checkpoint))
    return ContextNews(updates=tuple(updates), checkpoint=checkpoint) if updates else None


def _revoked(sampled: set[str], checkpoint: dict[str, str]) -> Iterator[ContextUpdate]:
    """Updates that revoke texts without a sample: instruction sources, and components that are no longer registered."""
    for key, hash in list(checkpoint.items()):
        if key in sampled or hash == GONE:
            continue
        if key.startswith(INSTRUCTIONS):
            words = revocation(key.removeprefix(INSTRUCTIONS)) if INSTRUCTIONS not in sampled else None
        else:
            words = None if key.startswith(OURS) else REMOVED.format(key=key)
        if words is not None:
            checkpoint[key] = GONE
            yield ContextUpdate(key=key, text=words, gone=True)


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
