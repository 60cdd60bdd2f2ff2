"""Plan mode in a turn: where the plan file is, and the reminders that prompts get."""

import os
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from turnkeeper.context.texts import text
from turnkeeper.core.agents import PLAN, PLANS
from turnkeeper.core.entry import Recorded
from turnkeeper.core.history import History, extend, visible
from turnkeeper.core.plan_mode import Reminder, plan_name, plan_rules, reminder_part, wanted_reminder
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import PartRecorded
from turnkeeper.model.message import UserMessage
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.session import Session
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.workspace import files, paths
from turnkeeper.workspace.project import ProjectPlace


class PlanFile(NamedTuple):
    """The plan file of a session, which need not exist."""

    path: Path
    top: Path
    """The top of the project, without links."""

    @classmethod
    def of(cls, session: Session, place: ProjectPlace, environ: Mapping[str, str]) -> "PlanFile":
        """In the repository if there is one, else in the data directory."""
        folder = place.worktree / PLANS if place.vcs is not None else paths.data(environ) / "plans"
        return cls(files.real(folder) / plan_name(session), place.top)

    @property
    def outside(self) -> list[str]:
        """The directory of the file, if it is not in the project."""
        return [] if self.path.is_relative_to(self.top) else [str(self.path.parent)]

    def rules(self, rules: Ruleset, agent: Agent, session: Session) -> Ruleset:
        """The rules of an agent in a session, about this file."""
        # As tools write paths: from the top of the project, and absolute outside of it.
        name = str(self.path) if self.outside else os.path.relpath(self.path, self.top)
        composed = unicodedata.normalize("NFC", name)
        return plan_rules(rules, agent, session, (name, composed, composed.casefold()))

    def reminder(self, reminder: Reminder) -> str:
        """The words of a reminder: they depend on whether there is a plan."""
        exists = os.path.isfile(self.path)
        if reminder == "enter":
            words, about = "plan_workflow", "plan_exists" if exists else "plan_missing"
        else:
            words, about = "build_switch", "plan_approved" if exists else ""
        said = text(words).replace("{about}", text(about) if about else "").replace("{plan}", str(self.path))
        return said.replace("\n\n</system-reminder>", "\n</system-reminder>")


async def remind(
    writer: FencedWriter,
    view: SessionView,
    history: History,
    user: UserMessage,
    agent: Agent,
    plan: PlanFile,
    mint: Mint,
) -> tuple[SessionView, History]:
    """Record the reminder that the newest prompt gets, if it gets one; the session and its history after it."""
    # What a compaction hides matters only to an agent that needs the workflow.
    entries = visible(history.entries) if agent.name == PLAN else history.entries
    reminder = wanted_reminder(entries, agent)
    if reminder is None:
        return view, history
    event = PartRecorded(part=reminder_part(user, reminder, plan.reminder(reminder), mint.part_id()))
    view = await writer.append(event, at="remind")
    return view, extend(history, Recorded(view.seq, mint.now(), event))
