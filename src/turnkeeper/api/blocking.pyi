"""The types of ``blocking.py``. Written by ``scripts/blocking_stub.py`` from the classes of Turnkeeper."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Generic, Literal, Self, TypeVar, overload

from anyio.from_thread import BlockingPortal

from turnkeeper.api.agent import Agent
from turnkeeper.api.turnkeeper import Turnkeeper
from turnkeeper.bus import Listener
from turnkeeper.context.component import ContextComponent
from turnkeeper.core.blame import Blame
from turnkeeper.core.entry import Recorded
from turnkeeper.core.limits import RECALL_HITS_MAX, RECALL_PAGE_CHARS, STOP_S
from turnkeeper.core.recall import RecallHit, RecallPage
from turnkeeper.core.session_diff import SessionDiff
from turnkeeper.core.sharing import EXPIRES_S, ShareSettings
from turnkeeper.interop.export_all import ExportLayout
from turnkeeper.interop.remote_share import RemoteShares
from turnkeeper.interop.report import ImportReport, ProgressReport
from turnkeeper.interop.shared_session import SharedSession
from turnkeeper.interop.transcripts import ProgramName
from turnkeeper.model.answer import Answer
from turnkeeper.model.cluster import ClusterReport
from turnkeeper.model.command import Command
from turnkeeper.model.file_change import FileChange
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.message import ModelName
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import AnyNotification, Notification
from turnkeeper.model.page import Page
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import Absence, PermissionAnswer, PermissionRequest, Ruleset, SavedApproval
from turnkeeper.model.prompt import FileInput, Prompt, Receipt
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.redaction import RedactionReport
from turnkeeper.model.restore import Reverted
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.share import ShareLink
from turnkeeper.model.status import Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject
from turnkeeper.registry import Registration
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.recover import Failed, Left, Recovery
from turnkeeper.sessions.compact import Compacted
from turnkeeper.sessions.context import ContextReport
from turnkeeper.sessions.diagnosis import Diagnosis
from turnkeeper.sessions.past import PastSession
from turnkeeper.sessions.session_state import SessionState
from turnkeeper.store.damaged import DamagedNames
from turnkeeper.store.queries import SearchHit

T = TypeVar("T")

class OpenLoop:
    """The event loop of an open store."""

    is_closed: bool
    def __init__(self, portal: BlockingPortal) -> None: ...
    def is_lost(self) -> bool: ...

class BlockingIterator(Generic[T]):
    """Iterates over what comes from the event loop."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> T: ...

class BlockingSubscription(BlockingIterator[T]):
    """A subscription."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def close(self) -> None: ...

class BlockingStreamedAnswer(BlockingIterator[str], Generic[T]):
    """The text of an answer as it comes, and the whole answer when it has ended."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    @property
    def session_id(self) -> str: ...
    @property
    def answer(self) -> Answer[T]: ...
    def close(self) -> None: ...

