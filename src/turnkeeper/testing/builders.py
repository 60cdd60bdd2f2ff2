"""Builders of model values for tests and golden logs. Fields that are not given have fixed defaults."""

from collections.abc import Iterator, Sequence
from itertools import islice

from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.child import ChildTask
from turnkeeper.model.context import ComponentText, Epoch, Prefix
from turnkeeper.model.event import Event
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.message import (
    AssistantMessage,
    AssistantTime,
    ContextUpdate,
    MessageTime,
    ModelChoice,
    SystemMessage,
    TurnPath,
    UserMessage,
)
from turnkeeper.model.parts import PatchPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.tool import (
    RunningTime,
    SettledTime,
    ToolCompleted,
    ToolPending,
    ToolRunning,
    ToolState,
)
from turnkeeper.model.permission import AskedBy, PermissionRequest, Rule
from turnkeeper.model.question import Option, Question, QuestionRequest
from turnkeeper.model.restore import FileEdit, FileRestore, FileState
from turnkeeper.model.session import (
    ZERO_TOKENS,
    CacheTokens,
    FileDiff,
    Revert,
    Session,
    SessionModel,
    SessionTime,
    Share,
    Summary,
    Tokens,
)
from turnkeeper.model.share import HostedShare
from turnkeeper.model.status import BUSY, IDLE, Owner, Retrying
from turnkeeper.model.todo import Todo

NOW = 1_794_767_525_690
SOME_TOKENS = Tokens(input=100, output=20, reasoning=5, cache=CacheTokens(read=7, write=3))
MODEL = ModelChoice(provider_id="acme", model_id="large")


def a_session(id: str = "ses_one", **changes: object) -> Session:
    """A root session without a history."""
    return Session(
        id=id,
        slug="calm-otter",
        project_id="prj",
        directory="/home/me/prj",
        path="",
        title="A session",
        version="0.1.0",
        cost=0,
        tokens=ZERO_TOKENS,
        time=SessionTime(created=NOW, updated=NOW),
    ).but(**changes)


def a_history(entries: Sequence[HistoryItem] = (), seq: int = 0) -> History:
    """A history of these entries, in a session with the number ``seq``."""
    return History(view=SessionView(session=a_session(), seq=seq), entries=entries)


def a_user(session_id: str, id: str, **changes: object) -> UserMessage:
    """A prompt without its parts."""
    return UserMessage(id=id, session_id=session_id, time=MessageTime(created=NOW), agent="build", model=MODEL).but(
        **changes
    )


def an_assistant(session_id: str, id: str, parent_id: str, **changes: object) -> AssistantMessage:
    """A turn without parts that has not ended."""
    return AssistantMessage(
        id=id,
        session_id=session_id,
        time=AssistantTime(created=NOW),
        parent_id=parent_id,
        model_id="large",
        provider_id="acme",
        mode="build",
        agent="build",
        path=TurnPath(cwd="/home/me/prj", root="/home/me/prj"),
        cost=0,
        tokens=ZERO_TOKENS,
    ).but(**changes)


def a_system(session_id: str, id: str, *texts: str) -> SystemMessage:
    """A message with updates of components."""
    updates = tuple(ContextUpdate(key=f"component/{number}", text=text) for number, text in enumerate(texts))
    return SystemMessage(id=id, session_id=session_id, time=MessageTime(created=NOW), updates=updates)


def a_text(message: UserMessage | AssistantMessage, id: str, text: str, **changes: object) -> TextPart:
    """A finished text."""
    return TextPart(id=id, session_id=message.session_id, message_id=message.id, text=text).but(**changes)


def a_call(message: AssistantMessage, id: str, state: ToolState | None = None, **changes: object) -> ToolPart:
    """A call of ``bash``, pending unless another state is given."""
    return ToolPart(
        id=id,
        session_id=message.session_id,
        message_id=message.id,
        call_id=f"call_{id}",
        tool="bash",
        state=state or ToolPending(input={}, raw='{"command":'),
    ).but(**changes)


def running() -> ToolRunning:
    """The state of a running call."""
    return ToolRunning(input={"command": "ls"}, time=RunningTime(start=NOW))


def completed(output: str = "a file") -> ToolCompleted:
    """The state of a completed call."""
    times = SettledTime(start=NOW, end=NOW + 5)
    return ToolCompleted(input={"command": "ls"}, output=output, title="ls", metadata={"exit": 0}, time=times)


def a_permission(part: ToolPart, id: str = "per_1", **changes: object) -> PermissionRequest:
    """A request of a call to list a directory."""
    return PermissionRequest(
        id=id,
        session_id=part.session_id,
        permission="bash",
        patterns=("ls",),
        metadata={"command": "ls"},
        always=("ls *",),
        tool=AskedBy(message_id=part.message_id, call_id=part.call_id),
    ).but(**changes)


def a_question(part: ToolPart, id: str = "que_1", **changes: object) -> QuestionRequest:
    """One question with two options."""
    options = (Option(label="Red", description="Warm"), Option(label="Blue", description="Cold"))
    return QuestionRequest(
        id=id,
        session_id=part.session_id,
        questions=(Question(question="Which colour?", header="Colour", options=options),),
        tool=AskedBy(message_id=part.message_id, call_id=part.call_id),
    ).but(**changes)


