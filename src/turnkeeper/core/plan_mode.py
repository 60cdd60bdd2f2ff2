"""Plan mode: the plan file of a session, the rules about it, and the reminder after a switch to or from planning.

| Agent of the next turn | The model was shown | Reminder |
|---|---|---|
| plan | no workflow since another agent answered | the workflow, with the plan file |
| another | an answer of plan, and no reminder since | that it may change files; the plan file, if there is one |
| any | the reminder already | none |
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

from turnkeeper.core.agents import PLAN, PLANS
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.permission import evaluate
from turnkeeper.model.agent import Agent
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import Part, TextPart
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.session import Session
from turnkeeper.text import wildcard

MARK: Final = "plan_mode"
"""The metadata key of a reminder."""
Reminder: TypeAlias = Literal["enter", "leave"]
_ANY: Final = "/"
"""Matches patterns about everything, and none about some files."""


def plan_name(session: Session) -> str:
    """The name of the plan file of a session."""
    return f"{int(session.time.created)}-{re.sub(r'[^A-Za-z0-9_-]+', '-', session.slug)}.md"


def plan_rules(rules: Ruleset, agent: Agent, session: Session, own: Iterable[str]) -> Ruleset:
    """The rules of an agent in a session: of the plan files the plan agent may write only that of the session.

    ``own`` are the paths from the top of the project that stand for this file. Rules that let the agent write
    everything, or no plan file either, stay as they are.
    """
    may_plan = evaluate(rules, "edit", f"{PLANS}/{plan_name(session)}")
    if agent.name != PLAN or may_plan == "deny" or evaluate(rules, "edit", _ANY) != "deny":
        return rules
    others = Rule(permission="edit", pattern=f"{PLANS}/*.md", action="deny")
    mine = (Rule(permission="edit", pattern=wildcard.literal(one), action=may_plan) for one in dict.fromkeys(own))
    return (*rules, others, *mine)


def wanted_reminder(entries: Sequence[HistoryItem], agent: Agent) -> Reminder | None:
    """The reminder that the newest prompt gets. ``entries`` are those that a model is shown."""
    is_planning = agent.name == PLAN
    switch: Reminder = "enter" if is_planning else "leave"
    for entry in reversed(entries):
        if (told := _told(entry.parts)) is not None:
            return None if told == switch else switch
        message = entry.message
        if isinstance(message, AssistantMessage) and not message.summary:
            if (message.agent == PLAN) != is_planning:
                return switch
            if not is_planning:
                return None
    # A compaction may have taken the workflow away.
    return switch if is_planning else None


def reminder_part(user: UserMessage, reminder: Reminder, text: str, part_id: str) -> TextPart:
    """The part that a reminder is stored as."""
    return TextPart(
        id=part_id,
        session_id=user.session_id,
        message_id=user.id,
        text=text,
        synthetic=True,
        metadata={MARK: reminder},
    )


def _told(parts: Iterable[Part]) -> object:
    marks = [(part.metadata or {}).get(MARK) for part in parts if isinstance(part, TextPart)]
    return next((mark for mark in reversed(marks) if mark is not None), None)
