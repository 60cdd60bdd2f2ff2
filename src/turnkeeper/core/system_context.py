"""System Context: which epoch a turn runs in, and what news the model must be told before it. Pure.

``reconcile`` is the only place that decides either. It gives at most one event: an epoch begins, or changes are
admitted as one Mid-Conversation System Message; never both.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeAlias

from turnkeeper.model.context import Absent, ComponentText, Epoch, EpochReason, Loaded, Sample, Unavailable
from turnkeeper.model.message import ContextUpdate
from turnkeeper.model.value import Value

INSTRUCTIONS = "core/instructions/"
"""Keys of instruction sources begin like this; the rest of the key is the path or address itself."""

GONE = ""
"""The checkpoint's entry for a component that was told to be gone."""

Samples: TypeAlias = Sequence[tuple[str, Sample]]
"""One sample of every component, in the order of declaration."""


class Circumstances(Value):
    """What, besides the components, decides which epoch a turn belongs to."""

    provider_id: str
    model_id: str
    directory: str
    compacted_at: int = 0
    """The place of the newest completed compaction in the log; 0 if there is none."""


class Admission(Value):
    """News for the model, and the checkpoint that knows of it."""

    updates: tuple[ContextUpdate, ...]
    checkpoint: dict[str, str]


class DuplicateComponent(Exception):
    """Two components have the same key: the context cannot be put together."""


def reconcile(samples: Samples, epoch: Epoch | None, now: Circumstances) -> Epoch | Admission | None:
    """The epoch to begin, or the changes to admit, or None if the model knows everything."""
    check_keys(samples)
    reason = _reason(epoch, now)
    if reason is not None:
        return begin(samples, epoch, now, reason)
    assert epoch is not None, "without an epoch one begins"
    return _changes(samples, epoch)


def begin(samples: Samples, before: Epoch | None, now: Circumstances, reason: EpochReason) -> Epoch:
    """A new epoch: the baseline of all that is there, and the checkpoint that goes with it.

    What cannot be loaded now is left out, and told as news once it can.
    """
    there = [(key, sample) for key, sample in samples if isinstance(sample, Loaded)]
    return Epoch(
        number=before.number + 1 if before is not None else 1,
        reason=reason,
        provider_id=now.provider_id,
        model_id=now.model_id,
        directory=now.directory,
        baseline=tuple(ComponentText(key=key, text=one.baseline) for key, one in there if one.baseline),
        checkpoint={key: fingerprint(sample) for key, sample in there},
    )


def fingerprint(sample: Loaded) -> str:
    """The hash by which a change of a component is told: of its update text, which states the whole current value."""
    return sha256(sample.update.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def check_keys(samples: Samples) -> None:
    """Every key stands for one component."""
    seen: set[str] = set()
    for key, _ in samples:
        if key in seen:
            raise DuplicateComponent(f"two Context Components have the key {key!r}; keys must differ")
        seen.add(key)


def _reason(epoch: Epoch | None, now: Circumstances) -> EpochReason | None:
    """Why a new epoch begins; None if the present one goes on."""
    if epoch is None:
        return "start"
    if now.compacted_at > epoch.seq:
        return "compaction"
    if (epoch.provider_id, epoch.model_id) != (now.provider_id, now.model_id):
        return "model"
    return "move" if epoch.directory != now.directory else None


def _changes(samples: Samples, epoch: Epoch) -> Admission | None:
    updates: list[ContextUpdate] = []
    checkpoint = dict(epoch.checkpoint)
    for key, sample in samples:
        match sample:
            case Unavailable():
                pass
            case Loaded(update=update):
                now = fingerprint(sample)
                if checkpoint.get(key) != now:
                    checkpoint[key] = now
                    if update:
                        updates.append(ContextUpdate(key=key, text=update))
            case Absent(removal=removal):
                if checkpoint.get(key, GONE) != GONE:
                    checkpoint[key] = GONE
                    if removal:
                        updates.append(ContextUpdate(key=key, text=removal))
    updates.extend(_revoked({key for key, _ in samples}, checkpoint))
    return Admission(updates=tuple(updates), checkpoint=checkpoint) if updates else None


def _revoked(sampled: set[str], checkpoint: dict[str, str]) -> list[ContextUpdate]:
    """Instruction sources that are no longer found: they are revoked by name. Others just leave with the epoch."""
    gone = [
        key
        for key, known in checkpoint.items()
        if key.startswith(INSTRUCTIONS) and key not in sampled and known != GONE
    ]
    for key in gone:
        checkpoint[key] = GONE
    return [ContextUpdate(key=key, text=revocation(key.removeprefix(INSTRUCTIONS))) for key in gone]


def revocation(source: str) -> str:
    """What the model is told of instructions that are no more."""
    return f"The instructions from {source} no longer apply."
