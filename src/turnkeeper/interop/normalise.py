"""Normalise a raw session: known fields are typed, missing ones filled, and unknown ones kept.

docs/reference/interop.md lists the filled and moved fields. No clock and no random id is used, so a second import of a
source gives equal values.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import cast

from turnkeeper.core import slug
from turnkeeper.core.titles import default_title
from turnkeeper.core.usage import add_costs, add_tokens
from turnkeeper.interop import shapes
from turnkeeper.interop.convert import converted, trimmed
from turnkeeper.interop.fields import word
from turnkeeper.interop.normalise_part import part_of
from turnkeeper.interop.raw import RawMessage, RawObject, RawSession, Unreadable, minted
from turnkeeper.interop.report import Finding
from turnkeeper.model.identifier import LENGTH_MAX
from turnkeeper.model.message import UNKNOWN_MODEL as UNKNOWN
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.parts import Part, StepFinishPart
from turnkeeper.model.session import ZERO_TOKENS, FileDiff, Session, Tokens
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Json, Value

_MESSAGE = cast("type[Message]", Message)  # A union can be converted to, but is no class.

_SAFE = re.compile(r"[A-Za-z0-9_-]+")


class IncomingMessage(Value):
    """A message and its parts, ready to be recorded."""

    info: Message
    parts: tuple[Part, ...]
    is_counted: bool = True


@dataclass
class Incoming:
    """A session, ready to be recorded. ``todos`` and ``diffs`` are None if the source has none."""

    session: Session
    messages: list[IncomingMessage]
    todos: tuple[Todo, ...] | None
    diffs: tuple[FileDiff, ...] | None
    has_project: bool = True
    """Whether the source has the project of the session."""
    skipped: list[Finding] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)
    follows: bool = False
    gone: frozenset[str] = frozenset()
    is_again: bool = False
    """Whether an earlier file of the same import had the session. This one, perhaps an old copy, only adds to it."""


def incoming(raw: RawSession) -> Incoming:
    """Normalise a session. Messages and parts that cannot be read are added to ``unreadable``. Raises Unreadable."""
    if not is_safe(raw.info.get("id")) or not raw.info["id"].startswith("ses"):
        raise Unreadable(f"{raw.info.get('id')!r} is not a session id")
    info = _session_info(raw)
    made = Incoming(converted(info, Session), [], _todos(raw.todos), _diffs(raw.diffs))
    made.session, dropped = _narrowing(made.session)
    if dropped:
        made.skipped.append(Finding(reason=f"{dropped} permission rules that do not deny", session_id=made.session.id))
    made.session = made.session.but(origin=raw.origin)
    made.follows, made.gone = raw.follows, raw.gone
    made.has_project = is_safe(raw.info.get("projectID"))
    made.skipped.extend(raw.skipped)
    made.unreadable.extend(raw.unreadable)
    made.messages.extend(_messages(raw, made))
    if not shapes.is_number(raw.info.get("cost")) or not isinstance(raw.info.get("tokens"), dict):
        cost, tokens = usage(made.messages)
        made.session = made.session.but(cost=cost, tokens=tokens)
    return made


def is_safe(name: Json) -> bool:
    """Whether a value can be an id: ids are segments of keys and of file names."""
    return isinstance(name, str) and len(name) <= LENGTH_MAX and _SAFE.fullmatch(name) is not None


def usage(messages: list[IncomingMessage]) -> tuple[int | float, Tokens]:
    """The cost and the tokens of a history: the sum of its step-finish parts, or of its turns if it has none."""
    steps = [part for one in messages for part in one.parts if isinstance(part, StepFinishPart)]
    turns = [one.info for one in messages if isinstance(one.info, AssistantMessage)]
    tokens = ZERO_TOKENS
    for counted in steps or turns:
        tokens = add_tokens(tokens, counted.tokens)
    return add_costs(0.0, *(counted.cost for counted in steps or turns)), tokens


def _session_info(raw: RawSession) -> RawObject:
    info = dict(raw.info)
    first = next((m.info for m in raw.messages if m.info.get("role") == "assistant"), {})
    path = shapes.as_object(first.get("path"))
    created = _created(info, raw.messages)
    time = shapes.as_object(info.get("time"))
    updated = _bounded(time["updated"]) if shapes.is_number(time.get("updated")) else created
    info["time"] = {**time, "created": created, "updated": updated}
    info["projectID"] = info.get("projectID") if is_safe(info.get("projectID")) else "global"
    info["directory"] = word(info.get("directory")) or word(path.get("cwd")) or "/"
    defaults = {
        "slug": slug.slug(sha256(info["id"].encode()).digest()),
        "title": default_title(created, child="parentID" in info),
        "version": "",
    }
    info.update({name: default for name, default in defaults.items() if not isinstance(info.get(name), str)})
    info["cost"] = info["cost"] if shapes.is_number(info.get("cost")) else 0
    info["tokens"] = shapes.tokens(info.get("tokens"))
    if not is_safe(info.get("parentID")) or info["parentID"] == info.get("id"):
        info.pop("parentID", None)
    if isinstance(info.get("summary"), dict):
        info["summary"] = _summary(info["summary"], raw.diffs)
    return info


def _narrowing(session: Session) -> tuple[Session, int]:
    """The session with only its deny rules, and the number of other rules.

    An imported session must not allow calls that the configuration of this user denies or asks about.
    """
    rules = session.permission or ()
    denies = tuple(rule for rule in rules if rule.action == "deny")
    return session.but(permission=denies or None), len(rules) - len(denies)


def _summary(raw: RawObject, recorded: Json) -> RawObject:
    counts = ("additions", "deletions", "files")
    summary = {**raw, **{name: raw[name] if shapes.is_number(raw.get(name)) else 0 for name in counts}}
    if isinstance(raw.get("diffs"), list):
        summary["diffs"] = shapes.diffs(raw["diffs"])
    if not shapes.is_number(raw.get("files")):
        # opencode lost this count when it moved the diffs to a separate file.
        listed = recorded if isinstance(recorded, list) else summary.get("diffs", [])
        summary["files"] = len(listed)
    return summary


def _messages(raw: RawSession, made: Incoming) -> Iterator[IncomingMessage]:
    known: set[str] = set()
    prompt = ""
    for message, model in zip(raw.messages, _models(raw.messages), strict=True):
        message_id = message.info.get("id")
        where = {"place": raw.place, "session_id": made.session.id}
        if not isinstance(message_id, str) or not is_safe(message_id):
            made.unreadable.append(Finding(reason=f"{message_id!r} is not a message id", **where))
            continue
        where["message_id"] = message_id
        if message_id in known:
            made.skipped.append(Finding(reason="the message id is repeated; the first message was taken", **where))
            continue
        known.add(message_id)
        if message.info.get("role") == "user":
            prompt = message_id
        try:
            info = converted(_message_info(message.info, made.session, model, prompt), _MESSAGE)
        except Unreadable as error:
            made.unreadable.append(Finding(reason=str(error), **where))
            continue
        parts = tuple(_parts(message.parts, info, made, raw.place))
        yield IncomingMessage(info=info, parts=parts, is_counted=message.is_counted)


def _message_info(raw: RawObject, session: Session, model: RawObject, prompt: str) -> RawObject:
    info = {**raw, "sessionID": session.id}
    created = shapes.as_object(info.get("time")).get("created")
    if not shapes.is_number(created):
        created = minted(info["id"], session.time.created)
    info["time"] = {**shapes.as_object(info.get("time")), "created": created}
    match info.get("role"):
        case "user":
            return _user(info, model)
        case "assistant":
            return _assistant(info, session, prompt)
        case "system":
            return {"updates": [], **info}
        case role:
            raise Unreadable(f"is said by {role!r}; known are user, assistant and system")


def _user(info: RawObject, model: RawObject) -> RawObject:
    info["agent"] = word(info.get("agent")) or "build"
    given = shapes.as_object(info.get("model"))
    if not all(isinstance(given.get(name), str) for name in model):
        info["model"] = {**given, **model}
    if "variant" in info:  # Old versions have it next to the model.
        variant = info.pop("variant")
        info["model"] = {"variant": variant, **info["model"]} if variant is not None else info["model"]
    if isinstance(info.get("summary"), dict):
        listed = info["summary"].get("diffs")
        info["summary"] = {**info["summary"], "diffs": shapes.diffs(listed) if isinstance(listed, list) else []}
    return info


def _models(messages: list[RawMessage]) -> list[RawObject]:
    """For each message, the model of the next turn, for prompts of old versions that name no model."""
    found = {"providerID": UNKNOWN, "modelID": UNKNOWN}
    models = []
    for message in reversed(messages):
        if message.info.get("role") == "assistant":
            names = {name: message.info.get(name) for name in found}
            found = {name: given if isinstance(given, str) else UNKNOWN for name, given in names.items()}
        models.append(found)
    return models[::-1]


def _assistant(info: RawObject, session: Session, prompt: str) -> RawObject:
    info["parentID"] = word(info.get("parentID")) or prompt
    info["agent"] = word(info.get("agent")) or word(info.get("mode")) or "build"
    info["mode"] = word(info.get("mode")) or info["agent"]
    info["modelID"] = word(info.get("modelID")) or UNKNOWN
    info["providerID"] = word(info.get("providerID")) or UNKNOWN
    path = shapes.as_object(info.get("path"))
    cwd = word(path.get("cwd")) or session.directory
    info["path"] = {**path, "cwd": cwd, "root": word(path.get("root")) or cwd}
    info["cost"] = info["cost"] if shapes.is_number(info.get("cost")) else 0
    info["tokens"] = shapes.tokens(info.get("tokens"))
    if isinstance(info.get("error"), dict):
        error, is_renamed = shapes.failure(info["error"])
        if is_renamed:
            info["importedError"] = info["error"]
        info["error"] = error
    return info


def _parts(raw: list[Json], message: Message, made: Incoming, place: str | None) -> Iterator[Part]:
    known: set[str] = set()
    for nth, one in enumerate(raw):
        where = {"place": place, "session_id": message.session_id, "message_id": message.id}
        if not isinstance(one, dict):
            made.unreadable.append(Finding(reason=f"part {nth} is not an object", **where))
            continue
        try:
            part = part_of(one, message, nth, is_safe(one.get("id")))
        except Unreadable as error:
            made.unreadable.append(Finding(reason=f"part {nth} {error}", **where))
            continue
        if part.id in known:
            reason = "the part id is repeated; the first part was taken"
            made.skipped.append(Finding(reason=reason, part_id=part.id, **where))
            continue
        known.add(part.id)
        yield part


def _todos(raw: Json) -> tuple[Todo, ...] | None:
    if not isinstance(raw, list):
        return None
    todos = []
    for one in raw:
        # opencode's migration leaves out entries without these fields, too.
        if isinstance(one, dict) and all(isinstance(one.get(key), str) for key in ("content", "status", "priority")):
            todos.append(trimmed(one, Todo))
    return tuple(todos)


def _diffs(raw: Json) -> tuple[FileDiff, ...] | None:
    if not isinstance(raw, list):
        return None
    return tuple(trimmed(one, FileDiff) for one in shapes.diffs(raw) if isinstance(one, dict))


def _created(info: RawObject, messages: list[RawMessage]) -> int:
    times = [shapes.as_object(info.get("time")).get("created")]
    times += [shapes.as_object(message.info.get("time")).get("created") for message in messages]
    return int(next((_bounded(time) for time in times if shapes.is_number(time)), 0))


def _bounded(time: float) -> float:
    """A time of which keys can be made."""
    return min(max(time, 0), shapes.TIME_MAX)
