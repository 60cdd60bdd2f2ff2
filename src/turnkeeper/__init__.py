"""Turnkeeper keeps every turn: a runtime, server and command line for durable AI-agent sessions.

async with turnkeeper.open("sqlite:sessions.db") as tk:
    answer = await tk.ask("What does this project do?")
    print(answer.text)
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.model.version import __version__

if TYPE_CHECKING:
    from msgspec import Meta as Meta
    from msgspec import Struct as Struct

    from turnkeeper.api.agent import Agent as Agent
    from turnkeeper.api.blocking import BlockingTurnkeeper as BlockingTurnkeeper
    from turnkeeper.api.named_types import *  # noqa: F403  # A test compares them with the table below.
    from turnkeeper.api.streamed_answer import StreamedAnswer as StreamedAnswer
    from turnkeeper.api.turnkeeper import Turnkeeper as Turnkeeper
    from turnkeeper.app import AskOptions as AskOptions
    from turnkeeper.app import OpenOptions as OpenOptions
    from turnkeeper.app import ask as ask
    from turnkeeper.app import ask_sync as ask_sync
    from turnkeeper.bus import Overflow as Overflow
    from turnkeeper.context.component import ContextComponent as ContextComponent
    from turnkeeper.context.component import Sampling as Sampling
    from turnkeeper.context.custom import component as component
    from turnkeeper.core.blame import Blame as Blame
    from turnkeeper.core.blame import BlamedLine as BlamedLine
    from turnkeeper.core.blame import LineOrigin as LineOrigin
    from turnkeeper.core.entry import Damaged as Damaged
    from turnkeeper.core.session_diff import SessionDiff as SessionDiff
    from turnkeeper.mint import Mint as Mint
    from turnkeeper.model.answer import Answer as Answer
    from turnkeeper.model.answer import TurnFailed as TurnFailed
    from turnkeeper.model.command import Command as Command
    from turnkeeper.model.context import Absent as Absent
    from turnkeeper.model.context import Loaded as Loaded
    from turnkeeper.model.context import Unavailable as Unavailable
    from turnkeeper.model.failure import AbortedFailure as AbortedFailure
    from turnkeeper.model.failure import ApiFailure as ApiFailure
    from turnkeeper.model.failure import AuthFailure as AuthFailure
    from turnkeeper.model.failure import ContentFilterFailure as ContentFilterFailure
    from turnkeeper.model.failure import Failure as Failure
    from turnkeeper.model.failure import OutputLengthFailure as OutputLengthFailure
    from turnkeeper.model.failure import OverflowFailure as OverflowFailure
    from turnkeeper.model.failure import StructuredOutputFailure as StructuredOutputFailure
    from turnkeeper.model.failure import UnknownFailure as UnknownFailure
    from turnkeeper.model.file_change import FileChange as FileChange
    from turnkeeper.model.message import AssistantMessage as AssistantMessage
    from turnkeeper.model.message import Message as Message
    from turnkeeper.model.message import ModelChoice as ModelChoice
    from turnkeeper.model.message import SystemMessage as SystemMessage
    from turnkeeper.model.message import UserMessage as UserMessage
    from turnkeeper.model.message_with_parts import MessageWithParts as MessageWithParts
    from turnkeeper.model.notification import AnyNotification as AnyNotification
    from turnkeeper.model.notification import Delta as Delta
    from turnkeeper.model.notification import DiffUpdated as DiffUpdated
    from turnkeeper.model.notification import MessageDeleted as MessageDeleted
    from turnkeeper.model.notification import MessageUpdated as MessageUpdated
    from turnkeeper.model.notification import Notification as Notification
    from turnkeeper.model.notification import PartDeleted as PartDeleted
    from turnkeeper.model.notification import PartUpdated as PartUpdated
    from turnkeeper.model.notification import PermissionSettled as PermissionSettled
    from turnkeeper.model.notification import PermissionWaits as PermissionWaits
    from turnkeeper.model.notification import QuestionSettled as QuestionSettled
    from turnkeeper.model.notification import QuestionWaits as QuestionWaits
    from turnkeeper.model.notification import SessionAdded as SessionAdded
    from turnkeeper.model.notification import SessionCompacted as SessionCompacted
    from turnkeeper.model.notification import SessionDeleted as SessionDeleted
    from turnkeeper.model.notification import SessionFailed as SessionFailed
    from turnkeeper.model.notification import SessionIdle as SessionIdle
    from turnkeeper.model.notification import SessionUpdated as SessionUpdated
    from turnkeeper.model.notification import StatusUpdated as StatusUpdated
    from turnkeeper.model.notification import TodosUpdated as TodosUpdated
    from turnkeeper.model.page import Page as Page
    from turnkeeper.model.parts import FilePart as FilePart
    from turnkeeper.model.parts import Part as Part
    from turnkeeper.model.parts import ReasoningPart as ReasoningPart
    from turnkeeper.model.parts import TextPart as TextPart
    from turnkeeper.model.parts import ToolPart as ToolPart
    from turnkeeper.model.parts.tool import ToolCompleted as ToolCompleted
    from turnkeeper.model.parts.tool import ToolError as ToolError
    from turnkeeper.model.parts.tool import ToolPending as ToolPending
    from turnkeeper.model.parts.tool import ToolRunning as ToolRunning
    from turnkeeper.model.permission import AskedBy as AskedBy
    from turnkeeper.model.permission import PermissionRequest as PermissionRequest
    from turnkeeper.model.permission import Reply as Reply
    from turnkeeper.model.permission import Rule as Rule
    from turnkeeper.model.permission import SavedApproval as SavedApproval
    from turnkeeper.model.prompt import AgentInput as AgentInput
    from turnkeeper.model.prompt import FileInput as FileInput
    from turnkeeper.model.prompt import Prompt as Prompt
    from turnkeeper.model.prompt import Receipt as Receipt
    from turnkeeper.model.prompt import SubtaskInput as SubtaskInput
    from turnkeeper.model.prompt import TextInput as TextInput
    from turnkeeper.model.question import Option as Option
    from turnkeeper.model.question import Question as Question
    from turnkeeper.model.question import QuestionReply as QuestionReply
    from turnkeeper.model.question import QuestionRequest as QuestionRequest
    from turnkeeper.model.refusal import Busy as Busy
    from turnkeeper.model.refusal import Conflict as Conflict
    from turnkeeper.model.refusal import Forbidden as Forbidden
    from turnkeeper.model.refusal import Invalid as Invalid
    from turnkeeper.model.refusal import NotFound as NotFound
    from turnkeeper.model.refusal import Refusal as Refusal
    from turnkeeper.model.request import AssistantTurn as AssistantTurn
    from turnkeeper.model.request import Call as Call
    from turnkeeper.model.request import Media as Media
    from turnkeeper.model.request import ModelMessage as ModelMessage
    from turnkeeper.model.request import ModelRequest as ModelRequest
    from turnkeeper.model.request import Reasoning as Reasoning
    from turnkeeper.model.request import Result as Result
    from turnkeeper.model.request import SystemTurn as SystemTurn
    from turnkeeper.model.request import Text as Text
    from turnkeeper.model.request import ToolTurn as ToolTurn
    from turnkeeper.model.request import UserTurn as UserTurn
    from turnkeeper.model.restore import FileEdit as FileEdit
    from turnkeeper.model.restore import FileRestore as FileRestore
    from turnkeeper.model.restore import FileState as FileState
    from turnkeeper.model.restore import Reverted as Reverted
    from turnkeeper.model.session import FileDiff as FileDiff
    from turnkeeper.model.session import Session as Session
    from turnkeeper.model.session import Tokens as Tokens
    from turnkeeper.model.status import Status as Status
    from turnkeeper.model.status import StatusBusy as StatusBusy
    from turnkeeper.model.status import StatusIdle as StatusIdle
    from turnkeeper.model.status import StatusRetrying as StatusRetrying
    from turnkeeper.model.stream import StreamEvent as StreamEvent
    from turnkeeper.model.todo import Todo as Todo
    from turnkeeper.providers.custom import provider as provider
    from turnkeeper.providers.provider import Provider as Provider
    from turnkeeper.providers.scripted import Scripted as Scripted
    from turnkeeper.run.coordinator import Outcome as Outcome
    from turnkeeper.run.permission import NobodyToAsk as NobodyToAsk
    from turnkeeper.run.permission import allow_all as allow_all
    from turnkeeper.run.permission import reject_all as reject_all
    from turnkeeper.run.runtime import Settings as Settings
    from turnkeeper.sessions.compact import Compacted as Compacted
    from turnkeeper.sessions.past import PastSession as PastSession
    from turnkeeper.sessions.session_state import SessionState as SessionState
    from turnkeeper.store.damaged import DamagedDocument as DamagedDocument
    from turnkeeper.store.engine import Engine as Engine
    from turnkeeper.store.engine import StoreDamaged as StoreDamaged
    from turnkeeper.store.engine import StoreFull as StoreFull
    from turnkeeper.store.engine import StoreUnavailable as StoreUnavailable
    from turnkeeper.tools.custom import Function as Function
    from turnkeeper.tools.custom import tool as tool
    from turnkeeper.tools.tool import AnyTool as AnyTool
    from turnkeeper.tools.tool import Attachment as Attachment
    from turnkeeper.tools.tool import ToolContext as ToolContext
    from turnkeeper.tools.tool import ToolFailure as ToolFailure
    from turnkeeper.tools.tool import ToolOutput as ToolOutput

_PLACES = {
    "msgspec": "Meta Struct",
    "turnkeeper.api.agent": "Agent",
    "turnkeeper.api.blocking": "BlockingTurnkeeper",
    "turnkeeper.api.named_types": (
        "Absence AgentPart AskPermission AskQuestions CacheTokens ClusterReport CompactionPart Confinement "
        "ContextDiff ContextReport DamagedNames Delegation Diagnosis Endpoint ExportLayout Failed FieldDiff File "
        "FileSource Finish FinishStep ForeignPart HandOver Hooks HostLabels ImportReport Jobs JsonObject "
        "JsonSchemaFormat LedgerRow Left Limits Listener McpInstructions Mention MessageDiff ModelInfo ModelName "
        "Owner Pace PatchPart PermissionAnswer ProgramName Progress ProgressReport ProjectPlace ReasoningDelta "
        "ReasoningEnd ReasoningStart Recall RecallHit RecallPage Recorded Recovery RedactionReport Registration "
        "ResourceSource RetryPart RulesDiff RunningTime SearchHit SessionModel SettledTime ShareLink "
        "ShareSettings SharedSession Skill SnapshotPart Span Start StartStep StepFinishPart StepStartPart "
        "StreamError Subscription SubtaskPart SymbolSource Terms TextDelta TextEnd TextFormat TextStart Tool "
        "ToolCall ToolDefinition ToolFailed ToolInputDelta ToolInputEnd ToolInputStart ToolResult ToolServices "
        "Usage UsageCounted WritingCall"
    ),
    "turnkeeper.api.streamed_answer": "StreamedAnswer",
    "turnkeeper.api.turnkeeper": "Turnkeeper",
    "turnkeeper.app": "AskOptions OpenOptions ask ask_sync",
    "turnkeeper.bus": "Overflow",
    "turnkeeper.context.component": "ContextComponent Sampling",
    "turnkeeper.context.custom": "component",
    "turnkeeper.core.blame": "Blame BlamedLine LineOrigin",
    "turnkeeper.core.entry": "Damaged",
    "turnkeeper.core.session_diff": "SessionDiff",
    "turnkeeper.mint": "Mint",
    "turnkeeper.model.answer": "Answer TurnFailed",
    "turnkeeper.model.command": "Command",
    "turnkeeper.model.context": "Absent Loaded Unavailable",
    "turnkeeper.model.failure": (
        "AbortedFailure ApiFailure AuthFailure ContentFilterFailure Failure OutputLengthFailure "
        "OverflowFailure StructuredOutputFailure UnknownFailure"
    ),
    "turnkeeper.model.file_change": "FileChange",
    "turnkeeper.model.message": "AssistantMessage Message ModelChoice SystemMessage UserMessage",
    "turnkeeper.model.message_with_parts": "MessageWithParts",
    "turnkeeper.model.notification": (
        "AnyNotification Delta DiffUpdated MessageDeleted MessageUpdated Notification PartDeleted PartUpdated "
        "PermissionSettled PermissionWaits QuestionSettled QuestionWaits SessionAdded SessionCompacted "
        "SessionDeleted SessionFailed SessionIdle SessionUpdated StatusUpdated TodosUpdated"
    ),
    "turnkeeper.model.page": "Page",
    "turnkeeper.model.parts": "FilePart Part ReasoningPart TextPart ToolPart",
    "turnkeeper.model.parts.tool": "ToolCompleted ToolError ToolPending ToolRunning",
    "turnkeeper.model.permission": "AskedBy PermissionRequest Reply Rule SavedApproval",
    "turnkeeper.model.prompt": "AgentInput FileInput Prompt Receipt SubtaskInput TextInput",
    "turnkeeper.model.question": "Option Question QuestionReply QuestionRequest",
    "turnkeeper.model.refusal": "Busy Conflict Forbidden Invalid NotFound Refusal",
    "turnkeeper.model.request": (
        "AssistantTurn Call Media ModelMessage ModelRequest Reasoning Result SystemTurn Text ToolTurn UserTurn"
    ),
    "turnkeeper.model.restore": "FileEdit FileRestore FileState Reverted",
    "turnkeeper.model.session": "FileDiff Session Tokens",
    "turnkeeper.model.status": "Status StatusBusy StatusIdle StatusRetrying",
    "turnkeeper.model.stream": "StreamEvent",
    "turnkeeper.model.todo": "Todo",
    "turnkeeper.providers.custom": "provider",
    "turnkeeper.providers.provider": "Provider",
    "turnkeeper.providers.scripted": "Scripted",
    "turnkeeper.run.coordinator": "Outcome",
    "turnkeeper.run.permission": "NobodyToAsk allow_all reject_all",
    "turnkeeper.run.runtime": "Settings",
    "turnkeeper.sessions.compact": "Compacted",
    "turnkeeper.sessions.past": "PastSession",
    "turnkeeper.sessions.session_state": "SessionState",
    "turnkeeper.store.damaged": "DamagedDocument",
    "turnkeeper.store.engine": "Engine StoreDamaged StoreFull StoreUnavailable",
    "turnkeeper.tools.custom": "Function tool",
    "turnkeeper.tools.tool": "AnyTool Attachment ToolContext ToolFailure ToolOutput",
}
"""Where the public names are, which are loaded when they are asked for. A test compares it with the imports above."""

__all__ = ["__version__", "open", "open_sync"]
__all__ += [name for names in _PLACES.values() for name in names.split()]


def open(
    store: "str | Engine | None" = None,
    *,
    directory: str | Path | None = None,
    config: Mapping[str, object] | None = None,
    tools: "Sequence[AnyTool | Function]" = (),
    components: "Sequence[ContextComponent]" = (),
    agents: "Sequence[Agent]" = (),
    provider: "Provider | None" = None,
    settings: "Settings | None" = None,
    mint: "Mint | None" = None,
) -> "AbstractAsyncContextManager[Turnkeeper]":
    """Open a store of sessions: ``sqlite:PATH``, ``files:DIR``, ``postgresql://USER@HOST/DATABASE`` or ``memory:``; by
    default that of the user.

    An Engine can be given instead, which is closed with the store. ``directory`` is the directory of new sessions, by
    default the current one. ``config`` has settings as a configuration file would, and overrides all files. ``tools``
    are functions that models may call, ``components`` facts that they are told, ``agents`` those that can be named in a
    prompt. A ``provider`` answers all requests in place of those of the configuration. ``settings`` say how sessions
    are run, for example who is asked for permission. ``mint`` replaces the clock and the ids in tests.
    """
    # Imported here, because the command line imports this module only for the version.
    from turnkeeper.app import open_program

    return open_program(
        store,
        directory=directory,
        config=config,
        tools=tools,
        components=components,
        agents=agents,
        provider=provider,
        settings=settings,
        mint=mint,
    )


def open_sync(
    store: "str | Engine | None" = None,
    *,
    directory: str | Path | None = None,
    config: Mapping[str, object] | None = None,
    tools: "Sequence[AnyTool | Function]" = (),
    components: "Sequence[ContextComponent]" = (),
    agents: "Sequence[Agent]" = (),
    provider: "Provider | None" = None,
    settings: "Settings | None" = None,
    mint: "Mint | None" = None,
) -> "AbstractContextManager[BlockingTurnkeeper]":
    """As ``open``, for scripts without ``async``: the same methods, which block. It runs an event loop on a thread."""
    from turnkeeper.app import open_blocking

    opening = open(
        store,
        directory=directory,
        config=config,
        tools=tools,
        components=components,
        agents=agents,
        provider=provider,
        settings=settings,
        mint=mint,
    )
    return open_blocking(opening)


if not TYPE_CHECKING:  # A type checker would take any misspelt name for one that is loaded here.

    def __getattr__(name: str) -> object:
        """A public name, loaded when it is asked for, so that importing the package stays fast."""
        from importlib import import_module

        for place, names in _PLACES.items():
            if name in names.split():
                return getattr(import_module(place), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
