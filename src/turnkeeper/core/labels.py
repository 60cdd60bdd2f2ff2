"""Labels: which hosts may run a session.

A session has one label or none. A host declares labels, which stand for what it has: a directory, a GPU, a network. A
session with a label is run by hosts with this label only. One without is run by every host, except those that were
started for their labels only.
"""

import re
from collections.abc import Collection
from typing import Final

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject, Value

LABEL_CHARS_MAX: Final = 32
_LABEL: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LABEL_CHARS_MAX - 1}}}")


class HostLabels(Value):
    """The labels that a host declares."""

    labels: tuple[str, ...] = ()
    only: bool = False
    """Whether it runs no sessions without a label."""

    def runs(self, label: str | None) -> bool:
        """Whether a session with this label, or without one, may be run here."""
        return label in self.labels if label is not None else not self.only


ANY_HOST: Final = HostLabels()
"""A host without labels."""


def check_label(label: object) -> str:
    """The label. Raises Invalid if it is none."""
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise Invalid(
            f"{label!r:.80} cannot be a label; it has letters, digits, '.', '_' and '-', at most {LABEL_CHARS_MAX}"
        )
    return label


def wanted_label(label: str | None, metadata: JsonObject | None) -> object:
    """The label that a new session is given: ``label``, or else ``metadata.label``. Raises Invalid if they differ."""
    said = (metadata or {}).get("label")
    if label is not None and said is not None and said != label:
        raise Invalid(
            f"the label {label!r:.80} and metadata.label {said!r:.80} contradict each other; give one of them"
        )
    return label if label is not None else said


def check_metadata(session_id: str, metadata: JsonObject, label: str | None) -> None:
    """Raise Invalid if metadata has another label than its session."""
    if "label" in metadata and metadata["label"] != label:
        raise Invalid(
            f"a session's label is not edited by its metadata, and {metadata['label']!r:.80} is another; "
            f"`turnkeeper session move {session_id}` with --label or --no-label changes it"
        )


def moved_metadata(metadata: JsonObject | None, label: str | None) -> JsonObject | None:
    """The metadata of a session that gets another label. A label in it is replaced by the new one, or removed."""
    if metadata is None or "label" not in metadata:
        return metadata
    rest = {name: value for name, value in metadata.items() if name != "label"}
    return {"label": label, **rest} if label is not None else rest


def declared(labels: Collection[str], *, only: bool) -> HostLabels:
    """The labels of a host. Raises Invalid if one is none, or if there is none to be restricted to."""
    if only and not labels:
        raise Invalid("a host for labelled sessions only needs a label; give --label, too")
    return HostLabels(labels=tuple(sorted({check_label(label) for label in labels})), only=only)


def why_not_here(session_id: str, label: str | None, here: HostLabels) -> str:
    """Why a host may not run a session, and what to do."""
    if label is not None:
        needs, worker, move = f"with label {label!r}", f"worker --label {label}", "--no-label"
    else:
        needs, worker, move = "for sessions without a label", "worker", f"--label {here.labels[0]}"
    return (
        f"session {session_id!r} is run by hosts {needs}, and this is none; start `turnkeeper {worker}` where it can "
        f"be run and send prompts with `run --server URL`, or use `turnkeeper session move {session_id} {move}`"
    )


def why_no_host(label: str | None, workers: Collection[HostLabels]) -> str:
    """Why no worker takes a session; empty if one of these may."""
    if any(worker.runs(label) for worker in workers):
        return ""
    if not workers:
        return "no worker"
    return f"no host with label {label}" if label is not None else "no host for sessions without a label"
