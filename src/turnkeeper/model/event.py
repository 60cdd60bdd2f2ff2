"""Event: one durable fact about one session, in the past tense. A log consists of events.

The name on disk is ``KIND`` and the version of the shape: ``part.recorded.1``. A changed shape gets the next version,
an upcast from the old version (core/entry.py) and a golden log of the old version in the tests.

The classes are in ``model/events``. A new event is a class there and a line in the union ``Event``.
"""

from typing import TypeAlias

from turnkeeper.model.events.ask import (
    AnswerApplied,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from turnkeeper.model.events.base import EventBase
from turnkeeper.model.events.child import ChildBegun, ChildEnded
from turnkeeper.model.events.context import ContextAdmitted, EpochStarted, InstructionDiscovered
from turnkeeper.model.events.history import (
    MessageRecorded,
    MessageRemoved,
    OutputsPruned,
    PartExtended,
    PartRecorded,
    PartRemoved,
    PartsQuarantined,
)
from turnkeeper.model.events.prompt import Delivery, PromptAdmitted, PromptPromoted, PromptWithdrawn
from turnkeeper.model.events.revert import RestoreBegun, RevertCleared, RevertCommitted, RevertStaged
from turnkeeper.model.events.session import (
    AgentSelected,
    CompactingSet,
    MetadataSet,
    ModelSelected,
    PermissionsSet,
    SessionArchived,
    SessionCreated,
    SessionMoved,
    SessionRestored,
    SessionShared,
    SessionTitled,
    SessionTouched,
    SessionUnshared,
    SourceFollowed,
    SummaryRecorded,
    TodosSet,
)
from turnkeeper.model.events.turn import StatusChanged, TurnEnded, TurnStarted, UsageRecorded

Event: TypeAlias = (
    SessionCreated
    | SessionTitled
    | SessionTouched
    | SourceFollowed
    | SessionArchived
    | SessionRestored
    | SessionMoved
    | SessionShared
    | SessionUnshared
    | PermissionsSet
    | MetadataSet
    | AgentSelected
    | ModelSelected
    | SummaryRecorded
    | TodosSet
    | CompactingSet
    | RestoreBegun
    | RevertStaged
    | RevertCleared
    | RevertCommitted
    | MessageRecorded
    | MessageRemoved
    | PartRecorded
    | PartExtended
    | PartRemoved
    | OutputsPruned
    | PartsQuarantined
    | PromptAdmitted
    | PromptPromoted
    | PromptWithdrawn
    | EpochStarted
    | ContextAdmitted
    | InstructionDiscovered
    | TurnStarted
    | TurnEnded
    | UsageRecorded
    | StatusChanged
    | PermissionAsked
    | PermissionReplied
    | QuestionAsked
    | QuestionReplied
    | QuestionRejected
    | AnswerApplied
    | ChildBegun
    | ChildEnded
)

__all__ = [
    "AgentSelected",
    "AnswerApplied",
    "ChildBegun",
    "ChildEnded",
    "CompactingSet",
    "ContextAdmitted",
    "Delivery",
    "EpochStarted",
    "Event",
    "EventBase",
    "InstructionDiscovered",
    "MessageRecorded",
    "MessageRemoved",
    "MetadataSet",
    "ModelSelected",
    "OutputsPruned",
    "PartExtended",
    "PartRecorded",
    "PartRemoved",
    "PartsQuarantined",
    "PermissionAsked",
    "PermissionReplied",
    "PermissionsSet",
    "PromptAdmitted",
    "PromptPromoted",
    "PromptWithdrawn",
    "QuestionAsked",
    "QuestionRejected",
    "QuestionReplied",
    "RestoreBegun",
    "RevertCleared",
    "RevertCommitted",
    "RevertStaged",
    "SessionArchived",
    "SessionCreated",
    "SessionMoved",
    "SessionRestored",
    "SessionShared",
    "SessionTitled",
    "SessionTouched",
    "SessionUnshared",
    "SourceFollowed",
    "StatusChanged",
    "SummaryRecorded",
    "TodosSet",
    "TurnEnded",
    "TurnStarted",
    "UsageRecorded",
]