def an_epoch(number: int = 1, text: str = "You are careful.", **changes: object) -> Epoch:
    """A Context Epoch with one component."""
    return Epoch(
        number=number,
        reason="start",
        provider_id="acme",
        model_id="large",
        baseline=(ComponentText(key="component/0", text=text),),
        checkpoint={"component/0": "hash-of-it"},
    ).but(**changes)


def a_turn(
    session_id: str, number: int, *, prompt: str = "Do it", answer: str = "Done", cost: float = 0.5
) -> list[Event]:
    """The events that a drain records for a prompt and its turn."""
    user = a_user(session_id, f"msg_u{number}_{session_id[4:]}")
    turn = an_assistant(session_id, f"msg_a{number}_{session_id[4:]}", user.id)
    prefix = f"prt_{number}_{session_id[4:]}"
    text = a_text(turn, f"{prefix}_c", "", time=Span(start=NOW))
    call = a_call(turn, f"{prefix}_d")
    ended = turn.but(time=AssistantTime(created=NOW, completed=NOW + 9), finish="stop", cost=cost, tokens=SOME_TOKENS)
    start = StepStartPart(id=f"{prefix}_b", session_id=session_id, message_id=turn.id)
    finish = StepFinishPart(
        id=f"{prefix}_e", session_id=session_id, message_id=turn.id, reason="stop", cost=cost, tokens=SOME_TOKENS
    )
    return [
        e.PromptAdmitted(message=user, parts=(a_text(user, f"{prefix}_a", prompt),), delivery="steer"),
        e.PromptPromoted(message_id=user.id),
        e.StatusChanged(status=BUSY),
        e.TurnStarted(message=turn),
        e.PartRecorded(part=start),
        e.PartRecorded(part=text),
        e.PartExtended(message_id=turn.id, part_id=text.id, offset=0, text=answer[:100]),
        e.PartRecorded(part=text.but(text=answer, time=Span(start=NOW, end=NOW + 3))),
        e.PartRecorded(part=call),
        e.PartRecorded(part=call.but(state=running())),
        e.PartRecorded(part=call.but(state=completed())),
        e.PartRecorded(part=finish),
        _usage(turn.id, cost=cost),
        e.TurnEnded(message=ended),
        e.StatusChanged(status=IDLE),
    ]


def every_event(session_id: str = "ses_all", *, mint: Mint | None = None) -> list[Event]:
    """A log with every kind of event, beginning with the creation of the session."""
    mint = mint or Mint.fixed()
    ids = iter(mint.message_id, None)
    parts = iter(mint.part_id, None)
    life: list[Event] = [
        e.SessionCreated(session=a_session(session_id, agent="build")),
        *_settings(),
        *_input(session_id, ids, parts),
        *_turn(session_id, ids, parts),
    ]
    return [*life, *_history(session_id, next(ids), next(ids), next(parts), seq=len(life) + 2)]


def _settings() -> list[Event]:
    diff = FileDiff(file="a.py", patch="@@ -1 +1 @@", additions=1, deletions=1, status="modified")
    return [
        e.SessionTitled(title="Renamed"),
        e.SessionArchived(at=NOW + 1),
        e.SessionRestored(),
        e.SessionMoved(project_id="other", directory="/home/me/other", path="sub", workspace_id="wrk_1", label="gpu"),
        e.SessionShared(
            share=Share(url="https://example.com/s/1"),
            hosted=HostedShare(id="shr_1", secret_hash="0" * 64, include=(), created=NOW),
        ),
        e.SessionUnshared(),
        e.PermissionsSet(rules=(Rule(permission="bash", pattern="rm *", action="ask"),)),
        e.MetadataSet(metadata={"ticket": 7, "tags": ["a", None]}),
        e.AgentSelected(agent="plan"),
        e.ModelSelected(model=SessionModel(id="large", provider_id="acme", variant="high")),
        e.SummaryRecorded(summary=Summary(additions=1, deletions=1, files=1), diffs=(diff,)),
        e.TodosSet(todos=(Todo(content="Test it", status="pending", priority="high", id="1"),)),
        e.CompactingSet(at=NOW + 2),
        e.CompactingSet(at=None),
        e.SessionTouched(),
        e.SourceFollowed(
            updated=NOW + 3,
            title="Imported",
            metadata={"imported": {"program": "codex"}},
            agent="build",
            model=SessionModel(id="large", provider_id="acme"),
            summary=Summary(additions=2, deletions=1, files=1),
            tokens=SOME_TOKENS,
            cost=0.25,
        ),
    ]


def a_child_task(call: ToolPart) -> ChildTask:
    """Work that a call hands to a Child Session in the background."""
    return ChildTask(
        session_id="ses_child",
        prompt_id="msg_given",
        message_id=call.message_id,
        call_id=call.call_id,
        agent="helper",
        background=True,
    )


