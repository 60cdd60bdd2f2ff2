"""Types that signatures and fields of the public interface name, besides those that most programs need."""

from turnkeeper.bus import Listener, Subscription
from turnkeeper.core.blame import WritingCall
from turnkeeper.core.entry import Recorded
from turnkeeper.core.labels import HostLabels
from turnkeeper.core.lease import Terms
from turnkeeper.core.recall import RecallHit, RecallPage
from turnkeeper.core.sandbox import Confinement
from turnkeeper.core.session_diff import ContextDiff, FieldDiff, MessageDiff, RulesDiff
from turnkeeper.core.sharing import ShareSettings
from turnkeeper.interop.export_all import ExportLayout
from turnkeeper.interop.report import ImportReport, ProgressReport
from turnkeeper.interop.shared_session import SharedSession
from turnkeeper.interop.transcripts import ProgramName
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.cluster import ClusterReport
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.mcp import McpInstructions
from turnkeeper.model.message import JsonSchemaFormat, ModelName, TextFormat
from turnkeeper.model.parts import (
    AgentPart,
    CompactionPart,
    ForeignPart,
    PatchPart,
    RetryPart,
    SnapshotPart,
    StepFinishPart,
    StepStartPart,
    SubtaskPart,
)
from turnkeeper.model.parts.base import Mention, Span
from turnkeeper.model.parts.file import FileSource, ResourceSource, SymbolSource
from turnkeeper.model.parts.tool import RunningTime, SettledTime
from turnkeeper.model.permission import Absence, PermissionAnswer
from turnkeeper.model.redaction import RedactionReport
from turnkeeper.model.request import ToolDefinition
from turnkeeper.model.session import CacheTokens, SessionModel
from turnkeeper.model.share import ShareLink
from turnkeeper.model.skill import Skill
from turnkeeper.model.status import Owner
from turnkeeper.model.stream import (
    File,
    Finish,
    FinishStep,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Start,
    StartStep,
    StreamError,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolFailed,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    ToolResult,
    Usage,
    UsageCounted,
)
from turnkeeper.model.value import JsonObject
from turnkeeper.plugins.plugin import Limits
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.registry import Registration
from turnkeeper.run.leases import Pace
from turnkeeper.run.recover import Failed, Left, Recovery
from turnkeeper.run.summarise import Hooks
from turnkeeper.sessions.context import ContextReport
from turnkeeper.sessions.diagnosis import Diagnosis
from turnkeeper.store.damaged import DamagedNames
from turnkeeper.store.queries import SearchHit
from turnkeeper.tools.delegation import Delegation
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.tool import AskPermission, AskQuestions, HandOver, Progress, Recall, Tool
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.project import ProjectPlace

__all__ = [
    "Absence",
    "AgentPart",
    "AskPermission",
    "AskQuestions",
    "CacheTokens",
    "ClusterReport",
    "CompactionPart",
    "Confinement",
    "ContextDiff",
    "ContextReport",
    "DamagedNames",
    "Delegation",
    "Diagnosis",
    "Endpoint",
    "ExportLayout",
    "Failed",
    "FieldDiff",
    "File",
    "FileSource",
    "Finish",
    "FinishStep",
    "ForeignPart",
    "HandOver",
    "Hooks",
    "HostLabels",
    "ImportReport",
    "Jobs",
    "JsonObject",
    "JsonSchemaFormat",
    "LedgerRow",
    "Left",
    "Limits",
    "Listener",
    "McpInstructions",
    "Mention",
    "MessageDiff",
    "ModelInfo",
    "ModelName",
    "Owner",
    "Pace",
    "PatchPart",
    "PermissionAnswer",
    "ProgramName",
    "Progress",
    "ProgressReport",
    "ProjectPlace",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "Recall",
    "RecallHit",
    "RecallPage",
    "Recorded",
    "Recovery",
    "RedactionReport",
    "Registration",
    "ResourceSource",
    "RetryPart",
    "RulesDiff",
    "RunningTime",
    "SearchHit",
    "SessionModel",
    "SettledTime",
    "ShareLink",
    "ShareSettings",
    "SharedSession",
    "Skill",
    "SnapshotPart",
    "Span",
    "Start",
    "StartStep",
    "StepFinishPart",
    "StepStartPart",
    "StreamError",
    "Subscription",
    "SubtaskPart",
    "SymbolSource",
    "Terms",
    "TextDelta",
    "TextEnd",
    "TextFormat",
    "TextStart",
    "Tool",
    "ToolCall",
    "ToolDefinition",
    "ToolFailed",
    "ToolInputDelta",
    "ToolInputEnd",
    "ToolInputStart",
    "ToolResult",
    "ToolServices",
    "Usage",
    "UsageCounted",
    "WritingCall",
]
