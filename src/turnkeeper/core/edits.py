"""Edits: the events that turn one session value into another, for a caller's read-modify-write."""

from turnkeeper.core.limits import TITLE_CHARS_MAX
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session

FIXED = ("id", "slug", "parent_id", "origin", "version", "cost", "tokens", "extra")
"""Fields that no edit may change: identity, and totals that come from the ledger."""


def edits(before: Session, after: Session) -> list[Event]:
    """The events that lead from one session to the other. Raises Invalid if a fixed field differs."""
    for name in FIXED:
        if getattr(before, name) != getattr(after, name):
            raise Invalid(f"a session's {name} cannot be edited")
    if before.time.created != after.time.created:
        raise Invalid("a session's time.created cannot be edited")
    facts: list[Event] = []
    if before.title != after.title:
        facts.append(e.SessionTitled(title=check_title(after.title)))
    place = ("project_id", "directory", "path", "workspace_id", "label")
    if any(getattr(before, name) != getattr(after, name) for name in place):
        facts.append(e.SessionMoved(**{name: getattr(after, name) for name in place}))
    if before.permission != after.permission:
        facts.append(e.PermissionsSet(rules=after.permission))
    if before.metadata != after.metadata:
        facts.append(e.MetadataSet(metadata=after.metadata))
    if before.agent != after.agent:
        facts.append(e.AgentSelected(agent=after.agent))
    if before.model != after.model:
        facts.append(e.ModelSelected(model=after.model))
    if before.summary != after.summary:
        facts.append(e.SummaryRecorded(summary=after.summary))
    facts += _time_edits(before, after)
    if before.share != after.share:
        facts.append(e.SessionUnshared() if after.share is None else e.SessionShared(share=after.share))
    if before.revert != after.revert:
        facts.append(e.RevertCleared() if after.revert is None else e.RevertStaged(revert=after.revert))
    return facts


def check_title(title: object) -> str:
    """The title as one line. Raises Invalid if it is blank or too long."""
    if not isinstance(title, str):
        raise Invalid(f"a title is text, not {type(title).__name__}")
    cleaned = " ".join(title.split())
    if not cleaned:
        raise Invalid("a title may not be empty; give at least one word")
    if len(cleaned) > TITLE_CHARS_MAX:
        raise Invalid(f"a title has at most {TITLE_CHARS_MAX} characters, not {len(cleaned)}; shorten it")
    return cleaned


def _time_edits(before: Session, after: Session) -> list[Event]:
    facts: list[Event] = []
    if before.time.archived != after.time.archived:
        at = after.time.archived
        facts.append(e.SessionRestored() if at is None else e.SessionArchived(at=at))
    if before.time.compacting != after.time.compacting:
        facts.append(e.CompactingSet(at=after.time.compacting))
    if before.time.updated != after.time.updated:
        facts.append(e.SessionTouched())
    return facts