def _input(session_id: str, ids: Iterator[str], parts: Iterator[str]) -> list[Event]:
    taken, kept = (a_user(session_id, id) for id in islice(ids, 2))
    words, other = islice(parts, 2)
    return [
        e.PromptAdmitted(message=taken, parts=(a_text(taken, words, "Fix the parser"),), delivery="steer"),
        e.PromptAdmitted(message=kept, parts=(a_text(kept, other, "Never mind"),), delivery="queue"),
        e.PromptPromoted(message_id=taken.id),
        e.PromptWithdrawn(message_id=kept.id),
    ]


def _turn(session_id: str, ids: Iterator[str], parts: Iterator[str]) -> list[Event]:
    answer = an_assistant(session_id, next(ids), "msg_parent")
    text = a_text(answer, next(parts), "", time=Span(start=NOW))
    call, slip = a_call(answer, next(parts)), a_text(answer, next(parts), "a slip")
    patch = PatchPart(
        id=next(parts),
        session_id=session_id,
        message_id=answer.id,
        hash="tree1",
        files=("/home/me/prj/a.py",),
        after="tree2",
    )
    failed = AbortedFailure(data=MessageData(message="stopped"))
    news = a_system(session_id, next(ids), "It is Monday.")
    return [
        e.EpochStarted(epoch=an_epoch()),
        e.ContextAdmitted(message=news, checkpoint={"component/0": "new"}),
        e.InstructionDiscovered(path="/home/me/other/sub/AGENTS.md"),
        e.StatusChanged(status=BUSY, owner=Owner(host="here", pid=7, started="12:00", machine="m1", boot="b1")),
        e.TurnStarted(message=answer, prefix=Prefix(pieces=2, bytes=400, hash="hash-of-them")),
        e.PartRecorded(part=text),
        e.PartExtended(message_id=answer.id, part_id=text.id, offset=0, text="Look"),
        e.PartExtended(message_id=answer.id, part_id=text.id, offset=4, text="ing"),
        e.PartRecorded(part=text.but(text="Looking.", time=Span(start=NOW, end=NOW + 1))),
        e.PartRecorded(part=call),
        e.PartRecorded(part=call.but(state=running())),
        e.PermissionAsked(request=a_permission(call)),
        e.PermissionReplied(request_id="per_1", reply="reject", feedback="Look first."),
        e.QuestionAsked(request=a_question(call), restarts=False),
        e.QuestionReplied(request_id="que_1", answers=(("Red",),)),
        e.AnswerApplied(request_id="que_1"),
        e.QuestionAsked(request=a_question(call, "que_2", deadline=NOW + 60_000)),
        e.QuestionRejected(request_id="que_2"),
        e.ChildBegun(task=a_child_task(call)),
        e.PartRecorded(part=call.but(state=completed())),
        e.ChildEnded(session_id="ses_child"),
        e.PartRecorded(part=slip),
        e.PartRemoved(message_id=answer.id, part_id=slip.id),
        e.PartRecorded(part=patch),
        e.StatusChanged(status=Retrying(attempt=2, message="overloaded", next=NOW + 900)),
        _usage(answer.id, cost=0.25, attempt=2),
        e.TurnEnded(message=answer.but(error=failed, time=AssistantTime(created=NOW, completed=NOW + 9))),
        e.OutputsPruned(part_ids=(call.id,), tokens=25_000, reason="the cache was cold"),
        e.PartsQuarantined(message_id=answer.id, part_ids=(text.id,), reason="messages.1: not accepted"),
        e.StatusChanged(status=IDLE),
    ]


def _history(session_id: str, kept_id: str, gone_id: str, part_id: str, *, seq: int) -> list[Event]:
    """Events that record, change and remove messages and parts. ``seq`` is the number of the second event."""
    kept = a_user(session_id, kept_id)
    revert = Revert(message_id=gone_id, snapshot="tree1")
    before, after = FileState(mode="100644", blob="blob1"), FileState(mode="100755", blob="blob2")
    undone = FileEdit(before=before, after=after)
    restored = FileRestore(file="a.py", kind="restore", now=before, to=after, undone=undone)
    return [
        e.MessageRecorded(message=kept, parts=(a_text(kept, part_id, "From elsewhere"),)),
        e.MessageRecorded(message=a_user(session_id, gone_id)),
        e.RestoreBegun(root="/home/me/prj", files=(restored,), revert=revert),
        e.RevertStaged(revert=revert.but(diff="--- a")),
        e.RestoreBegun(root="/home/me/prj", files=(restored.but(now=after, to=before, undone=None),)),
        e.RevertCleared(),
        e.RevertStaged(revert=Revert(message_id=gone_id)),
        e.MessageRemoved(message_id=gone_id, seq=seq),
        e.RevertCommitted(message_id=gone_id),
    ]


def _usage(message_id: str, *, cost: float, attempt: int = 1) -> e.UsageRecorded:
    return e.UsageRecorded(
        purpose="turn",
        provider_id="acme",
        model_id="large",
        message_id=message_id,
        attempt=attempt,
        tokens=SOME_TOKENS,
        cost=cost,
    )
