"""Events of a log in a few words each."""

from typing import Final, assert_never

from turnkeeper.cli.part_lines import subject
from turnkeeper.cli.plain import failure_text
from turnkeeper.cli.screen import money, one_line, plural
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage, Message, SystemMessage
from turnkeeper.model.parts import Part, ReasoningPart, TextPart, ToolPart
from turnkeeper.model.status import Retrying, Status

CHARS_MAX: Final = 1000


def described(event: e.Event) -> str:
    """An event as one line, which is cut if it is very long."""
    return one_line(_of_session(event)[:CHARS_MAX])


def _of_session(event: e.Event) -> str:
    match event:
        case e.SessionCreated(session=session):
            return f"{session.title} in {session.directory}"
        case e.SessionTitled(title=title):
            return title
        case e.SessionMoved(directory=directory, label=label):
            return f"to {directory}{f' on hosts with label {label}' if label else ''}"
        case e.SessionShared(share=share):
            return share.url
        case e.SessionTouched() | e.SessionArchived() | e.SessionRestored() | e.SessionUnshared():
            return ""
        case e.SourceFollowed(title=title, tokens=tokens, cost=cost):
            return f"{title}: {tokens.input} in, {tokens.output} out, {money(cost)}"
        case e.PermissionsSet(rules=rules):
            return plural(len(rules or ()), "rule")
        case e.MetadataSet(metadata=metadata):
            return plural(len(metadata or {}), "entry", "entries")
        case e.AgentSelected(agent=agent):
            return agent or "none"
        case e.ModelSelected(model=model):
            return f"{model.provider_id}/{model.id}" if model is not None else "none"
        case e.SummaryRecorded(summary=summary):
            return (
                f"+{summary.additions} -{summary.deletions} in {plural(summary.files, 'file')}" if summary else "none"
            )
        case e.TodosSet(todos=todos):
            return plural(len(todos), "todo")
        case e.CompactingSet(at=at):
            return "began" if at is not None else "ended"
        case e.RestoreBegun(files=files):
            return plural(len(files), "file")
        case e.RevertStaged(revert=revert):
            return f"from {revert.message_id} on"
        case e.RevertCleared(unwritten=unwritten):
            return f"{plural(len(unwritten), 'file')} could not be written" if unwritten else ""
        case e.RevertCommitted(message_id=message_id):
            return f"from {message_id} on"
        case _:
            return _of_history(event)


def _of_history(event: "_Later") -> str:
    match event:
        case e.MessageRecorded(message=message, parts=parts):
            return f"{_message(message)} {_parts(parts)}"
        case e.MessageRemoved(message_id=message_id) | e.PromptPromoted(message_id=message_id):
            return message_id
        case e.PromptWithdrawn(message_id=message_id):
            return message_id
        case e.PartRecorded(part=part):
            return _part(part)
        case e.PartExtended(text=text):
            return text
        case e.PartRemoved(part_id=part_id):
            return part_id
        case e.OutputsPruned(part_ids=part_ids, reason=reason):
            return f"{plural(len(part_ids), 'output')}: {reason}"
        case e.PartsQuarantined(part_ids=part_ids, reason=reason):
            return f"{plural(len(part_ids), 'part')}: {reason}"
        case e.PromptAdmitted(message=message, parts=parts, delivery=delivery):
            return f"{delivery} {_parts(parts)} {message.id}"
        case e.EpochStarted(epoch=epoch):
            return f"{epoch.number}, because of {epoch.reason}: {', '.join(one.key for one in epoch.baseline)}"
        case e.ContextAdmitted(message=message):
            return ", ".join(one.key for one in message.updates)
        case e.InstructionDiscovered(path=path):
            return path
        case e.TurnStarted(message=message):
            return f"{message.agent} {message.provider_id}/{message.model_id} {message.id}"
        case e.TurnEnded(message=message):
            ended = failure_text(message.error) if message.error is not None else message.finish or ""
            return f"{ended} {message.id}".strip()
        case _:
            return _of_running(event)


def _of_running(event: "_Latest") -> str:
    match event:
        case e.PermissionAsked(request=request):
            return f"{request.id} {request.permission}: {', '.join(request.patterns)}"
        case e.PermissionReplied(request_id=request_id, reply=reply):
            return f"{request_id} {reply}"
        case e.QuestionAsked(request=request):
            return f"{request.id} {'; '.join(one.question for one in request.questions)}"
        case e.QuestionReplied(request_id=request_id, answers=answers):
            return f"{request_id} {'; '.join(', '.join(one) for one in answers)}"
        case e.QuestionRejected(request_id=request_id) | e.AnswerApplied(request_id=request_id):
            return request_id
        case e.ChildBegun(task=task):
            return task.session_id
        case e.ChildEnded(session_id=session_id):
            return session_id
        case e.UsageRecorded(purpose=purpose, tokens=tokens, cost=cost):
            return f"{purpose}: {tokens.input} in, {tokens.output} out, {money(cost)}"
        case e.StatusChanged(status=status, owner=owner):
            return f"{_status(status)} process {owner.pid} on {owner.host}" if owner is not None else _status(status)
    assert_never(event)


_Latest = (
    e.PermissionAsked
    | e.PermissionReplied
    | e.QuestionAsked
    | e.QuestionReplied
    | e.QuestionRejected
    | e.AnswerApplied
    | e.ChildBegun
    | e.ChildEnded
    | e.UsageRecorded
    | e.StatusChanged
)
_Later = (
    e.MessageRecorded
    | e.MessageRemoved
    | e.PartRecorded
    | e.PartExtended
    | e.PartRemoved
    | e.OutputsPruned
    | e.PartsQuarantined
    | e.PromptAdmitted
    | e.PromptPromoted
    | e.PromptWithdrawn
    | e.EpochStarted
    | e.ContextAdmitted
    | e.InstructionDiscovered
    | e.TurnStarted
    | e.TurnEnded
    | _Latest
)


def _status(status: Status) -> str:
    match status:
        case Retrying(attempt=attempt, message=message):
            return f"retry {attempt}: {message}"
    return type(status).__name__.lower()


def _message(message: Message) -> str:
    match message:
        case AssistantMessage():
            return f"assistant {message.id}"
        case SystemMessage():
            return f"system {message.id}"
    return f"user {message.id}"


def _parts(parts: tuple[Part, ...]) -> str:
    """The first text, or how many parts there are."""
    said = next((part.text for part in parts if isinstance(part, TextPart) and not part.synthetic), None)
    return said if said is not None else plural(len(parts), "part")


def _part(part: Part) -> str:
    match part:
        case TextPart(text=text):
            return f"text: {text}"
        case ReasoningPart(text=text):
            return f"reasoning: {text}"
        case ToolPart(tool=tool, state=state):
            return f"{tool} {type(state).__name__.removeprefix('Tool').lower()}: {subject(part)}"
    return type(part).__name__.removesuffix("Part").lower()
