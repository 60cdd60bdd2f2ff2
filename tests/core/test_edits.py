"""Edits: the events that lead from one session to another."""

import pytest

from turnkeeper.core.edits import FIXED, check_title, edits
from turnkeeper.core.entry import Recorded
from turnkeeper.core.projector import apply
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.permission import Rule
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Origin, Revert, Session, SessionModel, Share, Summary
from turnkeeper.testing.builders import NOW, SOME_TOKENS, a_session

BEFORE = a_session("ses_one")
TIME = BEFORE.time
RULES = (Rule(permission="bash", pattern="*", action="allow"),)
MODEL = SessionModel(id="m", provider_id="p")
MOVED = e.SessionMoved(project_id="p2", directory="/d", path="", workspace_id=None)
PLACE = ("project_id", "directory", "path", "workspace_id")
SHARED = BEFORE.but(share=Share(url="u"))
REVERTED = BEFORE.but(revert=Revert(message_id="m"))

TABLE: list[tuple[Session, dict[str, object], list[Event]]] = [
    (BEFORE, {}, []),
    (BEFORE, {"title": "New"}, [e.SessionTitled(title="New")]),
    (BEFORE, {"project_id": "p2", "directory": "/d"}, [MOVED]),
    (BEFORE, {"label": "gpu"}, [e.SessionMoved(**{name: getattr(BEFORE, name) for name in PLACE}, label="gpu")]),
    (BEFORE, {"permission": RULES}, [e.PermissionsSet(rules=RULES)]),
    (BEFORE.but(permission=RULES), {"permission": None}, [e.PermissionsSet(rules=None)]),
    (BEFORE, {"metadata": {"a": 1}}, [e.MetadataSet(metadata={"a": 1})]),
    (BEFORE, {"agent": "plan"}, [e.AgentSelected(agent="plan")]),
    (BEFORE, {"model": MODEL}, [e.ModelSelected(model=MODEL)]),
    (
        BEFORE,
        {"summary": Summary(additions=1, deletions=1, files=1)},
        [e.SummaryRecorded(summary=Summary(additions=1, deletions=1, files=1))],
    ),
    (BEFORE, {"time": TIME.but(archived=5)}, [e.SessionArchived(at=5)]),
    (BEFORE.but(time=TIME.but(archived=5)), {"time": TIME}, [e.SessionRestored()]),
    (BEFORE, {"time": TIME.but(compacting=5)}, [e.CompactingSet(at=5)]),
    (BEFORE.but(time=TIME.but(compacting=5)), {"time": TIME}, [e.CompactingSet(at=None)]),
    (BEFORE, {"time": TIME.but(updated=NOW + 1)}, [e.SessionTouched()]),
    (BEFORE, {"share": Share(url="u")}, [e.SessionShared(share=Share(url="u"))]),
    (SHARED, {"share": None}, [e.SessionUnshared()]),
    (BEFORE, {"revert": Revert(message_id="m")}, [e.RevertStaged(revert=Revert(message_id="m"))]),
    (REVERTED, {"revert": None}, [e.RevertCleared()]),
    (BEFORE, {"title": "New", "agent": "a"}, [e.SessionTitled(title="New"), e.AgentSelected(agent="a")]),
]


@pytest.mark.parametrize(("before", "changes", "events"), TABLE)
def test_an_edit_is_the_events_of_what_changed(
    before: Session, changes: dict[str, object], events: list[Event]
) -> None:
    assert edits(before, before.but(**changes)) == events


@pytest.mark.parametrize(("before", "changes", "events"), TABLE)
def test_the_events_lead_to_the_edited_session(
    before: Session, changes: dict[str, object], events: list[Event]
) -> None:
    view = SessionView(session=before, seq=1)
    for seq, event in enumerate(events, start=2):
        view = apply(view, Recorded(seq, NOW + 1, event)).view
    after = before.but(**changes)
    # Activity is the projector's to decide; all else is as the editor said.
    assert view.session.but(time=view.session.time.but(updated=0)) == after.but(time=after.time.but(updated=0))


ANOTHER: dict[str, object] = {
    "id": "ses_two",
    "slug": "other-slug",
    "parent_id": "ses_parent",
    "origin": Origin(session_id="ses_x"),
    "version": "9",
    "cost": 5,
    "tokens": SOME_TOKENS,
    "extra": {"set": {"a": 1}},
}


@pytest.mark.parametrize("name", FIXED)
def test_what_is_fixed_cannot_be_edited(name: str) -> None:
    with pytest.raises(Invalid, match=f"a session's {name} cannot be edited"):
        edits(BEFORE, BEFORE.but(**{name: ANOTHER[name]}))


def test_the_time_of_creation_cannot_be_edited() -> None:
    with pytest.raises(Invalid, match=r"time\.created"):
        edits(BEFORE, BEFORE.but(time=TIME.but(created=1)))


def test_every_field_is_either_fixed_or_leads_to_an_event() -> None:
    edited = {name for _, changes, _ in TABLE for name in changes} | {"path", "workspace_id"}
    assert edited | set(FIXED) == set(Session.__struct_fields__)


@pytest.mark.parametrize(("given", "kept"), [("A title", "A title"), ("  two\n lines\t", "two lines")])
def test_a_title_is_one_line(given: str, kept: str) -> None:
    assert check_title(given) == kept


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_a_blank_title_is_refused(blank: str) -> None:
    with pytest.raises(Invalid, match="give at least one word"):
        check_title(blank)


def test_a_title_is_not_endless() -> None:
    with pytest.raises(Invalid, match="at most 1000 characters"):
        check_title("x" * 1001)