class BlockingTurnkeeper:
    """An open store with the methods of Turnkeeper, each of which blocks."""

    def __init__(self, turnkeeper: Turnkeeper, loop: OpenLoop) -> None: ...
    def publish(self, notification: Notification) -> None: ...
    def listen(self, receive: Callable[[AnyNotification], None]) -> Listener[AnyNotification]: ...
    def run_answered(self) -> None: ...
    def permissions(
        self, *, directory: str | Path | None = None, session_id: str | None = None
    ) -> Sequence[PermissionRequest]: ...
    def reply(
        self,
        request_id: str,
        answer: PermissionAnswer,
        *,
        message: str | None = None,
        absence: Absence | None = None,
        session_id: str | None = None,
        resume: bool = True,
    ) -> None: ...
    def questions(
        self, *, directory: str | Path | None = None, session_id: str | None = None
    ) -> Sequence[QuestionRequest]: ...
    def answer(
        self,
        request_id: str,
        given: Sequence[Sequence[str]] | None,
        *,
        absence: Absence | None = None,
        session_id: str | None = None,
        resume: bool = True,
    ) -> None: ...
    def approvals(self, *, project_id: str | None = None) -> Sequence[SavedApproval]: ...
    def revoke(self, approval_id: str) -> bool: ...
    @overload
    def ask(
        self,
        prompt: str | Prompt,
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: str | Agent | None = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: None = None,
        check: bool = True,
    ) -> Answer[str]: ...
    @overload
    def ask(
        self,
        prompt: str | Prompt,
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: str | Agent | None = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: Literal[True] = True,
    ) -> Answer[T]: ...
    @overload
    def ask(
        self,
        prompt: str | Prompt,
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: str | Agent | None = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: bool,
    ) -> Answer[T | None]: ...
    @overload
    def stream(
        self,
        prompt: str | Prompt,
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: str | Agent | None = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: None = None,
        check: bool = True,
    ) -> BlockingStreamedAnswer[str]: ...
    @overload
    def stream(
        self,
        prompt: str | Prompt,
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: str | Agent | None = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: Literal[True] = True,
    ) -> BlockingStreamedAnswer[T]: ...
    @overload
    def stream(
        self,
        prompt: str | Prompt,
        *,
        session: str | Session | None = None,
        id: str | None = None,
        agent: str | Agent | None = None,
        model: ModelName | None = None,
        system: str | None = None,
        output_type: type[T],
        check: bool,
    ) -> BlockingStreamedAnswer[T | None]: ...
    def state(self, session_id: str, *, messages: int | None = None) -> SessionState: ...
    def share(
        self,
        session_id: str,
        *,
        include: Sequence[str] | None = None,
        expires_s: float | None = EXPIRES_S,
        base: str | None = None,
    ) -> ShareLink: ...
    def server_address(self) -> str | None: ...
    def unshare(self, session_id: str, *, forget: bool = False) -> Session: ...
    def open_share(self, share_id: str, secret: str) -> SharedSession: ...
    def shared(self, share_id: str, secret: str) -> Sequence[JsonObject]: ...
    def share_settings(self, directory: Path) -> ShareSettings: ...
    def commands(self, directory: str | Path | None = None) -> Sequence[Command]: ...
    def command(
        self,
        session_id: str,
        name: str,
        arguments: str = "",
        *,
        input: str = "",
        files: Sequence[FileInput] = (),
        id: str | None = None,
        agent: str | None = None,
        model: ModelName | None = None,
        variant: str | None = None,
        resume: bool = True,
    ) -> Receipt: ...
    def at(self, session_id: str, seq: int) -> PastSession: ...
    def changes(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        start: int | str | None = None,
        end: int | str | None = None,
        at: int | None = None,
        exact: bool = False,
    ) -> tuple[FileChange, ...]: ...
    def changes_not_known(self, session_id: str, *, message_id: str | None = None) -> str | None: ...
    def compare(self, session_id: str, before: int, after: int) -> SessionDiff: ...
    def blame(self, file: str | Path) -> Blame: ...
    def fork(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        at: int | None = None,
        directory: str | Path | None = None,
        worktree: str | Path | None = None,
    ) -> Session: ...
    def plan_file(self, session_id: str) -> Path: ...
    def revert(
        self, session_id: str, message_id: str, *, part_id: str | None = None, dry_run: bool = False
    ) -> Reverted: ...
    def unrevert(self, session_id: str, *, dry_run: bool = False) -> Reverted: ...
    def undo(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Reverted: ...
    def redo(
        self, session_id: str, *, dry_run: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> Reverted: ...
    def stage_revert(self, session_id: str, message_id: str, *, files: bool = True) -> Reverted: ...
    def commit_revert(self, session_id: str) -> None: ...
    def export(
        self, session_id: str, *, sanitise: bool = False, redact: bool = False, damaged: DamagedNames | None = None
    ) -> BlockingIterator[bytes]: ...
    def export_html(
        self, session_id: str, *, redact: bool = True, damaged: DamagedNames | None = None
    ) -> BlockingIterator[bytes]: ...
    def redactions(self, session_id: str) -> RedactionReport: ...
    def export_all(
        self,
        target: str | Path,
        session_ids: Iterable[str] | None = None,
        *,
        layout: ExportLayout = "json",
        sanitise: bool = False,
        redact: bool = False,
        progress: ProgressReport | None = None,
        damaged: DamagedNames | None = None,
    ) -> int: ...
    def import_sessions(self, path: str | Path, *, progress: ProgressReport | None = None) -> ImportReport: ...
    def import_opencode(
        self, path: str | Path | None = None, *, progress: ProgressReport | None = None
    ) -> ImportReport: ...
    def import_history(
        self,
        program: ProgramName,
        path: str | Path | None = None,
        *,
        dry_run: bool = False,
        progress: ProgressReport | None = None,
    ) -> ImportReport: ...
    def doctor(self, *, fix: bool = False, progress: Callable[[int, int], None] | None = None) -> Diagnosis: ...
    def context(self, component: ContextComponent) -> Registration[ContextComponent]: ...
    def prompt(self, session_id: str, prompt: str | Prompt, *, resume: bool = True) -> Receipt: ...
    def withdraw(self, session_id: str, message_id: str) -> MessageWithParts: ...
    def shell(
        self, session_id: str, command: str, *, agent: str | None = None, model: ModelName | None = None
    ) -> MessageWithParts: ...
    def run(self, session_id: str, *, resume: bool = False) -> Outcome: ...
    def compact(
        self, session_id: str, *, force: bool = False, auto: bool = False, model: ModelName | None = None
    ) -> Compacted: ...
    def wait(self, session_id: str) -> Outcome: ...
    def wait_family(self, session_id: str) -> Outcome: ...
    def is_abandoned(self, session_id: str) -> bool: ...
    def stop(self, session_id: str | None = None, *, timeout_s: float = STOP_S) -> bool: ...
    def end_calls(self) -> None: ...
    def interrupt(self, session_id: str) -> bool: ...
    def abort(self, session_id: str) -> bool: ...
    def subscribe(
        self, *, session_id: str | None = None, size: int = 1024
    ) -> BlockingSubscription[AnyNotification]: ...
    def wait_upkeep(self, session_id: str) -> None: ...
    def recover(
        self,
        policy: Recovery | None = None,
        *,
        ask: Callable[[str], Awaitable[bool]] | None = None,
        failed: Failed | None = None,
    ) -> Sequence[str]: ...
    def take_over(self) -> Sequence[Left]: ...
    def resume_taken_over(self, left: Sequence[Left]) -> None: ...
    def cluster(self) -> ClusterReport: ...
    def catch_up(self) -> None: ...
    def follow(self) -> None: ...
    def watch_leases(self) -> None: ...
    def remove(self, session_id: str) -> Sequence[Session]: ...
    @cached_property
    def remote_shares(self) -> RemoteShares: ...
    def status(self, session_id: str) -> Status: ...
    def create(
        self,
        *,
        directory: str | Path | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        title: str | None = None,
        permission: Ruleset | None = None,
        agent: str | None = None,
        model: ModelName | None = None,
        metadata: JsonObject | None = None,
        label: str | None = None,
    ) -> Session: ...
    def get(self, session_id: str) -> Session: ...
    def list(
        self,
        *,
        project_id: str | None = None,
        directory: str | Path | None = None,
        parent_id: str | None = None,
        roots: bool = True,
        archived: bool = False,
        search: str | None = None,
        since: int | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> Page[Session]: ...
    def children(self, session_id: str, *, recursive: bool = False) -> Sequence[Session]: ...
    def update(self, session_id: str, editor: Callable[[Session], Session]) -> Session: ...
    def rename(self, session_id: str, title: str) -> Session: ...
    def touch(self, session_id: str) -> Session: ...
    def archive(self, session_id: str) -> Session: ...
    def restore(self, session_id: str) -> Session: ...
    def move(self, session_id: str, directory: str | Path | None = None, *, label: str | None = None) -> Session: ...
    def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]: ...
    def iter_messages(self, session_id: str, *, reverse: bool = True) -> BlockingIterator[MessageWithParts]: ...
    def message(self, session_id: str, message_id: str) -> MessageWithParts: ...
    def update_part(self, part: Part) -> Part: ...
    def remove_part(self, session_id: str, message_id: str, part_id: str) -> None: ...
    def remove_message(self, session_id: str, message_id: str) -> None: ...
    def todos(self, session_id: str) -> tuple[Todo, ...]: ...
    def set_todos(self, session_id: str, todos: Iterable[Todo]) -> tuple[Todo, ...]: ...
    def explain_context(self, session_id: str) -> ContextReport: ...
    def ledger(self, session_id: str | None = None) -> BlockingIterator[LedgerRow]: ...
    def diffs(self, session_id: str) -> tuple[FileDiff, ...]: ...
    def search(self, words: str, *, session_id: str | None = None, limit: int = 50) -> Sequence[SearchHit]: ...
    def recall(
        self, session_id: str, handle: str, *, offset: int = 0, limit: int | None = RECALL_PAGE_CHARS
    ) -> RecallPage: ...
    def recall_search(self, session_id: str, query: str, *, limit: int = RECALL_HITS_MAX) -> Sequence[RecallHit]: ...
    def tail(self, session_id: str, *, after: int = 0) -> BlockingIterator[Recorded]: ...
